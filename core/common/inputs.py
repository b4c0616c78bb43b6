"""Opening an input: a regular file of bounded size, or a pipe that is open already. Everything that is read goes through here.

A device can hold a terabyte of zeros and a named pipe can be silent for ever, so both are refused before a byte is
read. What a command has read is remembered while it runs: :mod:`scenario.common.files` never replaces it.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from scenario.common.errors import Problem, TableError


@dataclass(frozen=True)
class Kind:
    """A kind of input: what a message calls it, and the most bytes that are read of one."""

    name: str
    limit: int

    @property
    def limit_text(self) -> str:
        return f"{self.limit / 1e9:g} GB" if self.limit >= 1e9 else f"{self.limit / 1e6:g} MB"


TABLE = Kind("a table", 64_000_000)
CONFIG = Kind("a config.json", 16_000_000)
MEASUREMENTS = Kind("measurements", 256_000_000)
WORKBOOK = Kind("a workbook", 1_000_000_000)
LOG = Kind("a log", 20_000_000_000)

_READ: ContextVar[set[tuple[int, int]] | None] = ContextVar("read", default=None)
_INHERITED = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
_NOT_FILES = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a named pipe"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"),
              (stat.S_ISSOCK, "a socket"))  # fmt: skip


@contextlib.contextmanager
def remembered() -> Iterator[None]:
    """Remember, until this ends, which files are opened: the inputs of one command."""
    token = _READ.set(set())
    try:
        yield
    finally:
        _READ.reset(token)


def was_read(path: str | Path) -> bool:
    """Whether this command has opened the file at ``path``, under whatever name it goes there (links of both sorts)."""
    known = _READ.get()
    if not known:
        return False
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return False
    return (found.st_dev, found.st_ino) in known


def note(found: os.stat_result) -> None:
    """Remember a file as an input of the command that is running."""
    known = _READ.get()
    if known is not None and stat.S_ISREG(found.st_mode):
        known.add((found.st_dev, found.st_ino))


def opened(path: str | Path, kind: Kind) -> BinaryIO:
    """The file at ``path``, opened to be read; ``-`` is standard input.

    Raises :class:`TableError` in one line for what is no regular file, cannot be read or is larger than ``kind``
    allows. Of a pipe the size is not known: whoever reads it counts, as :func:`read` does.
    """
    file = str(path)
    try:
        handle = os.dup(0) if file == "-" else _handle(file)
        found = os.fstat(handle)
        if file != "-":
            _refuse(file, found)
        note(found)
        if stat.S_ISREG(found.st_mode) and found.st_size > kind.limit:
            os.close(handle)
            raise too_large(file, kind)
        return os.fdopen(handle, "rb")
    except OSError as error:
        raise _problem(file, error) from None
    except ValueError:
        raise TableError(Problem("this is not the name of a file", file=file.replace("\0", "\\0"))) from None


def _handle(file: str) -> int:
    _refuse(file, os.stat(file))  # before it is opened: opening some devices does something
    handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if hasattr(os, "set_blocking"):
        os.set_blocking(handle, True)
    return handle


def _refuse(file: str, found: os.stat_result) -> None:
    for test, name in _NOT_FILES:
        inherited = name == "a named pipe" and file.startswith(_INHERITED)
        if test(found.st_mode) and not inherited:
            said = "this is a folder, not a file" if name == "a folder" else f"this is not a file but {name}"
            raise TableError(Problem(said, file=file))


def _problem(file: str, error: OSError) -> TableError:
    said = f"cannot be read: {error.strerror or error}"
    if error.errno == errno.ENOENT:
        said = "there is no such file"
    return TableError(Problem(said, file=file))


def too_large(file: str, kind: Kind) -> TableError:
    """The refusal of an input that is larger than its kind may be."""
    return TableError(Problem(f"the file is larger than the limit of {kind.limit_text} for {kind.name}", file=file))


def read(path: str | Path, kind: Kind) -> bytes:
    """All bytes of an input. Raises :class:`TableError` as :func:`opened` does, and for a pipe that goes on for too long."""
    with opened(path, kind) as stream:
        try:
            raw = stream.read(kind.limit + 1)
        except OSError as error:
            raise _problem(str(path), error) from None
    if len(raw) > kind.limit:
        raise too_large(str(path), kind)
    return raw


def unpacked(raw: bytes, file: str, kind: Kind) -> bytes:
    """``raw``, or what is in it if it is gzipped, within the limit of ``kind``. Raises :class:`TableError`."""
    if raw[:2] != b"\x1f\x8b":
        return raw
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as stream:
            inside = stream.read(kind.limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise TableError(Problem(f"cannot be read: {error}", file=file)) from None
    if len(inside) > kind.limit:
        raise TableError(Problem(f"unpacked it is larger than the limit of {kind.limit_text} for {kind.name}", file=file))
    return inside
