"""The JSON schema of tables (draft-07), made from the registries, for editors that complete and check YAML.

It is a little looser than the program: names defined in the table itself, and everything about formulas, are left to it.
"""

from __future__ import annotations

from scenario.catalogs import catalog
from scenario.model import stacks
from scenario.registry.loaded import Host
from scenario.tables.sections import SECTIONS
from scenario.tables.terms import Schema, Terms, known_names


def table_schema(host: Host) -> Schema:
    """The schema of a table for this set of plugins; keys that it does not know in detail are only described."""
    terms, known = Terms(host), catalog.builtin()
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A table of scenarios",
        "type": "object",
        "required": ["version"],
        "anyOf": [{"required": ["grid"]}, {"required": ["rows"]}, {"required": ["summary"]}],
        "properties": {s.key: {"description": s.doc[:1].upper() + s.doc[1:] + ".", **s.schema(terms)} for s in SECTIONS},
        "additionalProperties": False,
        "definitions": {
            "model": known_names(known.models, "A model of the catalog or of this table."),
            "gpu": known_names(known.gpus, "A GPU of the catalog or of this table."),
            "method": known_names([s.name for s in stacks.every(host.methods)], "A decoding method, or a stack such as int4+eagle."),
            "formula": {"type": ["string", "number"], "description": "Arithmetic on columns, parameters and catalog fields."},
        },
    }
