"""What the command that starts a server says of a table's row: vLLM, SGLang, TensorRT-LLM and llama-server.

Flags that change what is computed are taken; those that are known to change nothing here are passed over; all others are named, so that
nothing is lost in silence. Nothing is guessed: what the command does not say is left for the user to state.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

import yaml

from scenario.catalogs import aliases
from scenario.catalogs.catalog import Catalog
from scenario.common import inputs
from scenario.common.errors import Problem, TableError
from scenario.model.entities import FORMATS

Flags = dict[str, str]


@dataclass
class Served:
    """A row as far as a command says it, and what was not taken."""

    row: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Engine:
    """How an engine's command is recognised and which flags mean what: ``flags`` by the input of a row, first that is given."""

    name: str
    marks: tuple[str, ...]
    flags: Mapping[str, tuple[str, ...]]
    draft: Callable[[Flags, Served, Catalog], None]
    harmless: tuple[str, ...] = ()


_BARE = re.compile(r"^--?[A-Za-z]")
_COMMON = ("host", "port", "api-key", "served-model-name", "alias", "log", "disable-log", "enable-log", "trust-remote-code", "tokenizer", "chat-template",
           "tool-call", "reasoning", "enable-auto-tool", "seed", "download-dir", "uvicorn", "max-model-len", "enable-metrics", "enable-prefix-caching",
           "dtype", "metrics", "revision", "disable-uvicorn", "load-format", "random-seed", "jinja", "no-webui", "no-mmap", "mlock", "threads")  # fmt: skip
"""Beginnings of flags that change nothing that is computed here."""


def read(command: str, catalog: Catalog, folder: Path = Path()) -> Served:
    """The row that a command stands for. Raises :class:`TableError` for what is no server's command; files it names are under ``folder``."""
    try:
        words = shlex.split(command.replace("\\\n", " "), comments=False)
    except ValueError as error:
        raise TableError(Problem(f"the command cannot be taken apart: {error}", "quote it as a shell would take it")) from None
    engine, rest = _engine(words)
    flags, loose = _flags(rest)
    served = Served({"engine": engine.name})
    _file(engine, flags, folder)
    _model(engine, flags, loose, served, catalog)
    for name, ways in engine.flags.items():
        if name != "model" and (said := _taken(flags, ways)) is not None:
            served.row[name] = said
    _formats(served)
    _parallel(served)
    engine.draft(flags, served, catalog)
    for flag in flags:
        if not any(flag.startswith(start) for start in (*_COMMON, *engine.harmless)):
            served.notes.append(f"not taken: --{flag}")
    return served


def _engine(words: Sequence[str]) -> tuple[Engine, list[str]]:
    """The engine, and the words after its name."""
    for place, word in enumerate(words):
        name = PurePath(word).name
        pair = f"{name} {words[place + 1]}" if place + 1 < len(words) else name
        for engine in ENGINES:
            if pair in engine.marks or name in engine.marks:
                return engine, list(words[place + (2 if pair in engine.marks else 1) :])
    raise TableError(Problem("this is no command that starts a server", "known: vllm serve, sglang.launch_server, trtllm-serve, llama-server"))


def _flags(words: Sequence[str]) -> tuple[Flags, list[str]]:
    """Flags without their dashes and with - for _; what stands by itself."""
    found: Flags = {}
    loose: list[str] = []
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        if not _BARE.match(word):
            loose.append(word)
            continue
        name, _, value = word.lstrip("-").partition("=")
        if "=" not in word and place < len(words) and not _BARE.match(words[place]):
            value = words[place]
            place += 1
        head, dot, tail = name.partition(".")
        found[head.replace("_", "-") + dot + tail] = value or "true"
    return found, loose


def _taken(flags: Flags, ways: Sequence[str]) -> str | None:
    """The value of the first of some flags, which is then done with."""
    found = [flags.pop(way) for way in ways if way in flags]
    return found[0] if found else None


