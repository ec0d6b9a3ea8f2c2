"""Functions of the system as they are before patching. Import this module before anything is patched."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable
from typing import Any, Final, NoReturn

_signal: Final[Any] = importlib.import_module("_signal")

execve: Final[Any] = os.execve
exit_at_once: Final[Callable[[int], NoReturn]] = os._exit
getpid: Final[Any] = os.getpid
kill: Final[Any] = os.kill
waitpid: Final[Any] = getattr(os, "waitpid", None)

signal: Final[Any] = _signal.signal
getsignal: Final[Any] = _signal.getsignal
raise_signal: Final[Any] = _signal.raise_signal
pthread_kill: Final[Any] = getattr(_signal, "pthread_kill", None)


class _Clock:
    """The real clock. Its functions are attributes, because freezegun replaces names in modules."""

    def __init__(self) -> None:
        self.now_s: Final = time.perf_counter
        """Not `monotonic`, which time-machine changes in place. In seconds."""
        self.monotonic: Final = time.monotonic
        """The clock that the standard library reads. In seconds."""
        self.time_ns: Final = time.time_ns
        self.sleep: Final = time.sleep


REAL: Final = _Clock()
