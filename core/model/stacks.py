"""Method stacks: ``int4+eagle`` is a quantization and a drafting method whose answers are merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scenario.model import shared
from scenario.model.spec import Method


@dataclass(frozen=True)
class Stack:
    """One choice of methods: at most one quantization, at most one drafting method; neither is vanilla.

    A method that answers questions of both kinds fills both places.
    """

    name: str
    quantization: str = ""
    drafting: str = ""


def slots(method: Method) -> set[str]:
    """The places that a method fills: ``quantization``, ``drafting``, both, or none (vanilla)."""
    found = set()
    if any(name in shared.QUANTIZATION for name in method.columns):
        found.add("quantization")
    own = [name for name in method.columns if name not in shared.OPEN]
    if any(name in shared.DRAFTING for name in method.columns) or (not found and (own or method.parameters)):
        found.add("drafting")
    return found


def parse(text: str, methods: Mapping[str, Method]) -> tuple[Stack | None, str, str]:
    """The stack that ``text`` names, or None with what is wrong and the part of the text that is unknown."""
    parts = [part.strip() for part in text.split("+")]
    for part in parts:
        if not part:
            return None, f"there is no method beside the '+' in '{text}'", ""
        if parts.count(part) > 1:
            return None, f"'{part}' stands twice in '{text}'", ""
        if part not in methods:
            return None, f"unknown method '{part}'", part
    taken: dict[str, str] = {}
    seen: dict[str, str] = {}
    for part in parts:
        for slot in slots(methods[part]):
            if slot in taken:
                both = [name for name in methods[part].columns if name in methods[taken[slot]].columns and name in shared.OPEN]
                clash = f"both set {both[0]}" if both else f"are both {slot} methods"
                return None, f"'{taken[slot]}' and '{part}' cannot be stacked: they {clash}", ""
            taken[slot] = part
        for name in (name for name in methods[part].columns if name in shared.OPEN):  # helpers are each method's own
            if name in seen:
                return None, f"'{seen[name]}' and '{part}' cannot be stacked: both set {name}", ""
            seen[name] = part
    if len(parts) > 1 and any(not slots(methods[part]) for part in parts):
        return None, "a method that changes nothing, such as vanilla, is not stacked", ""
    quantization, drafting = taken.get("quantization", ""), taken.get("drafting", "")
    return Stack(_name(quantization, drafting) or parts[0], quantization, drafting), "", ""


def every(methods: Mapping[str, Method]) -> list[Stack]:
    """All stacks that the methods allow: each alone, then each quantization with each drafting method."""
    found: dict[str, Stack] = {}
    for name in methods:
        stack = parse(name, methods)[0]
        if stack:
            found[stack.name] = stack
    for one in methods:
        for other in methods:
            stack = parse(f"{one}+{other}", methods)[0] if one != other else None
            if stack and "quantization" in slots(methods[one]):
                found.setdefault(stack.name, stack)
    return list(found.values())


def _name(quantization: str, drafting: str) -> str:
    return "+".join(dict.fromkeys(part for part in (quantization, drafting) if part))
