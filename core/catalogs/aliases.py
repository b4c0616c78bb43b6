"""Names as people write them: published names of models, drivers' names of GPUs, engines' names of formats and methods.

A name of the table or the catalog comes first, whatever its capitals; then those listed in ``names.yaml``. A model's name that
says another format than the catalog entry stands for is never taken for that entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from scenario.common import yamltree
from scenario.model.entities import FORMATS

KINDS = ("models", "gpus", "formats", "methods", "inputs")
_VENDORS = re.compile(r"^(nvidia|amd|instinct|geforce|tesla|intel|google|aws)-")


@lru_cache(maxsize=1)
def listed() -> Mapping[str, Mapping[str, str]]:
    """By kind: each listed name in plain form, and the catalog's name it stands for."""
    raw = (resources.files("scenario.scenarios") / "names.yaml").read_bytes()
    source, root = yamltree.parse(raw, "names.yaml")
    source.stop()
    found: dict[str, dict[str, str]] = {}
    for kind in KINDS:
        found[kind] = {}
        for name, node in root.value[kind].value.items():
            for item in node.value:
                found[kind][plain(str(item.value), kind)] = name
                if kind == "models":
                    found[kind].setdefault(plain(str(item.value).rpartition("/")[2], kind), name)
    return found


def plain(said: str, kind: str) -> str:
    """A name without what people write differently: capitals, spaces and underscores, a GPU's maker."""
    name = re.sub(r"[\s_]+", "-", said.strip().lower()).replace("(r)", "").replace("(tm)", "")
    while kind == "gpus" and (shorter := _VENDORS.sub("", name)) != name:
        name = shorter
    return name


def find(kind: str, said: str, known: Iterable[str]) -> str | None:
    """The known name that a written one stands for, or None. ``kind`` is one of :data:`KINDS`."""
    names = known if isinstance(known, Mapping | set | frozenset) else set(known)
    if said in names:
        return said
    wanted = plain(said, kind)
    same = next((name for name in names if plain(name, kind) == wanted), None)
    other = listed()[kind].get(wanted)
    return same or (other if other in names else None)


def stack(said: str, methods: Mapping[str, object]) -> str:
    """The methods of a stack under the names that they have here; what is not known stays as it is."""
    return "+".join(find("methods", part.strip(), methods) or part.strip() for part in said.split("+"))


def bare(said: str) -> Iterable[str]:
    """A model's published name, then shorter and shorter without what says format, tuning or date."""
    name = said.rstrip("/").rpartition("/")[2].lower().replace("_", "-").removesuffix(".gguf")
    yield said
    while name:
        yield name
        yield name.removeprefix("meta-")
        shorter = _TAILS.sub("", name)
        if shorter == name:
            return
        name = shorter


def split(said: str, known: Iterable[str]) -> str:
    """What was probably meant by the name of a checkpoint in another format: the model, and its format beside it."""
    names = set(known)
    model = next((found for name in bare(said) if (found := find("models", name, names))), "")
    meant = stated(said)
    if not meant or meant.asked:
        return f"{f'model: {model}' if model else 'the model'} and its weights: are stated apart; {meant.asked if meant else ''}".rstrip("; ")
    return f"write model: {model}, weights: {meant.weights}" if model else f"state the model under models: and weights: {meant.weights}"


def spellings(kind: str, known: Iterable[str]) -> list[str]:
    """The known names and those listed for them, in small letters and in capitals, with either line: what an editor should take."""
    names = list(known)
    others = [said for said, meant in listed()[kind].items() if meant in names]
    return list(dict.fromkeys([*names, *(form for name in [*names, *others] for form in
                                         (name, name.upper(), name.replace("-", "_"), name.replace("-", "_").upper()))]))  # fmt: skip


_TAILS = re.compile(
    r"[-.](instruct|chat|it|hf|base|dynamic|static|block|kv|sym|asym|marlin|quantized|g\d+|\d{4}|v0\.\d|v\d|ggml|gguf|bnb|4bit|8bit|ud|imatrix|"
    r"fp8|fp4|bf16|f16|fp16|f32|nvfp4|mxfp4|awq|gptq|int4|int8|w4a16|w8a8|w8a16|tq[12]-0|i?q\d(?:-[a-z0-9]{1,3})*)$")  # fmt: skip


# -- formats in a model's name ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stated:
    """What a model's name says of its format: ``weights`` and ``activations``, or why that is not enough (``asked``)."""

    weights: str = ""
    activations: str = ""
    asked: str = ""


_GGUF = re.compile(r"(?i)(?<![a-z0-9])(?:ud-)?(i?q[1-8]_(?:[01]|nl|k(?:_(?:xs|xl|s|m|l))?|xxs|xs|s|m)|tq[12]_0)(?![a-z0-9])")
_STATED: tuple[tuple[str, Stated], ...] = (
    (r"nvfp4|fp4", Stated("nvfp4", "fp4")),
    (r"mxfp4", Stated("mxfp4", "bf16")),
    (r"mxfp[68]", Stated(asked="an MX format of 6 or 8 bits is not known")),
    (r"w8a8[-.]?fp8|fp8[-.]?(?:dynamic|kv|static|block|w8a8)?|float8", Stated("fp8", "fp8")),
    (r"w4a16|w4g\d+|awq(?:[-.]?(?:int)?4(?:bit)?)?|int4[-.]?awq|gptq[-.]?(?:int)?4(?:bit)?(?:[-.]\d+g)?|w4a8", Stated("int4", "bf16")),
    (r"(?:gptq|w)[-.]?(?:int)?8(?:bit)?(?:a16)?", Stated("int8", "bf16")),
    (r"w8a8|int8[-.]?w8a8|smoothquant", Stated("int8", "int8")),
    (r"bnb[-.]?4bit|nf4", Stated("nf4", "bf16")),
    (r"int4|4bit|w4", Stated("int4", "bf16")),
    (r"int8|8bit", Stated("int8", "bf16")),
    (r"gptq", Stated(asked="GPTQ stores 2 to 8 bits, and the name does not say how many")),
    (r"[236]bit|int[236]|w[236]a16|exl[23]|hqq|aqlm|quip|bitnet|1\.58bit|quantized", Stated(asked="it is quantized, and the name does not say to which format")),
    (r"bf16|bfloat16", Stated("bf16", "bf16")),
    (r"f16|fp16", Stated("fp16", "bf16")),
    (r"f32|fp32", Stated(asked="32 bits per weight are no format of the engine's")),
)  # fmt: skip


def stated(name: str) -> Stated | None:
    """What a model's name says of the format its weights are stored in; None when it says nothing."""
    last = name.rstrip("/").rpartition("/")[2]
    gguf = _GGUF.search(last)
    if gguf:
        found = gguf[1].lower()
        found = {"q3_k": "q3_k_m", "q4_k": "q4_k_m", "q5_k": "q5_k_m"}.get(found, found.replace("_xl", "_m"))
        return Stated(found, "bf16") if found in FORMATS else Stated(asked=f"the bits of {gguf[1]} are not known")
    for pattern, meant in _STATED:
        if re.search(rf"(?i)(?<![a-z0-9])(?:{pattern})(?![a-z0-9])", last):
            return meant
    return None
