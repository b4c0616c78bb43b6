"""The Trees sheet: draft trees node by node, their path probabilities, and the tokens and rows by depth. Live."""

from __future__ import annotations

from openpyxl.utils import get_column_letter
from openpyxl.workbook import Workbook

from scenario.exporters.xlsx import style as _style
from scenario.exporters.xlsx.cells import Sheet
from scenario.exporters.xlsx.layout import Layout
from scenario.exporters.xlsx.tabled import add_table, heads, widths
from scenario.workbooks.form import BY_TITLE, FIRST, POSITIONS

TOKENS, ROWS = 4, 4 + POSITIONS + 1
"""The columns from which tokens and rows by depth stand."""


def trees(layout: Layout, workbook: Workbook) -> Sheet:
    """The list of trees with what formulas read; below it the rates, and below these every node."""
    sheet = Sheet(workbook.create_sheet("Trees"))
    depths = range(POSITIONS + 1)
    names = ["tree", "nodes", "depth", *(f"E{d}" for d in depths), *(f"rows{d}" for d in depths), "doc", "source"]
    heads(
        sheet,
        "Draft trees",
        "Expected tokens per round (bonus included) and rows to verify when a tree is cut at each depth; "
        "below, the chance of each guess by depth and rank (blue), and every node with the chance that its "
        "whole path is accepted.",
        names,
    )
    found = list(layout.book.vectors.trees.values())
    rate_row = FIRST + len(found) + 2
    sheet.put(
        rate_row - 1,
        1,
        "Chance of the draft's 1st, 2nd, ... guess, given that the path so far was accepted; the last depth goes on.",
        "scn.heading",
    )
    widest = max(len(row) for tree in found for row in tree.rates)
    for column, head in enumerate(["tree", "depth", *(f"guess {rank + 1}" for rank in range(widest))], 1):
        sheet.put(rate_row, column, head, "scn.head")
    places: dict[tuple[str, int], int] = {}
    for tree in found:
        for depth, rates in enumerate(tree.rates, 1):
            rate_row += 1
            places[tree.name, depth] = rate_row
            sheet.put(rate_row, 1, tree.name, "scn.label")
            sheet.put(rate_row, 2, depth, "scn.calc")
            for rank, rate in enumerate(rates, 3):
                sheet.put(rate_row, rank, rate, "scn.input", "0.0000")
    node_row = rate_row + 3
    sheet.put(node_row - 1, 1, "Nodes: each is a row that the target verifies.", "scn.heading")
    for column, head in enumerate(("tree", "node", "parent", "rank", "depth", "chance", "path"), 1):
        sheet.put(node_row, column, head, "scn.head")
    for index, tree in enumerate(found):
        first = node_row + 1
        shares = tree.probabilities
        for number, (parent, rank, depth) in enumerate(tree.nodes):
            node_row += 1
            for column, value in enumerate((tree.name, number + 1, parent + 1, rank + 1, depth), 1):
                sheet.put(node_row, column, value, "scn.label" if column == 1 else "scn.calc")
            held = min(depth, len(tree.rates))
            given = rank < len(tree.rates[held - 1])
            sheet.formula(node_row, 6, f"${get_column_letter(3 + rank)}${places[tree.name, held]}" if given else "0",
                          tree.rate(depth, rank), "scn.calc", "0.0000")  # fmt: skip
            above = f"$G{first + parent}*" if parent >= 0 else ""
            sheet.formula(node_row, 7, f"{above}$F{node_row}", shares[number], "scn.calc", "0.0000")
        row = FIRST + index
        sheet.put(row, 1, tree.name, "scn.label")
        sheet.formula(row, 2, f"COUNT($B${first}:$B${node_row})", float(len(tree.nodes)), "scn.calc")
        sheet.formula(
            row, 3, f"MAX($E${first}:$E${node_row})", float(max(depth for _, _, depth in tree.nodes)), "scn.calc"
        )
        for depth in depths:
            span = f'$E${first}:$E${node_row},"<={depth}"'
            sheet.formula(
                row,
                TOKENS + depth,
                f"1+SUMIF({span},$G${first}:$G${node_row})",
                tree.tokens[depth],
                "scn.calc",
                "0.0000",
            )
            sheet.formula(row, ROWS + depth, f"COUNTIF({span})", tree.rows[depth], "scn.calc", "#,##0")
        sheet.put(row, len(names) - 1, tree.doc, "scn.meta")
        sheet.put(row, len(names), tree.source, "scn.meta")
    add_table(sheet, BY_TITLE["Trees"].table, names, FIRST + len(found) - 1)
    widths(sheet, [28, *[9.0] * (len(names) - 3), 40, 50])
    _style.page(sheet.sheet, rows=f"{FIRST - 1}:{FIRST - 1}", columns="A:A")
    return sheet
