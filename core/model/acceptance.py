"""How much of a draft is accepted, in every dialect that people have it in.

A method that declares ``alpha`` and ``gamma`` understands them all: the missing parameters are added when the
plugin is loaded. A measured length or share is turned into the constant alpha that gives it (four Newton steps,
each a column), so that methods and workbooks go on reading ``alpha``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from scenario.formulas.vectors import POSITIONS
from scenario.model.spec import Column, Function, Method, Parameter

DIALECTS = ("alpha", "acceptance", "tree", "acceptance_length", "accepted_length", "accepted_share")
"""Ways to say the same thing. What a row gives takes the place of every other one that is set for all rows."""
LENGTHS = ("acceptance_length", "accepted_length", "accepted_share")
TOLERANCE = 0.01
"""Two dialects in one place agree when their lengths differ by less than this share: printed numbers are rounded."""
STEPS = 4

ADDED: dict[str, Parameter] = {
    "acceptance_length": Parameter(
        None, 1, POSITIONS + 1, "tokens", "Measured tokens per round, the bonus token included, as vLLM and SGLang print it "
        "(mean acceptance length); alpha follows from it.", "vLLM: mean acceptance length", quiet=True),
    "accepted_length": Parameter(
        None, 0, POSITIONS, "tokens", "Measured draft tokens accepted per round, without the bonus token, as TensorRT-LLM "
        "prints it; alpha follows from it.", "TensorRT-LLM: acceptance length", quiet=True),
    "accepted_share": Parameter(
        None, 0, 1, "", "Measured share of the draft tokens that is accepted (accepted / drafted); alpha follows from it.",
        "vLLM: draft acceptance rate", quiet=True),
    "measured_gamma": Parameter(
        None, 1, POSITIONS, "tokens", "Draft tokens per round when the length or share was measured; blank: the row's gamma.",
        kind="integer", quiet=True),
    "auto_gamma": Parameter(0, doc="1 drafts as many tokens as give the lowest time per token, 0 (off) included; "
                            "where no time is known, gamma holds.", kind="flag",
                            quiet=True),
}  # fmt: skip

FUNCTIONS: tuple[Function, ...] = (
    Function("alpha_start", ("length", "n"),
             "(1 - 1 / length) * (1 - ((length - 1) / n) ** 2)"
             " + ((length - 1) / n) ** 2 * (1 - (n + 1 - length) * 2 / (n * (n + 1)))",
             "A first guess of the alpha whose chain of n drafts gives this length; between the limits of long and short chains."),
    Function("alpha_step", ("a", "length", "n"),
             "a - ((1 - a ** (n + 1)) - length * (1 - a)) * (1 - a) / (1 - (n + 1) * a ** n + n * a ** (n + 1))",
             "One Newton step towards the alpha with geometric(alpha, n) = length.", "Newton's method"),
)  # fmt: skip


def complete(method: Method) -> Method:
    """``method`` with the dialects it does not declare itself, when it drafts by ``alpha`` and ``gamma``."""
    if not {"alpha", "gamma"} <= set(method.parameters):
        return method
    missing = {name: parameter for name, parameter in ADDED.items() if name not in method.parameters}
    return replace(method, parameters={**method.parameters, **missing})


def inversion(name: str, length: str, n: str) -> dict[str, Column]:
    """The columns that find the alpha whose chain of ``n`` drafts gives ``length``; the last is called ``name``.

    The error is below 1e-10 for every n of 1 to 16; blank where n is 0 or the length is out of 1 to n + 1.
    """
    def inside(a: str) -> str:
        return f"min(max({a}, 0), 0.999999)"

    found = {}
    before = f"alpha_start({length}, {n})"
    for step in range(1, STEPS + 1):
        text = f"alpha_step({inside(before)}, {length}, {n})"
        if step == 1:
            text = f"({text}) if {n} > 0 and {length} >= 1 and {length} < {n} + 1.0000001 else blank"
        column = f"{name}_step_{step}"
        found[column] = Column(text, doc=f"Newton step {step} of {STEPS} towards {name}.")
        before = column
    text = f"(1 if {length} > ({n} + 1) * 0.9999999 else max({before}, 0)) if not is_blank({before}) else blank"
    found[name] = Column(text)
    return found


def length(name: str, value: float, gamma: float) -> float:
    """Tokens per round, bonus included, that a value in one of the dialects of a single number means."""
    if name == "alpha":
        return sum(value**k for k in range(int(gamma) + 1))
    return {"acceptance_length": value, "accepted_length": value + 1, "accepted_share": value * gamma + 1}[name]


def contradiction(values: Mapping[str, tuple[float | str, tuple[float, ...] | None]], gamma: float | None) -> str:
    """What is wrong with several dialects given in one place, or an empty text.

    ``values`` maps a dialect to its value and, for a profile, its lengths by gamma.
    """
    names = list(values)
    if len(names) < 2:
        return ""
    said = f"{' and '.join(names)} both say how much is accepted" if len(names) == 2 else f"{', '.join(names)} all say how much is accepted"
    if gamma is None or "tree" in values:
        return f"{said}, and cannot be compared here"
    found = {}
    for name, (value, lengths) in values.items():
        found[name] = lengths[int(gamma)] if lengths else length(name, float(value), gamma)
    if max(found.values()) - min(found.values()) <= TOLERANCE * min(found.values()):
        return ""
    shown = ", ".join(f"{name} means {tokens:.3g}" for name, tokens in found.items())
    return f"{said}, and contradict each other: {shown} tokens a round at gamma {gamma:g}"
