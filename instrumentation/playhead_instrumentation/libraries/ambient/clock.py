"""Record the program's reads of the clock: ``time``, ``datetime``, and the times of log records.

The classes of ``datetime`` are kept; three methods in their dictionaries are replaced. The tape has what
the program reads, as the program sees it. Event loops, locks and the HTTP stack read the real clock. A
library that moves time (freezegun, time-machine) is read like the real clock.
"""

from __future__ import annotations

import contextlib
import ctypes
import datetime as dt
import functools
import gc
import logging
import sys
import time
import warnings
from collections.abc import Callable, Generator
from importlib.abc import MetaPathFinder
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final

from opentelemetry.instrumentation.utils import is_instrumentation_enabled

from playhead_instrumentation.libraries.ambient.stand_ins import Ambient, AmbientOf, reads_of_agent
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.attribution.readers import look_at_runners
from playhead_instrumentation.patching.builtins import genuine
from playhead_instrumentation.patching.patches import PATCHES, Patches, Unpatchable, required
from playhead_instrumentation.recorder.reads import Reads
from playhead_instrumentation.session.session import current

WALL = ("time", "time_ns")
SINCE = (
    *("monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"),
    *("process_time", "process_time_ns", "thread_time", "thread_time_ns"),
)
"""Clocks that count from an arbitrary zero."""

FIELDS = ("localtime", "gmtime")
"""Functions that give the fields of a time, by default of the present time."""

DEPRECATED = (
    "datetime.datetime.utcnow() is deprecated and scheduled for removal in a future version. "
    "Use timezone-aware objects to represent datetimes in UTC: datetime.datetime.now(datetime.UTC)."
)
"""The warning that ``utcnow`` itself gives since Python 3.12."""


class _Real:
    """The real functions. Other libraries replace them in every module in which they find them."""

    def __init__(self) -> None:
        self.datetime: Final = dt.datetime
        self.date: Final = dt.date
        self.now: Final[Callable[..., dt.datetime]] = dt.datetime.now
        self.now_of: Final = dt.datetime.__dict__["now"].__get__
        self.today: Final = dt.date.today
        self.today_of: Final = dt.date.__dict__["today"].__get__
        self.time: Final = time.time
        self.localtime: Final = time.localtime
        self.epoch: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


_REAL: Final = _Real()
_MICROSECOND: Final = dt.timedelta(microseconds=1)


def watch(patches: Patches, session: object = None) -> None:
    """Patch ``time`` and ``datetime``, and allow other libraries to patch them too."""
    look_at_runners(of_program="_pytest" not in sys.modules)
    patches.attempt("time", functools.partial(_PATCHES.functions, patches))
    patches.attempt("datetime", _PATCHES.methods)
    patches.attempt("time_machine", _make_room)
    patches.when_imported("_time_machine", "time_machine", _step_aside)


