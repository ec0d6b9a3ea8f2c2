"""What the clocks of Python say at a moment of virtual time."""

from __future__ import annotations

import datetime as dt
import os
import threading
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

_fromtimestamp: Final = dt.datetime.fromtimestamp
_localtime: Final = time.localtime
_gmtime: Final = time.gmtime

WALL_CLOCKS: Final = ("0", "5", "11")
"""Clock numbers of ``time.clock_gettime`` that count from the epoch: CLOCK_REALTIME, …_COARSE,
CLOCK_TAI."""


class Moment(NamedTuple):
    """A moment of virtual time, in nanoseconds."""

    now_ns: int
    """Since the epoch."""
    counted_ns: int
    """Since an arbitrary zero."""
    passed_ns: int
    """Since the process started."""


Made: TypeAlias = Callable[[Moment], Any]
"""Gives the value of a clock at a moment."""


def _fields(of: Callable[[float], time.struct_time]) -> Made:
    def made(at: Moment) -> list[Any]:
        found = of(at.now_ns // 1_000_000_000)
        return [*found, found.tm_zone, found.tm_gmtoff]

    return made


def _wall(at: Moment) -> Any:
    found = _fromtimestamp(at.now_ns // 1000 / 1e6)
    text = found.isoformat()
    return [text, 1] if found.fold else text


def _date(at: Moment) -> str:
    return _fromtimestamp(at.now_ns // 1_000_000_000).date().isoformat()


def _log_record(at: Moment) -> list[Any]:
    msecs = float(at.now_ns // 1_000_000 % 1000)
    return [at.now_ns / 1e9, msecs, at.passed_ns / 1e6, os.getpid(), threading.get_ident()]


def _seconds(at: Moment) -> float:
    return at.counted_ns / 1e9


def _counted(at: Moment) -> int:
    return at.counted_ns


def _instant(at: Moment) -> int:
    return at.now_ns // 1000


_MADE: Final[dict[str, Made]] = {
    "clock/time.time": lambda at: at.now_ns / 1e9,
    "clock/time.time_ns": lambda at: at.now_ns,
    "clock/time.localtime": _fields(_localtime),
    "clock/time.gmtime": _fields(_gmtime),
    "clock/datetime.now": _wall,
    "clock/datetime.today": _wall,
    "clock/datetime.now(tz)": _instant,
    "clock/datetime.utcnow": _instant,
    "clock/date.today": _date,
    "clock/logging.record": _log_record,
    "clock/loop.time": _seconds,
    "clock/waited": _seconds,
    **{
        f"clock/time.{name}": _seconds
        for name in ("monotonic", "perf_counter", "process_time", "thread_time")
    },
    **{
        f"clock/time.{name}_ns": _counted
        for name in ("monotonic", "perf_counter", "process_time", "thread_time")
    },
}


def maker(kind: str) -> Made | None:
    """Gives the value of a read of this kind, as `Reads.read` returns it; None: no read of a clock."""
    made = _MADE.get(kind)
    if made is None and kind.startswith("clock/time.clock_gettime"):
        name, _, number = kind.removesuffix(")").partition("(")
        wall, exact = number in WALL_CLOCKS, name.endswith("_ns")

        def of_system(at: Moment) -> Any:
            found = at.now_ns if wall else at.counted_ns
            return found if exact else found / 1e9

        made = _MADE[kind] = of_system
    return made
