"""Finds the products in a list of rows: where a grid or a list inside a row says the same in fewer words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

Axis = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Block:
    """``size`` rows from ``start`` on: every combination of ``axes``, the last varying fastest."""

    start: int
    size: int
    axes: tuple[Axis, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.axes)


def leading(rows: pl.DataFrame) -> Block:
    """The largest product that the rows begin with; it may be one row.

    Each input that varies in it does so alone: the fastest runs through its values, then the next is one
    further. So the axes can be taken from the fastest to the slowest, each as long as it goes.
    """
    codes = rows.select(pl.all().rank("dense").fill_null(0).cast(pl.UInt32))
    size, axes = 1, []
    while size < rows.height:
        free = [name for name in codes.columns if name not in axes]
        turned = [name for name in free if codes[name][size] != codes[name][0]]
        if len(turned) != 1:
            break
        count = _length(codes, turned[0], size)
        if count < 2:
            break
        axes.append(turned[0])
        size *= count
    sized = []
    step = 1
    for name in axes:
        values = _distinct(rows[name].head(size).gather_every(step).to_list())
        sized.append((name, values))
        step *= len(values)
    return Block(0, size, tuple(reversed(sized)))


def regrouped(rows: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The rows in the order of a product if they are one in any order, else as they are; numbers go up."""
    varying = [name for name in names if rows[name].n_unique() > 1]
    if not varying or math.prod(rows[name].n_unique() for name in varying) != rows.height or rows.select(varying).is_duplicated().any():
        return rows
    keys = []
    for name in varying:
        values = rows[name].unique(maintain_order=True)
        order = values.sort(nulls_last=True) if values.dtype.is_numeric() else values
        keys.append(pl.col(name).replace_strict(order, range(len(order)), return_dtype=pl.UInt32).alias(f"#{name}"))
    return rows.with_columns(keys).sort([f"#{name}" for name in varying]).drop([f"#{name}" for name in varying])


def _length(codes: pl.DataFrame, axis: str, size: int) -> int:
    """How many blocks of ``size`` rows follow each other that differ in nothing but a new value of ``axis``."""
    place = pl.int_range(pl.len(), dtype=pl.UInt32)
    tests = [pl.col(name) != pl.col(name).gather(place % size) for name in codes.columns if name != axis]
    tests.append(pl.col(axis) != pl.col(axis).gather(place // size * size))
    wrong = codes.select(pl.any_horizontal(tests).arg_true().first()).item()
    whole = (codes.height if wrong is None else int(wrong)) // size
    values = codes[axis].gather_every(size).head(whole)
    again = values.is_first_distinct().not_().arg_true()
    return int(again[0]) if len(again) else whole


def _distinct(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))


def split(rows: pl.DataFrame, single: Sequence[bool], most: int) -> list[Block]:
    """All rows as consecutive products, each as large as it can be; rows marked ``single`` stand alone.

    ``most`` axes a product may have.
    """
    columns = {name: rows[name].to_list() for name in rows.columns}
    blocks: list[Block] = []
    start, height = 0, rows.height
    while start < height:
        end = start + 1
        if not single[start]:
            while end < height and not single[end]:
                end += 1
        while start < end:
            block = _product(columns, start, end, most)
            blocks.append(block)
            start += block.size
    return blocks


def _product(columns: dict[str, list[Any]], start: int, end: int, most: int) -> Block:
    """The largest product that begins at ``start``."""
    size = 1
    axes: list[Axis] = []
    while start + size < end and len(axes) < most:
        taken = {name for name, _ in axes}
        turned = [name for name, values in columns.items() if name not in taken and values[start + size] != values[start]]
        if len(turned) != 1:
            break
        axis = columns[turned[0]]
        others = [values for name, values in columns.items() if name != turned[0]]
        found = {axis[start]: None}
        at = start + size
        while at + size <= end and axis[at] not in found:
            if axis[at : at + size] != [axis[at]] * size:
                break
            if any(values[at : at + size] != values[start : start + size] for values in others):
                break
            found[axis[at]] = None
            at += size
        if len(found) < 2:
            break
        axes.append((turned[0], tuple(found)))
        size *= len(found)
    return Block(start, size, tuple(reversed(axes)))