def _whole(flags: Flags, *ways: str) -> int | None:
    said = _taken(flags, ways)
    return int(said) if said is not None and said.isdecimal() else None


def _file(engine: Engine, flags: Flags, folder: Path) -> None:
    """TensorRT-LLM keeps most settings in a file: its keys count as flags."""
    name = _taken(flags, ("extra-llm-api-options", "config")) if engine.name == "trtllm" else None
    if name is None:
        return
    try:
        said = yaml.safe_load(inputs.read(folder / name, inputs.CONFIG))
    except yaml.YAMLError as error:
        raise TableError(Problem(f"this is not YAML: {str(error).splitlines()[0]}", file=name)) from None
    for key, value in (said if isinstance(said, dict) else {}).items():
        if isinstance(value, dict):
            flags.update({f"{key.replace('_', '-')}.{inner}": str(one) for inner, one in value.items()})
        else:
            flags[str(key).replace("_", "-")] = str(value)


def _model(engine: Engine, flags: Flags, loose: Sequence[str], served: Served, catalog: Catalog) -> None:
    said = _taken(flags, engine.flags["model"]) or next(iter(loose), None)
    if said is None:
        raise TableError(Problem("the command names no model"))
    name = said.replace(":", "-") if engine.name == "llamacpp" else said
    found = next((found for way in aliases.bare(name) if (found := aliases.find("models", way, catalog.models))), None)
    served.row["model"] = found or said
    if found is None:
        served.notes.append(f"the model '{said}' is not in the catalog: state it under models: (hf_config, or its sizes)")
    stated = aliases.stated(name)
    if stated and stated.weights:
        served.row["weights"] = stated.weights
    elif stated:
        served.notes.append(f"weights: state the format: {stated.asked}")
    elif found and (published := catalog.models[found].notes.get("published_weights")) not in (None, "bf16"):
        served.row["weights"] = published


def _formats(served: Served) -> None:
    """Formats under the names that they have here."""
    for name in ("weights", "kv"):
        said = served.row.get(name)
        if said is None:
            continue
        found = aliases.find("formats", str(said), FORMATS)
        if found is None:
            served.notes.append(f"{name}: '{said}' says no format that is known")
            del served.row[name]
        else:
            served.row[name] = found
    if served.row.get("kv") == "bf16":
        del served.row["kv"]


def _parallel(served: Served) -> None:
    """Sizes of parallelism as numbers, and the GPUs that they need together."""
    gpus = 1
    for name in ("tp", "pp", "dp", "ep"):
        if name in served.row:
            size = str(served.row[name])
            if size.isdecimal() and int(size) > 1:
                served.row[name] = int(size)
                gpus *= int(size) if name != "ep" else 1
            else:
                del served.row[name]
    if gpus > 1:
        served.row["gpus"] = gpus
    if "memory_utilization" in served.row:
        served.row["memory_utilization"] = float(served.row["memory_utilization"])


def _method(served: Served, said: str, gamma: int | None, draft: str | None, catalog: Catalog) -> None:
    """A way of drafting under the name that it has here, with its depth and draft model."""
    known = ("eagle", "eagle-2", "eagle-3", "medusa", "mtp", "ngram", "suffix", "lookahead", "parallel-draft", "small-model", "vanilla")
    method = aliases.find("methods", said, known)
    if method is None:
        served.notes.append(f"method: '{said}' is no method that is known")
        return
    served.row["method"] = method
    if gamma is not None and method != "vanilla":
        served.row["gamma"] = gamma
    elif method not in ("vanilla", "medusa"):
        served.notes.append("gamma: the command does not say how many tokens are drafted")
    if method == "small-model":
        found = next((found for way in aliases.bare(draft or "") if (found := aliases.find("models", way, catalog.models))), None)
        if found:
            served.row["draft"] = found
            stated = aliases.stated(draft or "")
            if stated and stated.weights and FORMATS[stated.weights][0] != 16:
                served.row["draft_bits"] = FORMATS[stated.weights][0]
        else:
            served.notes.append(f"draft: the draft model {draft or '(not named)'} is not in the catalog")


