"""Ending when someone asks for it: one line, the usual exit code (128 + signal), and no unfinished file.

Nothing heavy is imported here: the entry point listens before it imports anything else.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from typing import NoReturn

received: list[int] = []
"""Signals that have asked this process to end."""
unfinished: set[str] = set()
"""Files that this process is writing aside."""
WORDS = {"SIGINT": "interrupted", "SIGTERM": "stopped (SIGTERM)", "SIGHUP": "stopped (SIGHUP): the terminal has gone"}


def listen(*names: str) -> None:
    """From now on end in an orderly way on these signals. One that is ignored (nohup) stays ignored."""
    if threading.current_thread() is not threading.main_thread():
        return
    for name in names:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _stop)


def _stop(number: int, frame: object) -> None:
    received.append(number)
    if len(received) > 1:  # asked again: at once
        leave(128 + number)
    say(number)
    raise SystemExit(128 + number)


def say(number: int) -> None:
    """The line that tells of a signal, written past every buffer."""
    with contextlib.suppress(OSError):
        os.write(2, f"{WORDS.get(signal.Signals(number).name, 'stopped')}\n".encode())


def pass_on(error: BaseException) -> None:
    """Raise ``error`` again if it is the end that someone asked for: for code that answers for whatever a plugin raises."""
    if isinstance(error, KeyboardInterrupt) or (received and isinstance(error, SystemExit)):
        raise error


def leave(code: int) -> NoReturn:
    """End at once, with nothing left behind: for places where an exception would be lost."""
    for aside in list(unfinished):
        with contextlib.suppress(OSError):
            os.unlink(aside)
    os._exit(code)


def raised_nowhere(event: sys.UnraisableHookArgs) -> None:
    """What :data:`sys.unraisablehook` does here: an end that was asked for must not be lost in a callback."""
    if received and isinstance(event.exc_value, SystemExit | KeyboardInterrupt):
        leave(128 + received[0])
    sys.__unraisablehook__(event)