class _Patches:
    """The patches of this module, which can be lifted temporarily."""

    def __init__(self) -> None:
        self._functions: dict[str, tuple[Any, Any]] = {}
        """Original and replacement, by name in ``time``."""
        self._methods: list[tuple[type, str, Any, Any]] = []
        """Class, name, original, replacement."""

    def functions(self, patches: Patches) -> None:
        """Replace the functions of ``time``. Makes the replacements only once."""
        if not self._functions:
            self._make()
        for name, (original, ours) in self._functions.items():
            if getattr(time, name) is original:
                patches.put(time, name, ours)

    def _make(self) -> None:
        localtime, strftime = required(time, "localtime"), required(time, "strftime")
        asctime = required(time, "asctime")
        made: dict[str, Ambient] = {}
        for name in (*WALL, *(one for one in SINCE if hasattr(time, one))):
            made[name] = Ambient("clock", required(time, name), since=name in SINCE)
        for name in FIELDS:
            made[name] = AmbientOf(
                required(time, name), functools.partial(_fields, f"clock/time.{name}")
            )
        for name in ("clock_gettime", "clock_gettime_ns"):
            if hasattr(time, name):
                made[name] = AmbientOf(
                    required(time, name), functools.partial(_of_system, f"clock/time.{name}")
                )
        here = functools.partial(_fields, "clock/time.localtime")

        def formatted(reads: Reads, live: Any, format: Any, *when: Any) -> Any:
            return live(format, *when) if when else live(format, here(reads, localtime))

        def as_text(reads: Reads, live: Any, *when: Any) -> Any:
            return live(*when) if when and when[0] is not None else asctime(here(reads, localtime))

        def as_text_of(reads: Reads, live: Any, *when: Any) -> Any:
            return live(*when) if when else live(here(reads, localtime))

        made["strftime"] = AmbientOf(strftime, formatted)
        made["asctime"] = AmbientOf(asctime, as_text_of)
        made["ctime"] = AmbientOf(required(time, "ctime"), as_text)
        self._functions = {
            name: (ours.__wrapped__, genuine(ours.__wrapped__, ours)) for name, ours in made.items()
        }

    def methods(self) -> None:
        """Replace methods of ``datetime.datetime`` and ``datetime.date``; a second call does nothing.

        Raises `Unpatchable` in a free-threaded interpreter.
        """
        if self._methods:
            return
        if not getattr(sys, "_is_gil_enabled", lambda: True)():
            raise Unpatchable(
                "the classes of datetime cannot be changed while threads run without a lock"
            )
        methods: list[tuple[type, str, Any, Any]] = []
        for owner, name, function in (
            (dt.datetime, "now", now),
            (dt.datetime, "utcnow", utcnow),
            (dt.date, "today", today),
        ):
            original = owner.__dict__[name]
            function.__doc__, function.__annotations__ = original.__doc__, {}
            function.__module__ = "datetime"
            function.__qualname__ = f"{owner.__name__}.{name}"
            methods.append((owner, name, original, classmethod(function)))
        for owner, name, _, ours in methods:
            _put_method(owner, name, ours)
        self._methods = methods
        PATCHES.also(self.take_off)

    def take_off(self) -> None:
        """Restore the originals."""
        self._put(False)
        self._functions, self._methods = {}, []

    @contextlib.contextmanager
    def lifted(self) -> Generator[None]:
        """Restore the originals for the length of the block."""
        self._put(False)
        try:
            yield
        finally:
            self._put(True)

    def _put(self, ours: bool) -> None:
        for name, (original, replacement) in self._functions.items():
            old, new = (original, replacement) if ours else (replacement, original)
            if getattr(time, name) is old:  # else another library has patched it; leave that in place
                setattr(time, name, new)
        for owner, name, original, replacement in self._methods:
            _put_method(owner, name, replacement if ours else original)


_PATCHES: Final = _Patches()


def _put_method(owner: type, name: str, method: Any) -> None:
    """Put ``method`` into the dictionary of a class whose attributes cannot be set.

    Raises `Unpatchable` if there is no such dictionary.
    """
    (names,) = gc.get_referents(owner.__dict__)
    if not isinstance(names, dict) or name not in names:
        raise Unpatchable(f"no dictionary of {owner.__name__} with {name}")
    modified = ctypes.pythonapi.PyType_Modified
    modified.argtypes, modified.restype = (ctypes.c_void_p,), None
    names[name] = method
    modified(id(owner))  # Python caches lookups by the version of the class


def _fields(kind: str, reads: Reads, live: Callable[..., Any], *when: Any) -> Any:
    """Answer ``time.localtime`` and ``time.gmtime``."""
    if when and when[0] is not None:
        return live(*when)

    def read() -> list[Any]:
        found = live()
        return [*found, found.tm_zone, found.tm_gmtoff]

    return time.struct_time(reads.read(kind, read))


def _of_system(kind: str, reads: Reads, live: Callable[..., Any], clock: Any) -> Any:
    """Answer ``time.clock_gettime`` for the clock with that number."""
    return reads.read(f"{kind}({clock})", functools.partial(live, clock))


def _wall() -> Any:
    found = _REAL.now()
    text = found.isoformat()
    return [text, 1] if found.fold else text


def _instant() -> int:
    return (_REAL.now(dt.UTC) - _REAL.epoch) // _MICROSECOND


def _built(cls: Any, parts: dt.datetime, tz: dt.tzinfo | None = None) -> Any:
    """Build a `cls` from ``parts`` as the C code does: for a subclass it calls the constructor."""
    clock = parts.hour, parts.minute, parts.second, parts.microsecond
    made = cls(parts.year, parts.month, parts.day, *clock, tz)
    return made.replace(fold=1) if parts.fold else made


def _as_wall(cls: Any, value: Any) -> Any:
    text, fold = value if isinstance(value, list) else (value, 0)  # pyright: ignore[reportUnknownVariableType]
    found = _REAL.datetime.fromisoformat(text)  # pyright: ignore[reportUnknownArgumentType]
    if fold:
        found = found.replace(fold=1)
    return found if cls is _REAL.datetime else _built(cls, found)


