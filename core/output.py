"""Writing without losing anything: aside first, moved into place when whole."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from scenario.common.errors import OutputError, Problem, ScenarioError, nearest
from scenario.model.spec import Exporter
from scenario.registry.host import Host

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl


class Written(Protocol):
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
        raise _usage(f"{rows:,} rows do not fit the format '{exporter.name}', which holds {exporter.max_rows:,}",
                     "write .parquet or .csv, or leave rows out with where:")  # fmt: skip


def write(path: Path, exporter: Exporter, result: Written) -> Path:
    """Write a result; see :func:`replace` for what is promised."""
    check_size(exporter, result.full.height)
    return replace(path, lambda stream: fill(exporter, result, stream))


def fill(exporter: Exporter, result: Written, stream: BinaryIO) -> None:
    """Let an exporter write; a fault of its own becomes one line that names the plugin it came from."""
    try:
        exporter.write(result, stream)
    except (ScenarioError, OSError, MemoryError, KeyboardInterrupt):
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, SystemExit) and signalled:
            raise
        owner = result.host.owners.get((Exporter, exporter.name))
        by = f" of plugin '{owner.name}' ({owner.origin})" if owner else ""
        said = " ".join(str(error).split())[:300]
        raise OutputError(f"format '{exporter.name}'{by} failed: {type(error).__name__}: {said}") from error


signalled: list[int] = []
"""Signals that have asked this process to end."""


def replace(path: Path, fill: Callable[[BinaryIO], None]) -> Path:
    """Write a file aside, in the same folder, and move it to ``path`` once it is whole.

    A file that a spreadsheet program holds open is left alone: the result goes to ``name (2)``. Returns where
    it went. Raises :class:`OutputError` in one line; ``path`` then is what it was.
    """
    if path.exists() and not path.is_file():
        if path.is_dir():
            raise OutputError(Problem("this is a folder", file=str(path)))
        with _as_problem(path), path.open("wb") as device:  # a pipe or a device cannot be moved onto
            fill(device)
        return path
    with _as_problem(path):
        target = _unlocked(Path(os.path.realpath(path)) if path.is_symlink() else path)
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask()
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, "the file is write-protected")
        handle, aside = tempfile.mkstemp(prefix=f".{target.name[:40]}.", suffix=".part", dir=target.parent)
        try:
            try:
                with os.fdopen(handle, "wb", closefd=False) as stream:
                    fill(stream)  # may close the stream, as archive writers do
                os.fsync(handle)
            finally:
                os.close(handle)
            os.chmod(aside, mode)
            os.replace(aside, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(aside)
            raise
    return target


@contextlib.contextmanager
def _as_problem(path: Path):  # type: ignore[no-untyped-def]
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        said = error.strerror or str(error)
        if error.errno == errno.ENOENT:
            said = f"the folder {path.parent} does not exist"
        elif error.errno == errno.EFBIG:
            said = "the file would be larger than the system allows"
        elif error.errno == errno.ENOSPC:
            said = "the disk is full"
        raise OutputError(Problem(f"cannot be written: {said}", file=str(path))) from None


def _unlocked(path: Path) -> Path:
    """``path``, or a free name beside it while a spreadsheet program has it open."""
    if not any(os.path.lexists(path.parent / lock) for lock in (f"~${path.name}", f".~lock.{path.name}#")):
        return path
    for number in range(2, 1000):
        other = path.with_name(f"{path.stem} ({number}){path.suffix}")
        if not other.exists():
            return other
    raise OutputError(Problem("the file is open in a spreadsheet program, and so are its neighbours", file=str(path)))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