def _vllm(flags: Flags, served: Served, catalog: Catalog) -> None:
    if _taken(flags, ("enable-expert-parallel",)) and served.row.get("gpus", 1) > 1:
        served.row["ep"] = served.row.get("tp", 1) * served.row.get("dp", 1)
    said: dict[str, Any] = {}
    text = _taken(flags, ("speculative-config", "speculative_config", "sc"))
    if text:
        try:
            said = json.loads(text)
        except ValueError:
            raise TableError(Problem("--speculative-config is not JSON", "write it in single quotes: '{\"method\": \"eagle3\", ...}'")) from None
    for name in [name for name in flags if name.startswith("speculative-config.")]:
        said[name.partition(".")[2].replace("-", "_")] = flags.pop(name)
    older = {"model": "speculative-model", "num_speculative_tokens": "num-speculative-tokens", "method": "speculative-method"}
    said |= {name: value for name, flag in older.items() if (value := _taken(flags, (flag,))) is not None}
    if not isinstance(said, dict) or not said:
        served.row.setdefault("method", "vanilla")
        return
    draft, gamma = str(said.get("model") or ""), said.get("num_speculative_tokens")
    method = str(said.get("method") or _by_name(draft))
    _method(served, method, int(gamma) if gamma is not None else None, draft, catalog)
    if said.get("draft_tensor_parallel_size") and served.row.get("method") == "small-model":
        served.row["draft_gpus"] = int(said["draft_tensor_parallel_size"])


def _by_name(draft: str) -> str:
    """What vLLM takes a draft for when no method is given: it looks at the draft's config, whose kind the name says."""
    name = draft.lower()
    kinds = (("ngram", "ngram"), ("eagle3", "eagle3"), ("eagle", "eagle"), ("medusa", "medusa"), ("mtp", "mtp"))
    return next((method for mark, method in kinds if mark in name), "draft_model")


def _sglang(flags: Flags, served: Served, catalog: Catalog) -> None:
    algorithm = _taken(flags, ("speculative-algorithm", "speculative-algo"))
    draft = _taken(flags, ("speculative-draft-model-path", "speculative-draft"))
    steps, branches = _whole(flags, "speculative-num-steps"), _whole(flags, "speculative-eagle-topk")
    tokens = _whole(flags, "speculative-num-draft-tokens")
    if "enable-dp-attention" in flags:
        served.notes.append("--enable-dp-attention: data-parallel attention is not modelled; dp here means whole copies")
        flags.pop("enable-dp-attention")
        served.row.pop("dp", None)
        served.row["gpus"] = served.row.get("tp", 1)
    if not algorithm:
        served.row["method"] = "vanilla"
        return
    own = bool((catalog.models[served.row["model"]].values.get("mtp_layers") if served.row["model"] in catalog.models else 0) or 0)
    if algorithm.upper() == "EAGLE" and not draft and own:
        algorithm = "NEXTN"
    tree = (branches or 1) > 1
    _method(served, "eagle-2" if tree and algorithm.upper() == "EAGLE" else algorithm, steps if steps is not None else tokens - 1 if tokens else None,
            draft, catalog)  # fmt: skip
    if tree and served.row.get("method") in ("eagle-2", "eagle-3"):
        served.notes.append(f"a tree of {tokens or 'unstated'} nodes, {branches} branches: state it as nodes: or tree:")
        if served.row["method"] == "eagle-2" and tokens:
            served.row["nodes"] = tokens - 1