def now(cls: Any, tz: Any = None) -> Any:
    """See `datetime.datetime.now`."""
    reads = reads_of_agent(1)
    if reads is None or not (tz is None or isinstance(tz, dt.tzinfo)):
        return _REAL.now_of(None, cls)(tz)
    return PATCHES.call(functools.partial(_now, reads, cls), _REAL.now_of(None, cls), tz)


def _now(reads: Reads, cls: Any, live: Any, tz: dt.tzinfo | None) -> Any:
    if tz is None:
        return _as_wall(cls, reads.read("clock/datetime.now", _wall))
    instant = _REAL.epoch + dt.timedelta(microseconds=reads.read("clock/datetime.now(tz)", _instant))
    return tz.fromutc(_built(cls, instant, tz))


def utcnow(cls: Any) -> Any:
    """See `datetime.datetime.utcnow`."""
    if sys.version_info >= (3, 12):
        # The warning of the C function would point to this module.
        warnings.warn(DEPRECATED, DeprecationWarning, stacklevel=2)
    reads = reads_of_agent(1)
    instant = _instant() if reads is None else PATCHES.call(functools.partial(_utcnow, reads), _instant)
    return _built(cls, _REAL.epoch + dt.timedelta(microseconds=instant))


def _utcnow(reads: Reads, live: Any) -> int:
    return reads.read("clock/datetime.utcnow", live)


def today(cls: Any) -> Any:
    """See `datetime.date.today`."""
    reads = reads_of_agent(1)
    live = _REAL.today_of(None, cls)
    return live() if reads is None else PATCHES.call(functools.partial(_today, reads, cls), live)


def _today(reads: Reads, cls: Any, live: Any) -> Any:
    owner = next(one for one in cls.__mro__ if "fromtimestamp" in one.__dict__)
    if owner is _REAL.datetime:
        return _as_wall(cls, reads.read("clock/datetime.today", _wall))
    if owner is _REAL.date:
        text = reads.read("clock/date.today", lambda: _REAL.today().isoformat())
        found = _REAL.date.fromisoformat(text)
        return found if cls is _REAL.date else cls(found.year, found.month, found.day)
    return cls.fromtimestamp(reads.read("clock/time.time", _REAL.time))


def _make_room() -> None:
    """Make time-machine find the originals: it changes C functions in place and needs the real ones."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
        PATCHES.also(_make_no_room)


def _make_no_room() -> None:
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]


class _Finder(MetaPathFinder):
    """Finds time-machine's extension and has it imported with our patches lifted."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """None for any other module."""
        if fullname != "_time_machine":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is ExtensionFileLoader:
            spec.loader = _Loader(spec.name, spec.loader.path)
        return spec


class _Loader(ExtensionFileLoader):
    """Imports an extension while our patches are lifted."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        with _PATCHES.lifted():
            return super().create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        with _PATCHES.lifted():
            super().exec_module(module)


def _step_aside(machine: ModuleType) -> None:
    """Lift our patches while time-machine patches: some releases look the functions up only then."""
    for name in ("patch", "unpatch", "patch_if_needed"):
        original = getattr(machine, name, None)
        if original is not None:
            PATCHES.put(machine, name, _without_us(original))


def _without_us(original: Callable[[], Any]) -> Callable[[], Any]:
    @functools.wraps(original)
    def patch() -> Any:
        with _PATCHES.lifted():
            return original()

    return patch


LOG_RECORD: Final = "clock/logging.record"

LOG_RECORD_FIELDS: Final = ("created", "msecs", "relativeCreated", "process", "thread")


def watch_log_records(patches: Patches, session: object = None) -> None:
    """Patch `logging.LogRecord`: a formatter may print the time, process and thread of a record."""
    patches.attempt("logging", lambda: patches.around(logging.LogRecord, "__init__", _make_log_record))


def _make_log_record(init: Any, record: Any, *args: Any, **kwargs: Any) -> None:
    init(record, *args, **kwargs)
    session = current()
    if session is None or _is_own(record.name):
        return

    def live() -> list[Any]:
        return [getattr(record, name) for name in LOG_RECORD_FIELDS]

    values = session.driver.reads.read(LOG_RECORD, live)
    record.__dict__.update(zip(LOG_RECORD_FIELDS, values, strict=True))


def _is_own(name: str) -> bool:
    """Whether a record is from playhead or an exporter; a replay lacks these or has them elsewhere."""
    if name.startswith(("playhead", "opentelemetry")) or not is_instrumentation_enabled():
        return True
    return lanes.in_own_thread()
