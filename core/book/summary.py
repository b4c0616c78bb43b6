"""The summary of a table, checked: every formula of its cells and templates with facts, and the row that it reads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from scenario.common.errors import FormulaError, Problem, nearest
from scenario.common.yamltree import Source
from scenario.common.yamltree import YamlNode as Place
from scenario.formulas import facts
from scenario.formulas.expr import Name, Node
from scenario.formulas.facts import Facts
from scenario.tables import summary as asked

Env = Mapping[str, Facts]


@dataclass(frozen=True)
class Piece:
    """A piece of a text: ``text`` as it stands, or what ``node`` is in the row with the id ``row`` (empty: no row, assumptions alone).

    ``digits`` are the decimals it is shown with, rounded half away from zero (-1: tens); None: all that a cell keeps.
    """

    text: str = ""
    node: Node | None = None
    row: str = ""
    digits: int | None = None
    thousands: bool = False


Text = tuple[Piece, ...]


@dataclass(frozen=True)
class Shown:
    """What one cell shows: the text of the first of ``when`` whose condition holds, else ``text``, else the value of ``node``.

    ``row`` is the id of the row it is of. ``field`` names the column when the value is one column's. A cell of a heading
    is empty.
    """

    row: str
    node: Node | None = None
    field: str = ""
    format: str = ""
    text: Text = ()
    when: tuple[tuple[Node, Text], ...] = ()

    @property
    def nodes(self) -> Iterator[tuple[Node, str]]:
        """Every formula with the row that it reads."""
        if self.node is not None:
            yield self.node, self.row
        yield from ((test, self.row) for test, _ in self.when)
        for text in (self.text, *(said for _, said in self.when)):
            yield from ((piece.node, piece.row) for piece in text if piece.node is not None)


@dataclass(frozen=True)
class Line:
    """One metric: its title, and a cell for each column; a ``heading`` has no cells. ``extra`` ones are only offered."""

    title: Text
    cells: tuple[Shown, ...] = ()
    note: Text = ()
    heading: bool = False
    extra: bool = False


@dataclass(frozen=True)
class SummaryView:
    """The summary that a workbook shows: ``columns`` are (row id, title), ``top`` (assumption, what it is called)."""

    columns: tuple[tuple[str, str], ...]
    lines: tuple[Line, ...]
    top: tuple[tuple[str, str], ...] = ()
    about: str = ""
    notes: tuple[Text, ...] = ()
    chosen_columns: Mapping[int, int] = field(default_factory=dict)
    """Columns in whose place a reader chose to see another, by position."""
    chosen_lines: Mapping[int, int] = field(default_factory=dict)
    """Metrics in whose place another is shown, by position among the lines without headings."""

    @property
    def metrics(self) -> tuple[Line, ...]:
        """The lines without headings."""
        return tuple(line for line in self.lines if not line.heading)

    @property
    def nodes(self) -> Iterator[tuple[Node, str]]:
        """Every formula with the row that it reads."""
        for line in self.lines:
            for cell in line.cells:
                yield from cell.nodes
        for text in (*(part for line in self.lines for part in (line.title, line.note)), *self.notes):
            yield from ((piece.node, piece.row) for piece in text if piece.node is not None)


@dataclass
class Builder:
    """Checks a summary. ``tree`` reads a formula, ``env`` is known of every name that one may read, ``scalars`` those that
    are no columns; ``titles`` is what public columns are called."""

    tree: Callable[[str], Node]
    env: Env
    scalars: Collection[str]
    titles: Mapping[str, str]
    ids: Collection[str]
    source: Source
    problems: list[Problem] = field(default_factory=list)

    def view(self, table: asked.SummaryTable, offered: Collection[str]) -> SummaryView:
        """The checked summary; ``offered`` are columns that its drop-downs offer as well."""
        lines = [self.line(table, metric) for metric in table.metrics]
        seen = {line.title for line in lines}
        lines += [line for name in offered if (line := self.offer(table, name)).title not in seen]
        self.alike(
            [
                (line.title, metric.cell.node)
                for line, metric in zip(lines, table.metrics, strict=False)
                if not line.heading
            ]
        )
        self.problems += [self.source.problem(table.top_nodes.get(name), f"there is no assumption '{name}'", nearest(name, self.scalars))
                          for name in table.top if name not in self.scalars]  # fmt: skip
        columns = tuple((column.id, column.title) for column in table.columns)
        notes = tuple(self.text(note) for note in table.notes)
        places = {name: place for place, (name, _) in enumerate(columns)}
        across = {places[name]: places[other] for name, other in table.chosen_columns.items() if {name, other} <= places.keys()}
        return SummaryView(columns, tuple(lines), tuple(table.top.items()), table.about, notes, across, self.chosen(table, lines))

    def chosen(self, table: asked.SummaryTable, lines: list[Line]) -> dict[int, int]:
        """The metrics that are shown in place of others, by position."""
        metrics = [line for line in lines if not line.heading]
        named = {line.cells[0].field: place for place, line in enumerate(metrics) if line.extra and line.cells}
        found = {number - 1: other - 1 for number, other in table.chosen_rows.items() if isinstance(other, int)}
        return found | {number - 1: named[other] for number, other in table.chosen_rows.items() if other in named and isinstance(other, str)}

    def line(self, table: asked.SummaryTable, metric: asked.Metric) -> Line:
        note = self.text(metric.note) if metric.note else ()
        if metric.heading:
            return Line(self.text(metric.title) if metric.title else (), heading=True)
        title = (
            self.text(metric.title) if metric.title else (Piece(self.titles.get(metric.cell.show, metric.cell.show)),)
        )
        return Line(title, tuple(self.cell(metric.of(column.id), column) for column in table.columns), note)

    def offer(self, table: asked.SummaryTable, name: str) -> Line:
        node = self.checked(name, None)
        return Line(
            (Piece(self.titles.get(name, name)),),
            tuple(Shown(column.id, node, name) for column in table.columns),
            extra=True,
        )

    def cell(self, cell: asked.MetricCell, column: asked.Across) -> Shown:
        row = column.row(cell.of)
        node = self.checked(cell.show, cell.node) if cell.show and cell.text is None else None
        when = []
        for test, said in cell.when:
            found = self.checked(test, said.node)
            if found is not None and found.facts.type != "flag":
                self.problems.append(
                    self.source.problem(said.node, f"'{test}' is no condition, such as not fits or batch > 1")
                )
            elif found is not None:
                when.append((found, self.text(said, row, column)))
        named = node.id if isinstance(node, Name) else ""
        return Shown(row, node, named, cell.format, self.text(cell.text, row, column) if cell.text else (), tuple(when))

    def text(self, template: asked.Template, row: str = "", column: asked.Across | None = None) -> Text:
        """A template's pieces; one without a row reads assumptions, or the row that it names."""
        found = []
        for part in template.parts:
            if not part.formula:
                found.append(Piece(part.text))
                continue
            at = column.row(part.at) if column and part.at else part.at or row
            if at and at not in self.ids and at != row:
                self.problems.append(
                    self.source.problem(template.node, f"there is no row '{at}'", nearest(at, self.ids))
                )
            node = self.checked(part.formula, template.node, rows=bool(at))
            if node is not None:
                found.append(Piece("", node, at, part.digits, part.thousands))
        return tuple(found)

    def checked(self, text: str, place: Place | None, *, rows: bool = True) -> Node | None:
        env = self.env if rows else {name: self.env[name] for name in self.scalars if name in self.env}
        try:
            return facts.check(self.tree(text), env, text, [*env])
        except FormulaError as error:
            hint = "" if rows else "without a row only assumptions can be read; name a row: {speedup @ id}"
            said = (
                self.source.problem(place, f"'{text}': {problem.message}", problem.hint or hint)
                for problem in error.problems
            )
            self.problems += said
            return None

    def alike(self, titles: list[tuple[Text, Place]]) -> None:
        """Metrics are chosen by their titles: each needs its own."""
        seen: set[Text] = set()
        for title, place in titles:
            if title in seen:
                said = "".join(piece.text or "{}" for piece in title)
                self.problems.append(
                    self.source.problem(place, f"two metrics are called '{said}'", "give one of them another title:")
                )
            seen.add(title)
