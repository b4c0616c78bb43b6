"""Renting against owning on the sheet Answer: dollars per GPU and hour of each, and from which use on owning is cheaper."""

from __future__ import annotations

from typing import Any

from openpyxl.styles import Alignment
from openpyxl.worksheet.datavalidation import DataValidation

from scenario.exporters.xlsx import style as _style
from scenario.exporters.xlsx.answer_page import TOP, Answer

YEARS, PUE, KWH, H100 = 4.0, 1.58, 0.0806, 33_750.0
HOURS_A_YEAR = 8760.0
QUOTE = "no source: type your quote"
PURCHASES = {"h100-sxm": (H100, "a DGX H100 of 8 at about $270,000: SemiAnalysis, May 2023, as cited by Epoch AI, training-cost-trends")}
"""What a GPU costs to buy with its share of the server, and who says so."""


def cost(page: Answer, row: int) -> int:
    """The block from ``row`` on; gives its last row."""
    sheet = page.sheet
    number, gpu = page.columns["#"], page.columns["gpu"]
    sheet.put(row, 1, "Rent or own", "scn.heading")
    sheet.put(row, 2, "dollars per GPU and hour; the GPU is that of the model's row above", "scn.subtitle")
    first, last = TOP, page.last  # from the header on: Gnumeric looks nothing up in a range of one cell
    at = {name: row + 1 + index for index, name in enumerate(
        ("model", "gpu", "demand", "reserved", "spot", "buy", "years", "watts", "kwh", "pue", "share", "owned", "energy", "rented",
         "even", "months"))}  # fmt: skip
    place = f"MATCH($B${at['model']},$A${first}:$A${last},0)"
    found = f"INDEX(${number}${first}:${number}${last},{place})"
    hour = f"INDEX({page.layout.span('usd_per_hour')},{found})"
    gpus = page.layout.book.tables["gpus"]
    watts = f"INDEX({page.layout.entity_span(gpus, 'watts')},MATCH($B${at['gpu']},{page.layout.entity_span(gpus, 'name')},0))"
    name, rate = page.value("gpu", 0), page.value("usd_per_hour", 0)
    power = next((one.get("watts") for one in gpus.rows if one["name"] == name), None)
    price, source = PURCHASES.get(str(name), (None, QUOTE))
    energy = None if power is None else float(power) / 1000 * PUE * KWH  # type: ignore[arg-type]
    fixed = None if price is None else price / (YEARS * HOURS_A_YEAR)
    owned = None if fixed is None or energy is None else fixed + energy  # all hours in use
    even = None if rate is None or fixed is None or energy is None or rate <= energy else fixed / (rate - energy)
    months = None if even is None or rate is None or price is None or energy is None else price / ((rate - energy) * HOURS_A_YEAR / 12)
    b = {key: f"$B${place}" for key, place in at.items()}
    inputs: tuple[tuple[str, str, Any, str, str, str], ...] = (
        ("reserved", "rented, reserved", None, _style.PRICE, "$/GPU-hour", QUOTE),
        ("spot", "rented, spot", None, _style.PRICE, "$/GPU-hour", QUOTE),
        ("buy", "bought, with its share of the server", price, _style.MONEY, "$/GPU", source),
        ("years", "years of use", YEARS, "0.0", "years", "an assumption; nothing is left of it after"),
        ("kwh", "electricity", KWH, "$0.0000", "$/kWh", "industry in the USA, mean of 2023: EIA, retail price of electricity"),
        ("pue", "PUE", PUE, "0.00", "", "mean of data centres in 2023: Uptime Institute, Global Data Center Survey"),
        ("share", "share of the hours in use", 1.0, "0%", "", "an assumption; rented hours are paid while in use alone"),
    )
    formulas: tuple[tuple[str, str, str, Any, str, str, str], ...] = (
        ("gpu", "GPU", f'IF(ISNUMBER({found}),INDEX(${gpu}${first}:${gpu}${last},{place}),"")', name, "", "", ""),
        ("demand", "rented, on demand", f'IF(ISNUMBER({found}),{hour},"")', rate, _style.PRICE, "$/GPU-hour", "of the row; its source: GPUs"),
        ("watts", "board power", f'IF({b["gpu"]}="","",IF({watts}="","",{watts}))', power, "#,##0", "W", "the sheet GPUs"),
        ("owned", "owned, in such use", f'IF(OR({b["buy"]}="",{b["energy"]}="",N({b["share"]})<=0),"",'
         f'{b["buy"]}/({b["years"]}*{HOURS_A_YEAR:.0f}*{b["share"]})+{b["energy"]})', owned, _style.PRICE, "$/GPU-hour",
         "per hour in use; space, network and staff are not counted"),
        ("energy", "of that electricity", f'IF({b["watts"]}="","",{b["watts"]}/1000*{b["pue"]}*{b["kwh"]})', energy, _style.PRICE,
         "$/GPU-hour", "full board power while in use"),
        ("rented", "cheapest rented", f'IF(COUNT({b["demand"]}:{b["spot"]})=0,"",MIN({b["demand"]}:{b["spot"]}))', rate, _style.PRICE,
         "$/GPU-hour", ""),
        ("even", "owning is cheaper from this share on", f'IF(OR({b["rented"]}="",{b["buy"]}="",{b["energy"]}=""),"",'
         f'IF({b["rented"]}<={b["energy"]},"never",{b["buy"]}/({b["years"]}*{HOURS_A_YEAR:.0f})/({b["rented"]}-{b["energy"]})))',
         even, "0.0%", "", "of all hours in use; above 100%: renting is cheaper at any use"),
        ("months", "paid back after", f'IF(ISNUMBER({b["even"]}),{b["buy"]}/(({b["rented"]}-{b["energy"]})*{b["share"]}*{HOURS_A_YEAR / 12:.0f}),"")',
         months, "0.0", "months", "at the share of the hours above"),
    )  # fmt: skip
    sheet.put(at["model"], 1, "for model", "scn.label")
    sheet.put(at["model"], 2, page.models[0], "scn.input")
    choose = DataValidation(type="list", formula1=f"Answer!$A${TOP + 1}:$A${last}", allow_blank=False)
    sheet.sheet.add_data_validation(choose)
    choose.add(f"B{at['model']}")
    for key, label, value, form, unit, said in inputs:
        sheet.put(at[key], 2, value, "scn.input", form)
        _beside(page, at[key], label, unit, said)
    for key, label, text, value, form, unit, said in formulas:
        sheet.formula(at[key], 2, text, value, "scn.calc", form).alignment = Alignment(horizontal="right")
        _beside(page, at[key], label, unit, said)
    for key in ("reserved", "spot", "buy", "years", "kwh", "pue", "share"):
        limit = DataValidation(type="decimal", operator="greaterThanOrEqual", formula1="0", allow_blank=True, showErrorMessage=True)
        sheet.sheet.add_data_validation(limit)
        limit.add(f"B{at[key]}")
    return at["months"]


def _beside(page: Answer, row: int, label: str, unit: str, said: str) -> None:
    page.sheet.put(row, 1, label, "scn.label")
    page.sheet.put(row, 3, unit, "scn.meta")
    page.sheet.put(row, 4, said, "scn.subtitle")
