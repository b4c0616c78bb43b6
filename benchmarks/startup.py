"""Times the command line from a cold process: ``scenario --help``, and one bundled table to a file.

    python benchmarks/startup.py [--repeats 10] [--table starter]

Each command runs in a process of its own, over and over; the best and the median time are printed. Then it
tells which heavy modules ``scenario --help`` loads: polars, openpyxl and yaml must not be among them.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HEAVY = ("polars", "openpyxl", "yaml", "numpy", "rich", "pluggy", "click")
FORBIDDEN = ("polars", "openpyxl", "yaml")
SCENARIO = [sys.executable, "-m", "scenario"]


def seconds(command: list[str]) -> float:
    """The wall time of one run; a failing command stops the benchmark."""
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return time.perf_counter() - start


def report(title: str, command: list[str], repeats: int) -> None:
    """Time a command and print it."""
    times = [seconds(command) for _ in range(repeats)]
    print(f"{title:45} best {min(times) * 1000:6,.0f} ms   median {statistics.median(times) * 1000:6,.0f} ms   ({repeats} runs)")


def loaded() -> list[str]:
    """The heavy modules that ``scenario --help`` imports."""
    code = (
        "import sys\nfrom scenario.cli import main\nsys.argv = ['scenario', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print(*(name for name in {HEAVY!r} if name in sys.modules), file=sys.stderr)"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr.split()


def main() -> None:
    """Time, then look at the imports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--table", default="starter", help="a bundled table")
    options = parser.parse_args()
    report("python -c pass", [sys.executable, "-c", "pass"], options.repeats)
    report("scenario --help", [*SCENARIO, "--help"], options.repeats)
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("csv", "xlsx"):
            out = str(Path(folder) / f"x.{ending}")
            command = [*SCENARIO, "run", options.table, "-o", out]
            if ending == "xlsx" and subprocess.run(command, capture_output=True, check=False).returncode:
                print("scenario run -o x.xlsx: this installation writes no xlsx")
                continue
            report(f"scenario run {options.table} -o x.{ending}", command, options.repeats)
    found = loaded()
    wrong = [name for name in found if name in FORBIDDEN]
    print(f"scenario --help loads: {', '.join(found) or 'none'} of {', '.join(HEAVY)}")
    if wrong:
        raise SystemExit(f"scenario --help must not load {', '.join(wrong)}")


if __name__ == "__main__":
    main()
