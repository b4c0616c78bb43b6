"""The rows of a table as its ``grid`` and ``rows`` would say them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from scenario.common.yamltree import Source, YamlNode
from scenario.tables import blocks
from scenario.tables.blocks import Block
from scenario.tables.rows import Expander
from scenario.tables.section import Writing
from scenario.tables.table import MAX_ROWS
from scenario.tables.values import ValueReader

LEAST_GRID = 4
"""Combinations that make a grid worth writing when there are other rows too."""
OVERRIDE = "_override"
"""The end of the names of columns that hold values in place of computed ones."""
_NUMBERED = re.compile(r"(.+)-([0-9]+)\Z", re.DOTALL)


class RowWriter:
    """Finds ``grid`` and ``rows``."""

    def __init__(self, writer: Writing) -> None:
        self.writer = writer
        reader = ValueReader(Source("", ""), YamlNode({}, 0, 0), writer.host, MAX_ROWS)
        self.expander = Expander(reader, writer.table.defaults)
        rows = writer.table.rows
        names = [name for name in rows.columns if name != "id" and not name.endswith(OVERRIDE)]
        if writer.table.sort or writer.table.where:  # the rows of a workbook are sorted, and those left out come last
            rows = blocks.regrouped(rows, names)
        self.ids: list[str] = rows["id"].to_list()
        self.frame = rows.select([name for name in names if rows[name].null_count() < rows.height])

    def parts(self) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
        """Both sections as data. Ids are added until those that the reader makes up for the others are the table's."""
        needed: set[int] = set()
        while True:
            grid, listed, given = self.arrange(needed)
            order = self.order(grid, listed)
            made = self.made(order, given)
            wrong = {index for index, (one, other) in enumerate(zip(self.ids, made, strict=True)) if one != other}
            if not wrong:
                break
            needed |= wrong
        axes = self.cells(grid, order) if grid else {}
        whole = {name: value if isinstance(value, list) else [value] for name, value in axes.items()}
        return whole or None, [self.row(block, order, given) for block in listed]

    def row(self, block: Block, order: list[str], given: Mapping[int, str]) -> dict[str, Any]:
        """A written row, with its id where that is written."""
        cells = self.cells(block, order)
        if block.start not in given:
            return cells
        return {"id": self.base(block) if block.size > 1 else self.ids[block.start], **cells}

    def arrange(self, needed: set[int]) -> tuple[Block | None, list[Block], dict[int, str]]:
        """The grid, the rows after it, and the ids that are written, by row."""
        height = self.frame.height
        if not self.frame.width:
            blocks_ = [Block(index, 1) for index in range(height)]
            return None, blocks_, {index: self.ids[index] for index in needed}
        first = min(needed, default=height)
        head = blocks.leading(self.frame.head(first)) if first else Block(0, 0)
        listed = self.listed(head.size, needed)
        grid = head if worth_a_grid(head, listed) else None
        listed = listed if grid else self.listed(0, needed)
        given = {block.start + k: self.ids[block.start + k] for block in listed if block.start in needed for k in range(block.size)}
        return grid, listed, given

    def listed(self, start: int, needed: set[int]) -> list[Block]:
        """The rows from ``start`` on as blocks; rows with an id of their own join only as ``x-1``, ``x-2``, ..."""
        rows = self.frame.slice(start)
        found: list[Block] = []
        single = [start + index in needed for index in range(rows.height)]
        for block in blocks.split(rows, single, len(self.frame.columns)):
            block = Block(block.start + start, block.size, block.axes)
            last = found[-1] if found else None
            if last and last.start in needed and block.start < last.start + last.size:
                continue  # part of the numbered block before it
            if block.start in needed:
                block = self.numbered(block.start) or block
            found.append(block)
        return found

    def numbered(self, start: int) -> Block | None:
        """The product whose rows are numbered from 1, starting here."""
        match = _NUMBERED.match(self.ids[start])
        if not match or match[2] != "1":
            return None
        end = start
        while end < len(self.ids) and self.ids[end] == f"{match[1]}-{end - start + 1}":
            end += 1
        rows = self.frame.slice(start, end - start)
        block = blocks.split(rows, [False] * rows.height, len(rows.columns))[0]
        return Block(start, block.size, block.axes) if block.size > 1 else None

    def base(self, block: Block) -> str:
        return self.ids[block.start].removesuffix("-1")

    def order(self, grid: Block | None, listed: list[Block]) -> list[str]:
        """The columns in the order in which the reader meets them, which is a fixed point."""
        order = list(self.frame.columns)
        shapes = dict.fromkeys(self.shape(block) for block in ([grid] if grid else []) + listed)
        for _ in range(len(order) + 1):
            met = list(dict.fromkeys(name for names, axes in shapes for name in placed(names, axes, order)))
            if met == order:
                break
            order = met
        return order

    def shape(self, block: Block) -> tuple[frozenset[str], tuple[str, ...]]:
        row = self.frame.row(block.start, named=True)
        return frozenset({name for name, value in row.items() if value is not None} | set(block.names)), block.names

    def cells(self, block: Block, order: list[str]) -> dict[str, Any]:
        """The inputs of a block as they are written, the slowest axis first."""
        row = self.frame.row(block.start, named=True)
        axes = dict(block.axes)
        names, _ = self.shape(block)
        value = self.writer.value
        return {
            name: [value(name, item) for item in axes[name]] if name in axes else value(name, row[name])
            for name in placed(names, block.names, order)
        }

    def made(self, order: list[str], given: Mapping[int, str]) -> list[str]:
        """The ids that the reader gives to the rows when only ``given`` are written."""
        written = pl.Series("id", [given.get(index) for index in range(self.frame.height)], dtype=pl.String)
        frame = self.frame.select(order).with_columns(written)
        for name in ("model", "gpu", "method"):
            if name not in frame.columns:
                frame = frame.with_columns(pl.lit(None, dtype=pl.String).alias(name))
        return self.expander.with_ids(frame)["id"].to_list()


def worth_a_grid(head: Block, listed: Sequence[Block]) -> bool:
    """Whether the first product is written as a grid: alone in any size, beside other rows if it is large."""
    largest = max((block.size for block in listed), default=0)
    return head.size >= (max(LEAST_GRID, largest) if listed else 2)


def placed(names: frozenset[str], axes: Sequence[str], order: Sequence[str]) -> list[str]:
    """``names`` in ``order``, except that the axes come in their own: the places they take are the same."""
    found = [name for name in order if name in names]
    turn = iter(axes)
    return [next(turn) if name in axes else name for name in found]