def _tensorrt(flags: Flags, served: Served, catalog: Catalog) -> None:
    said = {name.partition(".")[2]: flags.pop(name) for name in list(flags) if name.startswith("speculative-config.")}
    cache = {name.partition(".")[2]: flags.pop(name) for name in list(flags) if name.startswith("kv-cache-config.")}
    kind = said.get("decoding_type")
    if "dtype" in cache:
        served.row["kv"] = cache["dtype"]
        _formats(served)
    if not kind:
        served.row["method"] = "vanilla"
        return
    depth = said.get("num_nextn_predict_layers") or said.get("max_draft_len") or said.get("max_draft_tokens")
    _method(served, kind, int(depth) if depth and depth.isdecimal() else None, said.get("speculative_model_dir") or said.get("speculative_model"), catalog)


def _llama(flags: Flags, served: Served, catalog: Catalog) -> None:
    draft = _taken(flags, ("md", "model-draft", "spec-draft-model", "hfd", "hf-repo-draft"))
    kind = _taken(flags, ("spec-type",))
    gamma = _whole(flags, "draft-max", "draft", "draft-n", "spec-draft-n-max")
    layers = _taken(flags, ("ngl", "gpu-layers", "n-gpu-layers"))
    keys, values = _taken(flags, ("ctk", "cache-type-k")), _taken(flags, ("ctv", "cache-type-v"))
    if (keys or "f16") != (values or "f16"):
        served.notes.append(f"kv: keys in {keys or 'f16'} and values in {values or 'f16'}: a cache of two formats is not modelled")
    elif keys:
        served.row["kv"] = keys
        _formats(served)
    if layers and layers.isdecimal():
        whole = (catalog.models[served.row["model"]].values.get("layers") or 0) if served.row["model"] in catalog.models else 0
        if int(layers) <= whole:
            served.notes.append(f"partly offloaded: {layers} of {whole + 1:g} layers on the GPU; times are those of all of them there")
    if draft or (kind and kind != "none"):
        _method(served, kind or "draft_model", gamma, draft, catalog)
    else:
        served.row["method"] = "vanilla"


_PARALLEL = {"pp": ("pipeline-parallel-size", "pp", "pp-size"), "dp": ("data-parallel-size", "dp", "dp-size")}

ENGINES: tuple[Engine, ...] = (
    Engine("vllm", ("vllm serve", "vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server", "api_server.py"),
           {"model": ("model",), "tp": ("tensor-parallel-size", "tp"), **_PARALLEL, "weights": ("quantization", "q"), "kv": ("kv-cache-dtype",),
            "memory_utilization": ("gpu-memory-utilization",)}, _vllm,
           ("max-num", "enable-chunked", "no-enable", "enforce-eager", "compilation", "distributed", "async", "disable-")),
    Engine("sglang", ("sglang.launch_server", "sglang serve", "launch_server.py"),
           {"model": ("model-path", "model"), "tp": ("tp", "tp-size", "tensor-parallel-size"), **_PARALLEL,
            "ep": ("ep", "ep-size", "expert-parallel-size"), "weights": ("quantization",), "kv": ("kv-cache-dtype",),
            "memory_utilization": ("mem-fraction-static",)}, _sglang,
           ("max-running", "context-length", "chunked-prefill", "cuda-graph", "disable-", "attention-backend", "schedule", "watchdog")),
    Engine("trtllm", ("trtllm-serve serve", "trtllm-serve"),
           {"model": ("model",), "tp": ("tp-size", "tensor-parallel-size"), "pp": ("pp-size", "pipeline-parallel-size"),
            "ep": ("ep-size", "moe-expert-parallel-size"), "memory_utilization": ("kv-cache-free-gpu-memory-fraction",)}, _tensorrt,
           ("max-batch", "max-num", "max-seq", "backend", "cuda-graph", "num-postprocess", "enable-", "disable-", "print-iter", "stream-interval")),
    Engine("llamacpp", ("llama-server", "llama-cli", "llama-speculative"),
           {"model": ("m", "model", "hf", "hfr", "hf-repo")}, _llama,
           ("c", "np", "parallel", "fa", "flash-attn", "b", "ub", "t", "cont-batching", "ngld", "gpu-layers-draft", "draft-min", "draft-p-min", "spec-draft")),
)  # fmt: skip
