"""Writing a file whole: aside first, moved into place when it is complete. Everything that is written goes through here."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from scenario.common import inputs, signals
from scenario.common.errors import OutputError, Problem

PART = ".part"
SPREADSHEETS = ("soffice", "oosplash", "libreoffice", "localc")
"""How the processes begin that hold a workbook with a lock of LibreOffice."""


def replace(path: Path, fill: Callable[[BinaryIO], None]) -> Path:
    """Write a file aside, in the same folder, and move it to ``path`` once it is whole; returns where it went.

    A file that is replaced keeps its owner and its mode. A file that a spreadsheet program holds open is left alone:
    the result goes to ``name (2)``. A file that this command has read is never replaced, whatever name it is given.
    Raises :class:`OutputError` in one line; ``path`` then is what it was.
    """
    with _as_problem(path):
        refuse(path)
        if path.exists() and not path.is_file():
            with path.open("wb") as device:  # a pipe or a terminal cannot be moved onto
                fill(device)
            return path
        target = _unlocked(Path(os.path.realpath(path)) if path.is_symlink() else path)
        _tidy(target)
        with _aside(target) as (handle, aside):
            old = target.stat() if target.exists() else None
            if old is not None and not os.access(target, os.W_OK):
                raise PermissionError(errno.EACCES, "the file is write-protected")
            with os.fdopen(handle, "wb", closefd=False) as stream:
                fill(stream)  # may close the stream, as archive writers do
            os.fsync(handle)
            _keep_owner(aside, old, target)
            os.chmod(aside, stat.S_IMODE(old.st_mode) if old is not None else 0o666 & ~_umask())
            os.replace(aside, target)
    return target


def replace_text(path: Path, text: str) -> Path:
    """Write a text in UTF-8; see :func:`replace`."""

    def fill(stream: BinaryIO) -> None:
        stream.write(text.encode())

    return replace(path, fill)


def refuse(path: Path) -> None:
    """Refuse, before any work, an output that cannot be: a folder, a disk, or a file that this command reads."""
    if inputs.was_read(path):
        error = OutputError(Problem("the output would replace a file that this command reads", "choose another name", str(path)))
        error.exit_code = 2
        raise error
    if "\0" in str(path):
        raise OutputError(Problem("cannot be written: this is not the name of a file", file=str(path).replace("\0", "\\0")))
    with _as_problem(path):
        if path.is_dir():
            raise OutputError(Problem("this is a folder", file=str(path)))
        if path.is_block_device():
            raise OutputError(Problem("this is a disk", file=str(path)))
        os.stat(path.parent)
        with contextlib.suppress(FileNotFoundError):
            os.stat(path)


@contextlib.contextmanager
def _aside(target: Path) -> Iterator[tuple[int, str]]:
    """An empty file in the folder of ``target``, locked while it is written; gone afterwards unless it was moved."""
    while True:
        handle, aside = tempfile.mkstemp(prefix=_prefix(target), suffix=PART, dir=target.parent)
        signals.unfinished.add(aside)
        if _lock(handle) and os.fstat(handle).st_nlink:  # else another run took it for a dead one's
            break
        os.close(handle)
        signals.unfinished.discard(aside)
    try:
        yield handle, aside
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        raise
    finally:
        signals.unfinished.discard(aside)
        os.close(handle)


def _prefix(target: Path) -> str:
    short = target.name.encode(errors="surrogateescape")[:120].decode(errors="ignore")
    return f".{short}."


def _lock(handle: int) -> bool:
    """Whether this process has the file to itself; the system drops the lock with the process, however that ends."""
    try:
        import fcntl
    except ImportError:  # not on Windows, where an open file cannot be removed anyway
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN)  # a file system without locks
    return True


def _tidy(target: Path) -> None:
    """Remove what runs that were killed have left of this file; one that is still being written is locked."""
    prefix = _prefix(target)
    for name in os.listdir(target.parent or "."):
        if not (name.startswith(prefix) and name.endswith(PART) and len(name) == len(prefix) + 8 + len(PART)):
            continue
        left = target.parent / name
        with contextlib.suppress(OSError):
            handle = os.open(left, os.O_RDWR)
            try:
                if _lock(handle):
                    os.unlink(left)
            finally:
                os.close(handle)


def _keep_owner(aside: str, old: os.stat_result | None, target: Path) -> None:
    """Give the new file the owner and the group of the old one, or refuse where the system does not let us."""
    if old is None or not hasattr(os, "chown"):
        return
    new = os.stat(aside)
    if (new.st_uid, new.st_gid) == (old.st_uid, old.st_gid):
        return
    try:
        os.chown(aside, old.st_uid, old.st_gid)
    except OSError:
        said = "cannot be replaced: it belongs to another user or group, and would not afterwards"
        raise OutputError(Problem(said, "write to another name", str(target))) from None


@contextlib.contextmanager
def _as_problem(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        said = {errno.ENOENT: f"the folder {path.parent} does not exist", errno.EFBIG: "the file would be larger than the system allows",
                errno.ENOSPC: "the disk is full", errno.ENAMETOOLONG: "the name is longer than the system allows"}  # fmt: skip
        why = said.get(error.errno or 0, error.strerror or str(error))
        raise OutputError(Problem(f"cannot be written: {why}", file=str(path))) from None


def _unlocked(path: Path) -> Path:
    """``path``, or a free name beside it while a spreadsheet program has it open."""
    if lock_of(path) is None:
        return path
    for number in range(2, 1000):
        other = path.with_name(f"{path.stem} ({number}){path.suffix}")
        if not other.exists() and not other.is_symlink():
            return other
    raise OutputError(Problem("the file is open in a spreadsheet program, and so are its neighbours", file=str(path)))


def lock_of(path: Path) -> Path | None:
    """The lock file that says that a spreadsheet program has ``path`` open; None without one and beside a stale one."""
    for name in (f"~${path.name}", f".~lock.{path.name}#"):
        lock = path.with_name(name)
        if os.path.lexists(lock) and not _stale(lock):
            return lock
    return None


def _stale(lock: Path) -> bool:
    """Whether a lock is surely left over: LibreOffice's names its machine, and on this one no LibreOffice runs.

    Excel's lock says nothing of that kind; on Windows, where Excel keeps it open, a left-over one can be opened.
    """
    if lock.name.startswith("~$"):
        if os.name != "nt":
            return False
        try:
            os.close(os.open(lock, os.O_RDWR))
        except OSError:
            return False
        return True
    try:
        with lock.open("rb") as stream:
            parts = stream.read(4096).decode("utf-8", "replace").split(",")
    except OSError:
        return False
    if len(parts) < 5 or parts[2] != platform.node():
        return False
    running = _processes()
    return running is not None and not any(name.startswith(SPREADSHEETS) for name in running)


def _processes() -> list[str] | None:
    """The names of the processes of this machine; None where they cannot be listed."""
    found = []
    try:
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                with contextlib.suppress(OSError):
                    found.append(Path("/proc", entry, "comm").read_text(errors="replace").strip())
    except OSError:
        return None
    return found or None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
