"""The rows of a table: the grid's combinations and the rows written out, as one frame of given inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from scenario import shared
from scenario.entities import FORMATS
from scenario.errors import Problem, TableError
from scenario.yamltree import Node

if TYPE_CHECKING:
    from scenario.table import Reader

TEXT_NAMES = ("id", "model", "gpu", "method", "time_model")


class Expander:
    """Turns the ``grid`` and ``rows`` sections into a frame; problems go to the reader's source."""

    def __init__(self, reader: Reader, defaults: Mapping[str, float | str]) -> None:
        self.reader, self.source, self.defaults = reader, reader.source, defaults
        self.known = {**shared.INPUTS, **reader.parameters}

    def frame(self, grid: Node | None, listed: Node | None) -> pl.DataFrame:
        """One row per scenario: ``id``, then every input that some row gives."""
        if grid is None and listed is None:
            self.source.say(self.reader.root, "the table has no rows", "give a grid: or rows:")
        axes: dict[str, list[Any]] | None = self.axes(grid, self.reader.section(grid, "grid")) if grid else None
        written: list[tuple[Node, dict[str, list[Any]]]] = []
        if listed is not None and not isinstance(listed.value, list):
            self.source.say(listed, f"rows is a list, not {listed.kind}")
        elif listed is not None:
            for item in listed.value:
                if not isinstance(item.value, dict):
                    self.source.say(item, f"a row is a mapping of inputs, not {item.kind}")
                    continue
                found = self.axes(item, item.value, row=True)
                if found is not None:
                    written.append((item, found))
            if not listed.value and grid is None:
                self.source.say(listed, "rows is empty")
        self.size(grid, axes, written)
        if self.source.problems:
            return pl.DataFrame()
        parts = []
        if axes:
            parts.append(self.product(axes))
        if written:
            parts.append(self.explicit(written))
        frame = pl.concat(parts, how="diagonal") if parts else pl.DataFrame()
        for name in ("model", "gpu", "method"):
            if name not in frame.columns and name in self.defaults:
                frame = frame.with_columns(pl.lit(None, dtype=pl.String).alias(name))
        self.twice_quantized(frame, [node for node, _ in written])
        return self.with_ids(frame)

    def axes(self, node: Node, cells: Mapping[str, Node], row: bool = False) -> dict[str, list[Any]] | None:
        """The checked values of each input of a grid or of one row; None when something is wrong."""
        before = len(self.source.problems)
        found: dict[str, list[Any]] = {}
        for name, cell in cells.items():
            key = node.keys.get(name, cell)
            if name not in self.known and name not in TEXT_NAMES:
                if name in shared.SCALARS:
                    self.source.say(key, f"'{name}' is one value for the whole table", f"defaults: {{{name}: {cell.value}}}")
                else:
                    self.source.unknown(key, name, "input", ["id", "model", "gpu", "method", *self.known])
                continue
            if name == "id" and not row:
                self.source.say(key, "a grid has no id: its rows are named by what varies")
                continue
            found[name] = self.values(name, key, cell)
        for name in shared.REQUIRED:
            if name not in found and name not in self.defaults and name not in cells:
                hint = "context: 0 is the weights-only bound" if name == "context" else f"or give it under defaults: {{{name}: ...}}"
                where = "the grid" if not row else "this row"
                self.source.say(node, f"{where} does not say which {name}; it is never guessed", hint)
        return found if len(self.source.problems) == before else None

    def values(self, name: str, key: Node, cell: Node) -> list[Any]:
        items = cell.value if isinstance(cell.value, list) else [cell]
        parameter = self.known.get(name)
        if parameter and parameter.kind == "profile" and isinstance(cell.value, list):
            numbers = [isinstance(item.value, int | float) for item in items]
            if items and all(numbers):
                items = [cell]
        if not items:
            self.source.say(key, f"the list for {name} is empty: the table would have no rows")
        found: list[Any] = []
        seen: set[Any] = set()
        for item in items:
            if item.value is None and (parameter is not None or name in self.defaults):
                value = None  # blank: the default applies
            elif name == "id":
                value = str(item.value) if isinstance(item.value, str | int | float) else None
                if value is None or not value.strip() or len(value) > 200:
                    self.source.say(item, f"an id is a short text, not {item.kind}")
            elif parameter is None:
                value = self.reader.text_input(name, item)
            else:
                value = self.reader.value(name, parameter, item)
            if value is not None and value in seen:
                self.source.say(item, f"{name} lists {value if isinstance(value, str) else format(value, 'g')} twice")
            seen.add(value)
            found.append(value)
        return found

    def size(self, grid: Node | None, axes: dict[str, list[Any]] | None, written: list[tuple[Node, dict[str, list[Any]]]]) -> None:
        limit = self.reader.max_rows
        in_grid = math.prod(len(values) for values in axes.values()) if axes else 0
        if in_grid > limit:
            shape = " x ".join(f"{name} {len(values)}" for name, values in (axes or {}).items() if len(values) > 1)
            self.source.say(grid, f"the grid makes {in_grid:,} rows ({shape}); the limit is {limit:,}",
                            "shorten a list, or allow more with --max-rows")  # fmt: skip
        total = in_grid + sum(math.prod(len(values) for values in found.values()) for _, found in written)
        if total > limit >= in_grid:
            self.source.say(grid or self.reader.root, f"the table makes {total:,} rows; the limit is {limit:,}",
                            "allow more with --max-rows")  # fmt: skip
        if self.reader.root.value and grid is not None and axes == {} and not written:
            self.source.say(grid, "the grid is empty")

    def product(self, axes: dict[str, list[Any]]) -> pl.DataFrame:
        frame: pl.DataFrame | None = None
        for name, values in axes.items():
            axis = pl.DataFrame({name: pl.Series(values, dtype=self.dtype(name), strict=False)})
            frame = axis if frame is None else frame.join(axis, how="cross", maintain_order="left_right")
        assert frame is not None
        return frame

    def explicit(self, written: list[tuple[Node, dict[str, list[Any]]]]) -> pl.DataFrame:
        # Rows that give one value each are the common case and are built column by column at once.
        columns: dict[str, None] = {}
        for _, found in written:
            columns.update(dict.fromkeys(found))
        order = list(columns)
        plain: dict[str, list[Any]] = {name: [] for name in order}
        for _, found in written:
            count = math.prod(len(values) for values in found.values())
            repeat = count
            for name in order:
                values = found.get(name, [None])
                repeat //= len(values)
                cycle = [value for value in values for _ in range(repeat)]
                plain[name] += (cycle * (count // len(cycle))) if cycle else []
            if count > 1 and "id" in found and len(found["id"]) == 1:
                for index in range(count):
                    plain["id"][-count + index] = f"{found['id'][0]}-{index + 1}"
        return pl.DataFrame({name: pl.Series(values, dtype=self.dtype(name), strict=False) for name, values in plain.items()})

    def dtype(self, name: str) -> type[pl.DataType]:
        if name in TEXT_NAMES or self.known[name].kind in ("model", "profile", "choice"):
            return pl.String
        return pl.Float64

    def twice_quantized(self, frame: pl.DataFrame, places: list[Node]) -> None:
        """Weights that are stored in under 8 bits cannot be quantized by a method once more."""
        small = [name for name, (bits, _) in FORMATS.items() if bits < 8]
        methods = [stack.name for stack in self.reader.stacks.values() if stack.quantization]
        default = self.defaults.get("weights")
        stored = pl.col("weights").fill_null(default or "bf16") if "weights" in frame.columns else pl.lit(default or "bf16")
        method = pl.col("method").fill_null(self.defaults.get("method", "")) if "method" in frame.columns else pl.lit("")
        bad = frame.filter(stored.is_in(small) & method.is_in(methods)) if methods else frame.head(0)
        if not bad.is_empty():
            name = str(bad["method"][0] or self.defaults.get("method"))
            kept = bad["weights"][0] if "weights" in bad.columns and bad["weights"][0] else default
            node = next((place for place in places if place.value.get("method") and "weights" in place.value), None)
            section = self.reader.root.value.get("grid") or self.reader.root.value.get("rows")
            self.source.say(node or section, f"the weights are stored as {kept} already: method '{name}' cannot quantize them again",
                            f"use weights: bf16 with {name}, or {kept} weights with a method that leaves them alone")  # fmt: skip

    def with_ids(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Ids that were given, else a slug of what varies; a repeated slug gets a number."""
        given = frame["id"] if "id" in frame.columns else pl.Series("id", [None] * frame.height, dtype=pl.String)
        repeated = given.drop_nulls().filter(given.drop_nulls().is_duplicated())
        if len(repeated):
            raise TableError([Problem(f"the id '{name}' is given to {(given == name).sum()} rows; an id names one row", file=self.source.file)
                              for name in repeated.unique(maintain_order=True).to_list()[:10]])  # fmt: skip
        varying = [name for name in frame.columns if name not in ("id",) and frame[name].n_unique() > 1]
        names = [name for name in ("model", "gpu", "batch", "context", "method") if name in varying]
        names += [name for name in varying if name not in names]
        parts = [self.slug(name) for name in names or ["model"] if name in frame.columns]
        slug = pl.concat_str(parts, separator="_", ignore_nulls=True) if parts else pl.lit("row")
        frame = frame.with_columns(slug=slug).with_columns(slug=pl.when(pl.col("slug") == "").then(pl.lit("row")).otherwise("slug"))
        frame = frame.with_columns(given.alias("id")).with_columns(pl.coalesce("id", "slug").alias("id"))
        count = pl.int_range(pl.len()).over("id") + 1
        numbered = pl.when(count > 1).then(pl.concat_str("id", pl.lit("-"), count.cast(pl.String))).otherwise("id")
        frame = frame.with_columns(id=numbered)
        while frame["id"].is_duplicated().any():
            # "x" twice beside an "x-2" of its own: count on until every id is one of a kind.
            frame = frame.with_columns(id=pl.when(pl.col("id").is_duplicated() & pl.col("id").is_first_distinct().not_())
                                       .then(pl.col("id") + "-2").otherwise("id"))  # fmt: skip
        return frame.select("id", pl.exclude("id", "slug"))

    def slug(self, name: str) -> pl.Expr:
        if self.dtype(name) == pl.String:
            text = pl.col(name).str.replace_all(r"[^A-Za-z0-9.+-]+", "-")
            return text if name in ("model", "gpu", "method") else pl.lit(name.replace("_", "-") + "-") + text
        value = pl.col(name)
        whole = pl.when(value == value.floor()).then(value.cast(pl.Int64, strict=False).cast(pl.String)).otherwise(value.cast(pl.String))
        tag = {"batch": "b", "context": "c", "gpus": "x", "gamma": "g"}.get(name, name.replace("_", "-") + "-")
        return pl.lit(tag) + whole
