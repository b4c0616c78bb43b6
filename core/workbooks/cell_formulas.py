"""Formulas of a workbook in terms of column names, so that moved columns and another program's spelling do not count."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TOKEN = re.compile(
    r"""(?P<text>"(?:[^"]|"")*")
      | (?P<sheet>(?:'(?:[^']|'')+'|[A-Za-z_][\w.]*)!)?(?P<ref>\$?[A-Za-z]{1,3}\$?[0-9]+(?::\$?[A-Za-z]{1,3}\$?[0-9]+)?)(?![\w(])
      | (?P<number>[0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?)
      | (?P<word>[A-Za-z_][\w.]*)
      | (?P<space>\s+)
      | (?P<other>.)""",
    re.VERBOSE,
)
_REF = re.compile(r"\$?([A-Za-z]{1,3})\$?([0-9]+)")


def canonical(formula: str, names: Mapping[str, str], row: int) -> str:
    """A formula of row ``row`` with its same-row references as ``[name]`` by ``names`` (letters -> header).

    Numbers are written one way, function names in capitals without ``_xlfn.``, ranges on other sheets by
    sheet only (rows and columns there move when an analyst inserts some).
    """
    out: list[str] = []
    for match in _TOKEN.finditer(formula.lstrip("=")):
        kind, text = match.lastgroup, match.group()
        if kind == "space":
            continue
        if kind == "text":
            out.append(text)
        elif match.group("ref"):
            sheet = (match.group("sheet") or "").rstrip("!").strip("'").replace("$", "")
            found = _REF.findall(match.group("ref"))
            if sheet and sheet.lower() != "scenarios":
                out.append(f"{sheet.lower()}!")
            elif len(found) == 1 and int(found[0][1]) == row:
                letters = found[0][0].upper()
                out.append(f"[{names.get(letters, letters)}]")
            else:
                out.append("[" + ":".join(names.get(letters.upper(), letters.upper()) for letters, _ in found) + "]")
        elif kind == "number":
            out.append(f"{float(text):.15g}")
        elif kind == "word":
            word = text.upper().removeprefix("_XLFN.")
            out.append(word)
        elif text == ")" and out[-1:] == ["("] and out[-2:-1] in (["TRUE"], ["FALSE"]):
            out.pop()  # LibreOffice writes TRUE()
        else:
            out.append(text)
    return "".join(out)
