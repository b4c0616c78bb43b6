"""Writes the same workbook sheet with this project's exporter and with XlsxWriter, side by side, and reads it back.

    python benchmarks/workbook.py [--rows 10000 100000]

Each contender runs in a process of its own, one after the other. XlsxWriter (constant_memory) is given the very
formulas and values of the Scenarios sheet, one formula per cell; it is spared all other sheets. Printed: seconds,
peak memory, file size, and the ratios. Reading is `scenario` taking the file in as a table.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def table(rows: int) -> dict[str, Any]:
    """A table of about this many rows with every method."""
    methods = ["vanilla", "small-model", "eagle", "medusa", "ngram", "mtp", "int4", "int4+eagle"]
    models = ["llama-3-8b", "llama-3-70b", "mixtral-8x7b", "qwen3-8b"]
    batches = list(range(1, max(rows // (len(methods) * len(models) * 2 * 8), 1) + 1))
    alphas = [round(0.5 + 0.05 * index, 2) for index in range(8)]
    grid = {"model": models, "gpu": ["h100-sxm", "h200"], "batch": batches, "alpha": alphas, "method": methods}
    return {"version": 1, "title": "benchmark", "defaults": {"context": 1024}, "grid": grid}


def ours(rows: int, path: str) -> dict[str, float]:
    """Run and write the whole workbook, all sheets and charts."""
    import scenario

    result = scenario.run(table(rows))
    start = time.perf_counter()
    result.to_excel(path)
    return {"seconds": time.perf_counter() - start, "rows": result.full.height}


def xlsxwriter(rows: int, path: str) -> dict[str, float]:
    """The Scenarios sheet alone, the same formulas with the same values."""
    import xlsxwriter as library

    import scenario
    from scenario.exporters.xlsx import layout as _layout
    from scenario.exporters.xlsx import scenarios as _scenarios
    from scenario.exporters.xlsx import splice as _splice
    from scenario.exporters.xlsx import summary as _summary

    result = scenario.run(table(rows))
    layout = _layout.lay_out(result.book, result.full.height, _summary.key_columns(result))
    frame = _scenarios.shown_frame(result, layout)
    columns = list(layout.columns.values())
    start = time.perf_counter()
    book = library.Workbook(path, {"constant_memory": True, "strings_to_formulas": False})
    book.use_zip64()  # 100,000 rows make a sheet of more than 4 GB
    sheet = book.add_worksheet("Scenarios")
    formats = [book.add_format({"num_format": "#,##0.00"}) for _ in columns]
    for index, column in enumerate(columns):
        sheet.write_string(4, index, column.name)
    templates = [("=" + column.formula).split(_splice.ROW) if column.formula else None for column in columns]
    for number, values in enumerate(frame.select([column.name for column in columns]).iter_rows(), 5):
        line = str(number + 1)
        for index, value in enumerate(values):
            template = templates[index]
            if template is not None:
                sheet.write_formula(number, index, line.join(template), formats[index], "" if value is None else value)
            elif isinstance(value, str):
                sheet.write_string(number, index, value, formats[index])
            elif value is not None:
                sheet.write_number(number, index, value, formats[index])
    book.close()
    return {"seconds": time.perf_counter() - start, "rows": frame.height}


def reading(rows: int, path: str) -> dict[str, float]:
    """Take the workbook in as a table: inputs, assumptions, typed-over formulas."""
    from scenario.registry import host
    from scenario.workbooks import read_back as xlsx_table

    loaded = host.load()
    start = time.perf_counter()
    read, _ = xlsx_table.load(path, loaded)
    return {"seconds": time.perf_counter() - start, "rows": read.rows.height}


def main() -> None:
    """Run the contenders in turn and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--one", nargs=3, metavar=("WHO", "ROWS", "PATH"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        who, rows, path = asked.one
        done = {"ours": ours, "xlsxwriter": xlsxwriter, "reading": reading}[who](int(rows), path)
        print(json.dumps({**done, "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
        return
    with tempfile.TemporaryDirectory() as folder:
        for rows in asked.rows:
            found = {}
            for who in ("ours", "xlsxwriter", "reading"):
                path = Path(folder) / f"{'ours' if who == 'reading' else who}.xlsx"
                done = subprocess.run([sys.executable, __file__, "--one", who, str(rows), str(path)], capture_output=True, text=True, check=True)
                found[who] = {**json.loads(done.stdout.splitlines()[-1]), "file": path.stat().st_size / 1e6}
            print(f"\n{found['ours']['rows']:,} rows")
            for who, row in found.items():
                print(f"  {who:<11}{row['seconds']:>8.2f} s {row['mb']:>8.0f} MB peak {row['file']:>8.1f} MB file")
            print(f"  XlsxWriter takes {found['xlsxwriter']['seconds'] / found['ours']['seconds']:.1f} times as long; "
                  f"our file is {found['ours']['file'] / found['xlsxwriter']['file']:.2f} of its size")  # fmt: skip


if __name__ == "__main__":
    main()
