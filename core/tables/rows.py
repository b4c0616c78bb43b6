"""The rows of a table: the grid's combinations and the rows written out, as one frame of given inputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from scenario.catalogs import aliases
from scenario.common.yamltree import YamlNode
from scenario.model import features, kinds, shared
from scenario.model.entities import FORMATS
from scenario.model.spec import Parameter
from scenario.tables.table import TEXT_NAMES, is_text_input, known_inputs
from scenario.tables.values import ValueReader

QUANTIZED = (*(name for name, (bits, _) in FORMATS.items() if bits < 8), features.PUBLISHED)
CONTEXT_FROM = ("prompt_tokens", "output_tokens")
"""Inputs that say which context a row has when it does not: the prompt and half the output."""
RATE = "requests per second"
"""What ``names.yaml`` lists beside inputs: a rate is none."""
LISTED = 10_000
"""Rows that one written row may expand to before they are made as a frame rather than as lists."""

Axes = dict[str, list[Any]]


class Expander:
    """Turns the ``grid`` and ``rows`` sections into a frame; problems go to the reader's source."""

    def __init__(self, reader: ValueReader, defaults: Mapping[str, float | str]) -> None:
        self.reader, self.source, self.defaults = reader, reader.source, defaults
        self.known = known_inputs(reader.host)
        section = reader.root.value.get("defaults")
        written = section.value if section and isinstance(section.value, dict) else {}
        # A default that is wrong has been complained about; it is not missing as well.
        self.promised = {*defaults, *(name for name, cell in written.items() if cell.value is not None)}
        owners: dict[str, list[Parameter]] = {}
        for method in reader.host.methods.values():
            for name, parameter in method.parameters.items():
                owners.setdefault(name, []).append(parameter)
        self.shared_by = {name for name, found in owners.items() if any(parameter != found[0] for parameter in found)}
        self.method_inputs = owners.keys() - shared.INPUTS.keys()
        self.ids: dict[str, YamlNode] = {}

    def frame(self, grid: YamlNode | None, listed: YamlNode | None) -> pl.DataFrame:
        """One row per scenario: ``id``, then every input that some row gives."""
        grid = grid if grid is not None and grid.value is not None else None
        listed = listed if listed is not None and listed.value is not None else None
        if grid is None and listed is None:
            self.source.say(self.reader.root, "the table has no rows", "give a grid: or rows:")
        keys = self.reader.root.keys
        key = keys.get("grid", grid) if grid else None
        axes: Axes | None = None
        if grid and not isinstance(grid.value, dict):
            self.source.say(grid, f"grid is a mapping of inputs to lists, not {grid.kind}")
        elif grid and key:
            axes = self.axes(key, grid, "the grid")
            if not grid.value:
                self.source.say(grid, "the grid is empty")
        written = self.written(listed)
        self.size(key or keys.get("rows", self.reader.root), axes, written)
        if self.source.problems:
            return pl.DataFrame()
        parts = [self.product(axes)] if axes else []
        parts += self.explicit(written)
        if self.source.problems:
            return pl.DataFrame()
        frame = pl.concat(parts, how="diagonal")
        for name in ("isl", "osl"):
            if name in frame.columns and name not in self.promised and frame[name].null_count():
                self.source.say(key or self.reader.root, f"some rows give {name} and some do not; then TPOT would mean two things",
                                "give isl and osl to all rows, or under defaults:; isl: 0 is decoding alone")  # fmt: skip
                return pl.DataFrame()
        for name in ("model", "gpu", "method"):
            if name not in frame.columns:
                frame = frame.with_columns(pl.lit(None, dtype=pl.String).alias(name))
        return self.with_ids(frame)

    def written(self, listed: YamlNode | None) -> list[tuple[YamlNode, Axes]]:
        found: list[tuple[YamlNode, Axes]] = []
        if listed is None:
            return found
        if not isinstance(listed.value, list):
            hint = "begin each row with a dash: - {model: ..., gpu: ...}"
            self.source.say(listed, f"rows is a list, not {listed.kind}", hint)
            return found
        for item in listed.value:
            if not isinstance(item.value, dict):
                self.source.say(item, f"a row is a mapping of inputs, not {item.kind}", "such as {model: ..., gpu: ..., batch: 1}")
                continue
            axes = self.axes(item, item, "this row")
            if axes is not None:
                found.append((item, axes))
        if not listed.value:
            self.source.say(listed, "rows is empty")
        return found

    def axes(self, place: YamlNode, node: YamlNode, what: str) -> Axes | None:
        """The checked values of each input of a grid or of one row; None when something is wrong."""
        before = len(self.source.problems)
        found: dict[str, list[tuple[Any, YamlNode]]] = {}
        cells: Mapping[str, YamlNode] = node.value
        for name, cell in cells.items():
            key = node.keys.get(name, cell)
            if name not in self.known and name not in TEXT_NAMES:
                self.not_an_input(name, key, cell)
            elif name == "id":
                self.row_id(key, cell, what, found)
            elif name == "gamma" and cell.value == "auto":
                found["auto_gamma"] = [(1.0, cell)]
            else:
                found[name] = self.values(name, key, cell)
        self.missing(place, cells, what)
        if len(self.source.problems) == before:
            self.twice_quantized(place, found)
            self.ranges(found)
            self.servers(found)
            self.unread(found, what)
            gammas = [value for value, _ in found.get("gamma", [])]
            self.reader.dialects(found, what, gammas[0] if len(gammas) == 1 else None)
        if len(self.source.problems) > before:
            return None
        return {name: [value for value, _ in pairs] for name, pairs in found.items()}

    def not_an_input(self, name: str, key: YamlNode, cell: YamlNode) -> None:
        if name in shared.SCALARS:
            self.source.say(key, f"'{name}' is one value for the whole table", f"defaults: {{{name}: {cell.shown}}}")
        elif name in self.reader.host.methods:
            self.source.say(key, f"'{name}' is a method, not an input", f"method: {name}")
        elif (meant := aliases.find("inputs", name, {*self.known, RATE})) == RATE:
            self.source.say(key, f"'{name}' is a rate of requests; a row here is one batch that runs all the time",
                            "give batch: requests under way = rate x seconds that a request takes (Little's law)")  # fmt: skip
        elif meant:
            self.source.say(key, f"unknown input '{name}'", f"it is called {meant} here")
        else:
            self.source.unknown(key, name, "input", ["id", "model", "gpu", "method", *self.known])

    def missing(self, place: YamlNode, cells: Mapping[str, YamlNode], what: str) -> None:
        names = [name for name in shared.REQUIRED if name not in cells and name not in self.promised]
        lengths = [name for name in ("isl", "osl") if name in cells or name in self.promised]
        if len(lengths) == 1:
            other = "osl" if lengths == ["isl"] else "isl"
            self.source.say(place, f"{what} gives {lengths[0]} but no {other}; a request has both", f"isl and {other} go together"
                            if other == "osl" else "isl: 0 is decoding alone")  # fmt: skip
        twice = [name for name in CONTEXT_FROM if name in cells or name in self.promised]
        if lengths and twice:
            self.source.say(place, f"{what} gives both {lengths[0]} and {twice[0]}; a request is described by one pair",
                            "isl and osl: serving at a steady state; prompt_tokens and output_tokens: one request alone")  # fmt: skip
        # The mean length of the cache follows from both lengths of a request.
        if "context" in names and (lengths or all(name in cells or name in self.promised for name in CONTEXT_FROM)):
            names.remove("context")
        others = [name for name in names if name != "context"]
        if others:
            listed = ", ".join(others[:-1]) + f" and {others[-1]}" if len(others) > 1 else others[0]
            self.source.say(place, f"{what} does not say which {listed}; that is never guessed",
                            f"or give it under defaults: {{{others[0]}: ...}}")  # fmt: skip
        if "context" in names:
            self.source.say(place, f"{what} does not say which context; that is never guessed", "context: 0 is the weights-only bound")

    def row_id(self, key: YamlNode, cell: YamlNode, what: str, found: dict[str, list[tuple[Any, YamlNode]]]) -> None:
        if what == "the grid":
            self.source.say(key, "a grid has no id: its rows are named by what varies")
            return
        if cell.value is None:
            return
        if isinstance(cell.value, dict | list | bool) or not cell.shown.strip():
            self.source.say(cell, f"an id is a short text, not {cell.kind}")
            return
        text = cell.value if isinstance(cell.value, str) else cell.shown
        if len(text) > 200 or not text.isprintable():
            self.source.say(cell, "an id is a short text of at most 200 printable characters")
            return
        found["id"] = [(text, cell)]

    def values(self, name: str, key: YamlNode, cell: YamlNode) -> list[tuple[Any, YamlNode]]:
        items = cell.value if isinstance(cell.value, list) else [cell]
        parameter = self.known.get(name)
        if parameter and parameter.kind == "profile" and items and all(isinstance(item.value, int | float) for item in items):
            items = [cell]  # one list of rates is one profile
        if not items:
            self.source.say(key, f"the list for {name} is empty: the table would have no rows")
        found: list[tuple[Any, YamlNode]] = []
        seen: set[Any] = set()
        for item in items:
            value: float | str | None = None  # blank: the default applies
            if item.value is None and name in shared.REQUIRED and name not in self.promised:
                self.source.say(item, f"{name} is blank and has no default; it is never guessed")
            elif item.value is not None and parameter is None:
                value = self.reader.core(name, item)
            elif item.value is not None and parameter is not None:
                value = self.reader.value(name, parameter, item)
            if (value is not None or item.value is None) and value in seen:
                shown = item.shown if value is not None else "the default"
                self.source.say(item, f"{name} lists {shown} twice")
            seen.add(value)
            found.append((value, item))
        return found

    def methods(self, found: Mapping[str, list[tuple[Any, YamlNode]]]) -> list[str]:
        """The method stacks that these rows use."""
        default = self.defaults.get("method")
        return [str(value or default) for value, _ in found.get("method", [(None, self.reader.root)]) if value or default]

    def ranges(self, found: Mapping[str, list[tuple[Any, YamlNode]]]) -> None:
        """Methods may allow more or less of an input of the same name: each row obeys its own method."""
        for name in self.shared_by & found.keys():
            for parameter, method in self.owners(name, self.methods(found)):
                for value, item in found[name]:
                    said = kinds.value_problem(parameter, value) if value is not None else ""
                    if said:
                        self.source.say(item, f"{name} of method '{method}': {said}")

    def servers(self, found: Mapping[str, list[tuple[Any, YamlNode]]]) -> None:
        """``nodes`` is the size of a draft tree: where no method has one, two servers were meant."""
        typed = [(value, item) for value, item in found.get("nodes", []) if value is not None]
        if not typed or self.owners("nodes", self.methods(found)):
            return
        value, item = typed[0]
        gpus, _ = found.get("gpus", [(None, item)])[0]
        each = max(float(gpus or self.defaults.get("gpus") or 1), 1)
        self.source.say(item, "nodes is the size of a draft tree, and no method of these rows has one",
                        f"for {value:g} servers say gpus: {value * each:g}, all their GPUs together")  # fmt: skip

    def owners(self, name: str, used: Iterable[str]) -> list[tuple[Parameter, str]]:
        parts = dict.fromkeys(part for stack in used for part in stack.split("+"))
        methods = [self.reader.host.methods[part] for part in parts]
        return [(method.parameters[name], method.name) for method in methods if name in method.parameters]

    def unread(self, found: Mapping[str, list[tuple[Any, YamlNode]]], what: str) -> None:
        """Tell of inputs that a row gives and that no method of the row has: they change nothing."""
        used = self.methods(found)
        for name in (self.method_inputs & found.keys()) if what == "this row" and used else ():
            value, item = found[name][0]
            if value is not None and not self.owners(name, used):
                where = f"line {item.line}: " if item.line else ""
                self.reader.notes.append(f"{where}{name}: {item.shown} changes nothing, {' or '.join(dict.fromkeys(used))} does not read it")

    def twice_quantized(self, place: YamlNode, found: Mapping[str, list[tuple[Any, YamlNode]]]) -> None:
        """Weights that are stored in under 8 bits cannot be quantized by a method once more."""
        default = self.defaults.get("weights", "bf16")
        small = [(value or default, item) for value, item in found.get("weights", [(None, place)]) if (value or default) in QUANTIZED]
        quantizing = [name for name in self.methods(found) if self.reader.stacks[name].quantization]
        if small and quantizing:
            (kept, item), name = small[0], quantizing[0]
            self.source.say(item, f"the weights are stored as {kept} already: method '{name}' cannot quantize them again",
                            f"use weights: bf16 with {name}, or {kept} weights with a method that leaves them alone")  # fmt: skip

    def size(self, place: YamlNode, axes: Axes | None, written: list[tuple[YamlNode, Axes]]) -> None:
        """Say how many rows there would be before any is made."""
        limit = self.reader.max_rows
        parts = [("the grid", place, axes)] if axes else []
        parts += [("this row", node, found) for node, found in written]
        total = 0
        for what, node, found in parts:
            count = math.prod(len(values) for values in found.values())
            total += count
            if count > limit:
                shape = " x ".join(f"{name} {len(values):,}" for name, values in found.items() if len(values) > 1)
                self.source.say(node, f"{what} makes {count:,} rows ({shape}); the limit is {limit:,}",
                                "shorten a list, or allow more with --max-rows")  # fmt: skip
                return
        if total > limit:
            self.source.say(place, f"the table makes {total:,} rows; the limit is {limit:,}", "allow more with --max-rows")

    # -- frames ----------------------------------------------------------------------------------------

    def product(self, axes: Axes) -> pl.DataFrame:
        """Every combination; the last input varies fastest."""
        frame: pl.DataFrame | None = None
        for name, values in axes.items():
            axis = pl.DataFrame({name: pl.Series(values, dtype=self.dtype(name), strict=False)})
            frame = axis if frame is None else frame.join(axis, how="cross", maintain_order="left_right")
        assert frame is not None
        return frame

    def explicit(self, written: list[tuple[YamlNode, Axes]]) -> list[pl.DataFrame]:
        """The rows written out, in their order; within a row the last list varies fastest."""
        frames: list[pl.DataFrame] = []
        # Rows of few combinations are the common case and are built column by column at once.
        names = dict.fromkeys(name for _, found in written for name in ("id", *found))
        plain: Axes = {name: [] for name in names}

        def flush() -> None:
            if plain and plain["id"]:
                frames.append(pl.DataFrame({name: pl.Series(v, dtype=self.dtype(name), strict=False) for name, v in plain.items()}))
                plain.update({name: [] for name in names})

        for node, found in written:
            count = math.prod(len(values) for values in found.values())
            ids = self.row_ids(node, found, count)
            if count > LISTED:
                flush()
                frames.append(self.product(found).with_columns(pl.Series("id", ids, dtype=pl.String)))
                continue
            repeat, columns = count, {}
            for name, values in found.items():
                repeat //= len(values)
                columns[name] = [value for value in values for _ in range(repeat)] * (count // (len(values) * repeat))
            columns["id"] = ids
            for name, column in plain.items():
                column += columns.get(name, [None] * count)
        flush()
        return frames

    def row_ids(self, node: YamlNode, found: Axes, count: int) -> list[str | None]:
        """The ids of a row's combinations: the one given, numbered when there are several."""
        if "id" not in found:
            return [None] * count
        given = found["id"][0]
        made = [given] if count == 1 else [f"{given}-{index}" for index in range(1, count + 1)]
        cell = node.value["id"]
        for name in made:
            if name in self.ids:
                line = self.ids[name].line
                self.source.say(cell, f"the id '{name}' is given a second time; an id names one row",
                                f"it is first given on line {line}" if line else f"it is first given at {self.ids[name].path}")  # fmt: skip
                break
            self.ids[name] = cell
        return list(made)

    def dtype(self, name: str) -> type[pl.DataType]:
        return pl.String if is_text_input(name, self.known) else pl.Float64

    # -- ids -------------------------------------------------------------------------------------------

    def with_ids(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Ids that were given, else a slug of what varies; a slug that is taken gets a number."""
        given = frame["id"] if "id" in frame.columns else pl.Series("id", [None] * frame.height, dtype=pl.String)
        varying = [name for name in frame.columns if name != "id" and frame[name].n_unique() > 1]
        names: list[str] = [name for name in shared.REQUIRED if name in varying]
        names += [name for name in varying if name not in names]
        parts = [self.slug(name) for name in names or ["model"]]
        slug = pl.concat_str(parts, separator="_", ignore_nulls=True)
        for _ in range(2):  # what spreadsheets read as the code of a character, neighbours included
            slug = slug.str.replace_all(r"_(x[0-9A-Fa-f]{1,4}_)", "-${1}")
        frame = frame.with_columns(given.alias("given"), slug=slug)
        frame = frame.with_columns(slug=pl.when(pl.col("given").is_not_null()).then(None)
                                   .when(pl.col("slug") == "").then(pl.lit("row")).otherwise("slug"))  # fmt: skip
        count = pl.int_range(pl.len()).over("slug") + 1
        numbered = pl.when(count > 1).then(pl.concat_str("slug", pl.lit("-"), count.cast(pl.String))).otherwise("slug")
        frame = frame.with_columns(id=pl.coalesce("given", numbered))
        while frame["id"].is_duplicated().any():
            # "x" twice beside an "x-2" of its own, or beside one that was given: count on until each is one of a kind.
            taken = pl.col("id").is_in(given.drop_nulls().implode()) | pl.col("id").is_first_distinct().not_()
            frame = frame.with_columns(id=pl.when(pl.col("id").is_duplicated() & pl.col("given").is_null() & taken)
                                       .then(pl.col("id") + "-2").otherwise("id"))  # fmt: skip
        return frame.select("id", pl.exclude("id", "slug", "given"))

    def slug(self, name: str) -> pl.Expr:
        if self.dtype(name) == pl.String:
            text = pl.col(name).str.replace_all(r"[^A-Za-z0-9.+-]+", "-")
            return text if name in ("model", "gpu", "method") else pl.lit(name.replace("_", "-") + "-") + text
        value = pl.col(name)
        whole = pl.when(value == value.floor()).then(value.cast(pl.Int64, strict=False).cast(pl.String)).otherwise(value.cast(pl.String))
        if name == "gpus":
            whole = pl.when(value < 1).then(pl.lit("auto")).otherwise(whole)
        tag = {"batch": "b", "context": "c", "gamma": "g"}.get(name, name.replace("_", "-") + "-")
        return pl.lit(tag) + whole
