"""Which exporter writes a result, and having it write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from scenario.common import files, signals
from scenario.common.errors import OutputError, ScenarioError, nearest
from scenario.model.spec import Exporter
from scenario.registry.loaded import Host

if TYPE_CHECKING:
    import polars as pl


class ResultLike(Protocol):
    """What is known here of a result that is written; see :class:`scenario.Result`."""

    full: pl.DataFrame
    host: Host


def exporter_for(host: Host, path: str, format: str | None = None) -> Exporter:
    """The exporter for a file ending, or of the given name. Raises :class:`OutputError` naming those there are."""
    if format:
        if format in host.exporters:
            return host.exporters[format]
        hint = host.missing("format", format, host.exporters)
        raise _usage(f"there is no format '{format}'", hint)
    suffix = Path(path).suffix.lower()
    for exporter in host.exporters.values():
        if suffix in exporter.suffixes:
            return exporter
    known = sorted(ending for exporter in host.exporters.values() for ending in exporter.suffixes)
    said = f"no format writes files that end in '{suffix}'" if suffix else "the output file has no ending"
    raise _usage(f"{path}: {said}", nearest(suffix, known) or "endings: " + ", ".join(known))


def _usage(message: str, hint: str) -> OutputError:
    error = OutputError(message, hint)
    error.exit_code = 2
    return error


def check_size(exporter: Exporter, rows: int) -> None:
    """Refuse, before any work, more rows than a format holds."""
    if exporter.max_rows is not None and rows > exporter.max_rows:
        said = f"{rows:,} rows do not fit the format '{exporter.name}', which holds {exporter.max_rows:,}"
        raise _usage(said, "write .parquet or .csv, or leave rows out with where:")


def write(path: Path, exporter: Exporter, result: ResultLike) -> Path:
    """Write a result; see :func:`scenario.common.files.replace` for what is promised."""
    check_size(exporter, result.full.height)
    return files.replace(path, lambda stream: fill(exporter, result, stream))


def fill(exporter: Exporter, result: ResultLike, stream: BinaryIO) -> None:
    """Let an exporter write; a fault of its own becomes one line that names the plugin it came from."""
    try:
        exporter.write(result, stream)
    except (ScenarioError, OSError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        signals.pass_on(error)
        owner = result.host.owners.get((Exporter, exporter.name))
        by = f" of plugin '{owner.name}' ({owner.origin})" if owner else ""
        said = " ".join(str(error).split())[:300]
        raise OutputError(f"format '{exporter.name}'{by} failed: {type(error).__name__}: {said}") from error
