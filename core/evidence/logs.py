"""Reads acceptance of drafts out of engine logs and benchmark results: per position, length, hit rate, draft cost, by batch.

Logs are read line by line, plain or gzipped, mixed and with any lines between; memory does not grow with their size.
A field whose meaning is not the same in every version of an engine is never read: it is listed as refused.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from scenario.common import inputs
from scenario.common.errors import Problem, TableError
from scenario.evidence.acceptance import llamacpp, printed, prometheus, results, sglang, tensorrt, vllm
from scenario.evidence.acceptance.tally import EXACT, AcceptanceReport, LineReader

LONGEST = 1 << 20
"""Longest line that is read; the rest of a longer one is passed over."""
LARGEST = 64 << 20
"""Largest JSON text that is read as a whole."""

_READERS: tuple[type[LineReader], ...] = (
    *vllm.READERS, *printed.READERS, *prometheus.READERS, *sglang.READERS, *llamacpp.READERS, *tensorrt.READERS,
)  # fmt: skip


DAMAGED = "damaged lines, with something else where a number is due, are passed over"


class LogReader:
    """Takes lines and JSON texts in and hands each to those who know its marks."""

    def __init__(self) -> None:
        self.report = AcceptanceReport()
        self.readers = [reader(self.report) for reader in _READERS]
        self.metrics = next(reader for reader in self.readers if isinstance(reader, prometheus.Metrics))
        self.iterations = next(reader for reader in self.readers if isinstance(reader, tensorrt.Iterations))
        marks = sorted({mark for reader in self.readers for mark in reader.marks} | set(results.MARKS))
        self.cares = re.compile(b"|".join(re.escape(mark) for mark in marks))

    def start_file(self) -> None:
        """A new log: the engine starts anew, and so do its counters."""
        self.finish()
        for reader in self.readers:
            reader.start()

    def line(self, raw: bytes) -> None:
        """One line of a log."""
        self.report.lines += 1
        if not self.cares.search(raw) or (raw.lstrip()[:1] in (b"{", b"[") and self.document(raw)):
            return
        text = raw.decode("utf-8", "replace")
        for reader in self.readers:
            if any(mark in raw for mark in reader.marks):
                try:
                    reader.line(text)
                except (ValueError, OverflowError):  # such as 1.2.3 where a number is due
                    self.report.note(DAMAGED)

    def document(self, raw: bytes) -> bool:
        """Whether this is JSON with something about drafts in it, which is then taken in."""
        try:
            data = json.loads(raw)
        except (ValueError, RecursionError):
            return False
        try:
            return self.metrics.document(data) or self.iterations.document(data) or results.take(data, self.report)
        except (ValueError, OverflowError):  # such as infinitely many drafts
            self.report.note(DAMAGED)
            return True

    def finish(self) -> None:
        """Take in what only the last line of a log says."""
        for reader in self.readers:
            try:
                reader.finish()
            except (ValueError, OverflowError):
                self.report.note(DAMAGED)

    def file(self, stream: BinaryIO, name: str) -> None:
        """All of one file: JSON as a whole, else line by line."""
        self.start_file()
        source = opened(stream)
        head = source.peek(256)
        if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
            whole = source.read(LARGEST)
            if len(whole) < LARGEST and self.document(whole.removeprefix(b"\xef\xbb\xbf")):
                self.report.lines += whole.count(b"\n") + 1
                return
            source = io.BufferedReader(_Joined(whole, source))  # type: ignore[arg-type]
        for line in lines_of(source, name):
            self.line(line)


class _Joined(io.RawIOBase):
    """Bytes that were read already, then the rest of their stream."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self.head, self.rest = io.BytesIO(head), rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]  # a writable buffer of any kind
        part = self.head.read(len(buffer)) or self.rest.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)


def opened(stream: BinaryIO) -> io.BufferedReader:
    """A stream that can be peeked into, unzipped where it is zipped."""
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)  # type: ignore[type-var]
    zipped = buffered.peek(2)[:2] == b"\x1f\x8b"
    return io.BufferedReader(gzip.GzipFile(fileobj=buffered)) if zipped else buffered  # type: ignore[return-value]


def lines_of(source: io.BufferedReader, file: str = "-") -> Iterator[bytes]:
    """The lines of a stream; what is too long is cut, so that memory stays bounded.

    Raises :class:`TableError` for more bytes than a log may have: a pipe that never ends, what a small file unpacks to.
    """
    cut, size = False, 0
    while line := source.readline(LONGEST):
        size += len(line)
        if size > inputs.LOG.limit:
            raise inputs.too_large(file, inputs.LOG)
        if not cut:
            yield line
        cut = not line.endswith(b"\n") and len(line) == LONGEST


def read(paths: Sequence[str]) -> AcceptanceReport:
    """The acceptance in some logs; ``-`` is standard input."""
    reader = LogReader()
    for path in paths:
        try:
            with inputs.opened(path, inputs.LOG) as stream:
                reader.file(stream, path)
        except (OSError, EOFError, zlib.error) as error:
            said = getattr(error, "strerror", None) or str(error)
            raise TableError(Problem(f"cannot be read: {said}", file=path)) from None
    reader.finish()
    _remarks(reader.report)
    return reader.report


def _remarks(report: AcceptanceReport) -> None:
    """What a reader should know of several sources."""
    whole = {name: source for name, source in report.sources.items() if source.total.rounds and not source.partial}
    for engine in dict.fromkeys(name.split()[0] for name in whole):
        same = [name for name in EXACT if name in whole and name.split()[0] == engine and "V0" not in name]
        if len(same) > 1:
            report.note(f"{' and '.join(same)} count the same rounds: only the first is used, they are not added up")
    engines = {name.split()[0] for name in whole}
    if len(engines) > 1:
        report.note(f"logs of several engines ({', '.join(sorted(engines))}) are not added up: --source chooses between them")
    if any(source.partial for source in report.sources.values()) and "llama.cpp" not in engines:
        report.note("llama.cpp requests give only accepted/generated; newer builds print the mean acceptance length, and the summary with "
                    "n_predict and n_accept gives it too")  # fmt: skip
