"""The Checks sheet: what could be wrong in the workbook, counted live, whatever the engine would refuse when
it is read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from openpyxl.formatting.rule import FormulaRule
from openpyxl.utils import get_column_letter
from openpyxl.utils.cell import column_index_from_string, coordinate_from_string
from openpyxl.workbook import Workbook
from openpyxl.workbook.defined_name import DefinedName

from scenario import Parameter, Result
from scenario.exporters.xlsx import style as _style
from scenario.exporters.xlsx.assumptions import bounds, in_words
from scenario.exporters.xlsx.cells import Sheet
from scenario.exporters.xlsx.layout import SPARE, Layout, sheet_ref
from scenario.exporters.xlsx.tabled import add_table, heads, widths
from scenario.workbooks.form import ALL_CHECKS, ANSWER, BY_TITLE, FIRST, KEY, POSITION, TITLES, EntityTable, Scalar

OK, CHECK = "OK", "CHECK"
LONGEST = 120
"""Characters of an id that COUNTIF still compares when all of them are signs that have to be marked."""
QUADRATIC = 3_000
"""Rows up to which every id is compared with every other."""
EXACT = 300
"""Rows up to which each id is counted in a cell of its own, capital letters told apart."""
PUBLISHED = "published"
"""The format that stands for how a checkpoint stores its weights, which may be in few bits already."""
LONG = 900
"""Characters of a formula that several checks share."""
TYPED = ("models", "gpus", "hardware")
"""The catalog sheets whose blue cells are inputs."""
NEEDED = {
    "gpus": (("memory_gb", ""), ("bandwidth_tb_s", ""), ("bf16_tflops", "")),
    "models": (
        ("hidden", ""), ("layers", ""), ("heads", ""), ("vocab", ""),
        ("qk_rope_dim", "({kv_lora_rank}>0)"), ("v_head_dim", "({kv_lora_rank}>0)"),
        ("kv_heads", "({kv_lora_rank}=0)*({linear_layers}+{no_mixer_layers}<{layers})"),
        ("head_dim", "({kv_lora_rank}=0)*({linear_layers}+{no_mixer_layers}<{layers})"),
        ("experts", "({moe_layers}>0)"), ("experts_per_token", "({moe_layers}>0)"), ("expert_ffn", "({moe_layers}>0)"),
        ("ffn", "({moe_layers}+{no_ffn_layers}<{layers})"),
    ),
}  # fmt: skip
"""The fields that an entry needs, and when: neither blank nor 0."""
PARTS = (("kv_heads", "heads"), ("moe_layers", "layers"), ("window_layers", "layers"), ("linear_layers", "layers"),
         ("no_ffn_layers", "layers"), ("no_mixer_layers", "layers"), ("experts_per_token", "experts"))  # fmt: skip
"""Fields of a model that cannot be more than another one."""


def checks(
    result: Result, layout: Layout, workbook: Workbook, pages: Iterable[Sheet] = (), spared: Iterable[str] = ()
) -> Sheet:
    """Live checks with one master check, ``all_checks``.

    ``pages`` are further sheets with formulas, whose cells are looked at too; ``spared`` those of Summary that one may type in.
    """
    sheet = Sheet(workbook.create_sheet("Checks"))
    names = list(BY_TITLE["Checks"].columns)
    heads(sheet, "Checks", "Each check counts what is wrong; all of them together are the status on README.", names)
    row = FIRST
    counted = _id_counts(result, layout, sheet)
    for name, formula, advice in (*_checks(result, layout, counted), *_page_checks(pages, set(spared))):
        sheet.put(row, 1, name, "scn.text")
        sheet.formula(row, 2, formula, 0, "scn.calc", "#,##0")
        sheet.formula(row, 3, f'IF(ISERROR(B{row}),"{CHECK}",IF(B{row}=0,"{OK}","{CHECK}"))', OK, "scn.check")
        sheet.put(row, 4, advice, "scn.text")
        row += 1
    last = row - 1
    sheet.put(3, 1, "All checks", "scn.label")
    sheet.formula(
        3, 3, f'IF(COUNTIF(C{FIRST}:C{last},"{OK}")=ROWS(C{FIRST}:C{last}),"{OK}","{CHECK}")', OK, "scn.check"
    )
    workbook.defined_names[ALL_CHECKS] = DefinedName(ALL_CHECKS, attr_text="Checks!$C$3")
    good, bad = _style._solid("C6EFCE"), _style._solid(_style.RED_FILL)
    for area in ("C3", f"C{FIRST}:C{last}"):
        first = area.split(":")[0]
        sheet.sheet.conditional_formatting.add(area, FormulaRule(formula=[f'{first}="{OK}"'], fill=good))
        sheet.sheet.conditional_formatting.add(area, FormulaRule(formula=[f'{first}="{CHECK}"'], fill=bad))
    add_table(sheet, BY_TITLE["Checks"].table, names, last)
    row += 1
    sheet.put(row, 1, "For information: then and now", "scn.heading")
    row = _then_and_now(result, layout, sheet, row + 1)
    widths(sheet, [64, 16, 16, 70, 3, 12])
    _style.page(sheet.sheet)
    sheet.sheet.print_area = f"A1:D{row}"
    return sheet


Check = tuple[str, str, str]
"""What is checked, the formula that counts what is wrong, and what to do."""


def _checks(result: Result, layout: Layout, counted: str) -> Iterator[Check]:
    found = [*_sheet_checks(result, layout, counted), *_input_checks(layout)]
    if not result.full.height:  # the one empty row of the sheet is not at fault, until somebody fills it
        found = [(name, f"IF(COUNTA({layout.span('id')})=0,0,{text})", advice) for name, text, advice in found]
    yield from found
    yield from _assumption_checks(layout)
    for name in TYPED:
        if name in layout.book.tables:
            yield from _entity_checks(layout, layout.book.tables[name])
    yield from _format_checks(layout)
    for table in layout.book.tables.values():
        if table.columns:
            yield from _computed_checks(layout, table)


def _sheet_checks(result: Result, layout: Layout, counted: str) -> Iterator[Check]:
    """Errors, values over formulas and ids, on Scenarios and on the sheets beside it."""
    blocks = [f"Scenarios!${first}${FIRST}:${last}${layout.last}" for first, last in layout.computed_runs]
    errors = "+".join(f"SUMPRODUCT(--ISERROR({block}))" for block in blocks)
    typed = "+".join(f"SUMPRODUCT(--NOT(_xlfn.ISFORMULA({block})))" for block in blocks)
    yield ("Scenarios: cells with an error", errors,
           "Look for a model, GPU, method or format that is not on its sheet, or text in a number.")  # fmt: skip
    yield (
        "Scenarios: values typed over a formula",
        typed,
        "Painted red. Copy the formula from a neighbouring row to undo.",
    )
    yield "Scenarios: rows without an id", f"COUNTBLANK({layout.span('id')})", "Give every row an id."
    for title, beside in layout.helpers.items():
        first, *_, last = beside.values()
        area = f"'{title}'!${first.letter}${FIRST}:${last.letter}${layout.last}"
        yield (
            f"{title}: cells with an error",
            f"SUMPRODUCT(--ISERROR({area}))",
            "They follow from Scenarios: look there first.",
        )
        over = f"SUMPRODUCT(--NOT(_xlfn.ISFORMULA({area})))"
        yield f"{title}: values typed over a formula", over, "Copy the formula from a neighbouring row."
    twice = f'COUNTIF({counted},">1")' if counted else _twice(result, layout)
    if twice:
        yield "Scenarios: ids that stand twice", twice, "An id names one row."


def _page_checks(pages: Iterable[Sheet], spared: set[str]) -> Iterator[Check]:
    """Values typed over the formulas of the sheets that are read, not filled in."""
    for page in pages:
        title = page.sheet.title
        mine = [place for place in page.shown if place not in (spared if title == "Summary" else ()) and not _is_status(page, place)]
        terms = [f"SUMPRODUCT(--NOT(_xlfn.ISFORMULA({sheet_ref(title)}!{area})))" for area in formula_areas(mine)]
        yield from _summed(f"{title}: values typed over a formula", terms, "Made anew with the next workbook; undo, or run the file.")


def _is_status(page: Sheet, place: str) -> bool:
    """Whether a cell shows the status itself, which no check can read."""
    return bool(page.sheet[place].value == f"={ALL_CHECKS}")


def formula_areas(places: Iterable[str]) -> list[str]:
    """Cells as rectangles: runs along rows, those of rows below one another as one."""
    rows: dict[int, list[int]] = {}
    for place in places:
        letters, row = coordinate_from_string(place)
        rows.setdefault(row, []).append(column_index_from_string(letters))
    open_runs: dict[tuple[int, int], int] = {}
    found: list[tuple[int, int, int, int]] = []
    before = 0
    for row in [*sorted(rows), 0]:
        runs = set(_runs(sorted(rows[row]))) if row else set()
        for run in [run for run in open_runs if run not in runs or row != before + 1]:
            found.append((*run, open_runs.pop(run), before))
        for run in runs:
            open_runs.setdefault(run, row)
        before = row
    return [f"${get_column_letter(a)}${first}:${get_column_letter(b)}${last}" for a, b, first, last in sorted(found, key=lambda one: (one[2], one[0]))]


def _runs(columns: list[int]) -> Iterator[tuple[int, int]]:
    """Unbroken runs of numbers: first and last."""
    start = columns[0]
    for one, after in zip(columns, [*columns[1:], None], strict=True):
        if after != one + 1:
            yield start, one
            start = after or 0


def _input_checks(layout: Layout) -> Iterator[Check]:
    """Inputs of rows that are blank, out of range or not known."""
    for column in layout.columns.values():
        item = column.item
        if column.formula or item is None or column.name == "id":
            continue
        span = layout.span(column.name)
        if not item.facts.blank:
            yield f"{column.name}: blank", f"COUNTBLANK({span})", "This input has no default."
        if item.facts.type == "number" and item.parameter is not None:
            advice = in_words(item.parameter)
            name = f"{column.name}: out of range or not a number"
            yield name, _outside(span, item.parameter), advice[0].upper() + advice[1:] + "."
    for name, column in layout.columns.items():
        key = name.removesuffix(POSITION)
        if column.item is None and name not in (KEY, ANSWER) and layout.book.fields[key].facts.blank:
            text = f'SUMPRODUCT(({layout.span(key)}<>"")*({layout.span(name)}=""))'
            yield f"{key}: names that are not known", text, "Choose a name from the list."
    quantized = _quantized_twice(layout)
    if quantized:
        yield ("Scenarios: weights that are stored quantized already, with a method that quantizes them", quantized,
               "Use bf16 weights with that method, or a method that leaves them alone.")  # fmt: skip


def _format_checks(layout: Layout) -> Iterator[Check]:
    """Formats whose bits were changed, which the engine does not read back."""
    formats = layout.book.tables["formats"]
    column = layout.entity_span(formats, "bits").split(":")[0].rstrip("0123456789")
    terms = [f"IF({column}{row}={entry['bits']:.15g},0,1)" for row, entry in enumerate(formats.rows, FIRST)]
    yield from _summed("Formats: bits that are not the engine's", terms, "They cannot be changed here: undo.")


def _computed_checks(layout: Layout, table: EntityTable) -> Iterator[Check]:
    """The computed columns of a catalog sheet."""
    title = TITLES[table.name]
    letters = [layout.entity_letter(table, table.columns[i].name) for i in (0, -1)]
    area = f"{title}!${letters[0]}${FIRST}:${letters[1]}${FIRST + len(table.rows) - 1}"
    yield f"{title}: cells with an error", f"SUMPRODUCT(--ISERROR({area}))", "A field is missing or not a number."
    if table.name in TYPED:
        names, first = layout.entity_span(table, "name"), layout.entity_span(table, table.columns[0].name)
        bare = f'SUMPRODUCT(({names}<>"")*ISBLANK({first}))'
        yield f"{title}: entries without formulas", bare, "Copy the formulas of the row above."
    yield f"{title}: values typed over a formula", f"SUMPRODUCT(--NOT(_xlfn.ISFORMULA({area})))", "Painted red."


def _then_and_now(result: Result, layout: Layout, sheet: Sheet, row: int) -> int:
    for column, head in enumerate(("what", "when written", "now", ""), 1):
        sheet.put(row, column, head, "scn.head")
    frame = result.full
    sums: list[tuple[str, str, Any]] = [("rows", f"COUNTA({layout.span('id')})", frame.height)]
    for name in ("memory_gb", "round_ms", "tokens_per_s", "usd_per_million_tokens"):
        total = frame[name].sum() if frame.height else 0
        sums.append((f"sum of {name}", f"SUM({layout.span(name)})", float(total or 0)))
    for name, formula, value in sums:
        row += 1
        sheet.put(row, 1, name, "scn.text")
        sheet.put(row, 2, value, "scn.calc", "#,##0.0000" if name != "rows" else "#,##0")
        sheet.formula(row, 3, formula, value, "scn.calc", "#,##0.0000" if name != "rows" else "#,##0")
    return row


def _outside(span: str, parameter: Parameter) -> str:
    """Counts the cells of a range that hold something else than an allowed number; blanks do not count."""
    low, above, high = bounds(parameter)
    text = f"(COUNTA({span})-COUNT({span}))"
    if parameter.kind == "flag":  # TRUE and FALSE will do
        text = f"({text}-SUMPRODUCT(--ISLOGICAL({span})))"
    if low is not None:
        text += f'+COUNTIF({span},"{"<=" if above else "<"}{low:.15g}")'
    if high is not None:
        text += f'+COUNTIF({span},">{high:.15g}")'
    if parameter.kind in ("integer", "flag"):
        text += f"+IF(COUNTA({span})=COUNT({span}),SUMPRODUCT(--(INT({span})<>{span})),0)"
    return text


def _id_counts(result: Result, layout: Layout, sheet: Sheet) -> str:
    """Cells beside the checks that count each id, capital letters told apart, which no function does for all
    at once; their range."""
    names = [str(name) for name in result.full["id"].head(EXACT + 1)]
    if not names or len(names) > EXACT:
        return ""
    sheet.put(FIRST - 2, 6, "working", "scn.meta")
    sheet.put(FIRST - 1, 6, "each id, how often", "scn.head")
    ids = layout.span("id")
    for row, name in enumerate(names, FIRST):
        own = f"Scenarios!${layout.columns['id'].letter}{row}"
        sheet.formula(row, 6, f'IF({own}="",0,SUMPRODUCT(--EXACT({ids},{own})))', names.count(name), "scn.meta", "0")
    return f"$F${FIRST}:$F${FIRST + len(names) - 1}"


def _twice(result: Result, layout: Layout) -> str:
    """Counts ids that stand twice in a longer sheet; nothing where COUNTIF, which sees no capital letters,
    would count wrongly."""
    names = [str(name).lower() for name in result.full["id"].head(QUADRATIC + 1)]
    if len(names) > QUADRATIC or len(set(names)) < len(names) or any(len(name) >= LONGEST for name in names):
        return ""
    ids = exactly = layout.span("id")
    for sign in "~*?":  # which COUNTIF takes for patterns, as it takes a < in front for a comparison
        exactly = f'SUBSTITUTE({exactly},"{sign}","~{sign}")'
    return f'SUMPRODUCT(({ids}<>"")*(COUNTIF({ids},"="&{exactly})>1))'


def _quantized_twice(layout: Layout) -> str:
    """Counts rows whose weights are stored in few bits and whose method quantizes them once more."""
    bits = next((name for name in ("weights_format_bits", "weights_bits") if name in layout.columns), "")
    if "quant_no" not in layout.columns or not bits:
        return ""
    published = f'({layout.span("weights")}="{PUBLISHED}")' if "weights" in layout.columns else "0"
    return f"SUMPRODUCT(({layout.span('quant_no')}>1)*((({layout.span(bits)}<8)+{published})>0))"


def _summed(name: str, terms: Iterable[str], advice: str) -> Iterator[Check]:
    """Checks that add up many terms, in as many formulas as they need."""
    parts: list[str] = []
    number = 1
    for term in terms:
        if parts and len("+".join(parts)) + len(term) > LONG:
            yield f"{name} ({number})", "+".join(parts), advice
            parts, number = [], number + 1
        parts.append(term)
    if parts:
        yield name if number == 1 else f"{name} ({number})", "+".join(parts), advice


def _assumption_checks(layout: Layout) -> Iterator[Check]:
    """A check for each group of assumptions."""
    scalars = list(enumerate(layout.book.scalars.values(), FIRST))
    for owner, group in groupby(scalars, key=lambda pair: pair[1].owner):
        terms = [term for row, scalar in group if (term := _assumption(layout, scalar, f"Assumptions!$C${row}"))]
        name = f"Assumptions, {owner or 'all rows'}: out of range, not whole, unknown or not a number"
        yield from _summed(name, terms, "The column 'allowed' says what each may be.")


def _assumption(layout: Layout, scalar: Scalar, cell: str) -> str:
    """1 where one assumption is not allowed, else 0."""
    parameter = scalar.parameter
    if scalar.owner and scalar.name.endswith("_default") and isinstance(scalar.value, int | float):
        return f"IF({cell}={scalar.value:.15g},0,1)"  # the fallback of a derived value, which is the engine's
    blank = 0 if scalar.value is None or parameter.derive or parameter.default is None else 1
    if parameter.kind in ("number", "integer", "flag"):
        return _not_a_number(parameter, cell, blank)
    if parameter.kind == "choice" and parameter.choices and scalar.name not in ("default_weights", "default_kv"):
        one = ",".join(f'{cell}="{choice}"' for choice in parameter.choices)
        return f'IF({cell}="",{blank},IF(OR({one}),0,1))'
    names = _known_names(layout, scalar)
    return f'IF({cell}="",{blank},IF(ISNUMBER(MATCH({cell},{names},0)),0,1))' if names else ""


def _not_a_number(parameter: Parameter, cell: str, blank: int) -> str:
    """1 where a cell holds no number, or one that is out of range; ``blank`` where it holds nothing."""
    low, above, high = bounds(parameter)
    wrong = [f"{cell}{'<=' if above else '<'}{low:.15g}"] if low is not None else []
    wrong += [f"{cell}>{high:.15g}"] if high is not None else []
    wrong += [f"INT({cell})<>{cell}"] if parameter.kind in ("integer", "flag") else []
    test = f"IF(OR({','.join(wrong)}),1,0)" if wrong else "0"
    other = f'IF({cell}="",{blank},1)'
    return f"IF(ISNUMBER({cell}),{test},{f'IF(ISLOGICAL({cell}),0,{other})' if parameter.kind == 'flag' else other})"


def _known_names(layout: Layout, scalar: Scalar) -> str:
    """Where the names stand that an assumption may be; empty for one that is checked elsewhere."""
    if scalar.parameter.kind == "profile":
        return layout.vector_range("profiles", "names")
    if scalar.parameter.kind == "model":
        return layout.entity_span(layout.book.tables["models"], "name")
    if scalar.name in ("default_weights", "default_kv"):
        return layout.entity_span(layout.book.tables["formats"], "name")
    return ""


def _entity_checks(layout: Layout, table: EntityTable) -> Iterator[Check]:
    """What would be refused of the blue cells of a catalog sheet; rows that somebody adds below count as well."""
    title, last = TITLES[table.name], FIRST + len(table.rows) + SPARE - 1
    terms = []

    def alike(item: Any) -> tuple[Any, ...]:
        return (*bounds(item.parameter), item.parameter.kind)

    for _, group in groupby((item for item in table.inputs if item.parameter), key=alike):
        items = list(group)
        letters = [layout.entity_letter(table, items[index].name) for index in (0, -1)]
        parameter = items[0].parameter
        assert parameter is not None
        terms.append(_outside(f"{sheet_ref(title)}!${letters[0]}${FIRST}:${letters[1]}${last}", parameter))
    yield from _summed(
        f"{title}: inputs out of range, not whole or not a number",
        terms,
        "Blue cells; the engine refuses such a value.",
    )
    span = {item.name: layout.entity_span(table, item.name) for item in table.inputs}
    names = layout.entity_span(table, "name")
    needed = [
        f'SUMPRODUCT(({names}<>"")*{when.format(**span) + "*" if when else ""}({span[name]}=0))'
        for name, when in NEEDED.get(table.name, ())
    ]
    needed += [
        f'SUMPRODUCT(({names}<>"")*({span[item.name]}=""))'
        for item in table.inputs
        if item.parameter
        and item.parameter.default not in (None, 0)
        and item.name not in dict(NEEDED.get(table.name, ()))
    ]
    yield from _summed(f"{title}: fields that are missing", needed, "An entry needs them to be computed.")
    if table.name == "models":
        more = [f"SUMPRODUCT(--({span[part]}>{span[whole]}))" for part, whole in PARTS]
        yield from _summed(
            f"{title}: parts that are more than the whole", more, "Such as more experts per token than experts."
        )
