"""Refuse recorded messages of other processes that would run code when they are unpickled.

A tape may come from anywhere, and a message of `multiprocessing` is a pickle: it can import any module
and call anything in it. Before a recorded message is given to the program, it is unpickled with
stand-ins in the place of all that it names, so that nothing is imported and nothing real is called.
What it named, and what it wanted to call, is then held against what messages need:

* functions and classes of the program itself, by name, as the tasks of a pool are;
* objects of plain classes (`plain_classes`), and exceptions;
* the few functions of the standard library and numpy in `CALLED` and `NAMED`.

A message that names anything else is not loaded.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from typing import Any, Final

from playhead_instrumentation.patching import plain_classes

CALLED: Final = {
    "_codecs": frozenset(("encode",)),
    "builtins": frozenset(
        (
            "bool bytearray bytes complex dict float frozenset int list object range set slice str tuple"
        ).split()
    ),
    "collections": frozenset(("Counter", "OrderedDict", "defaultdict", "deque")),
    "concurrent.futures.process": frozenset(
        ("_CallItem", "_ExceptionWithTraceback", "_RemoteTraceback", "_ResultItem", "_rebuild_exc")
    ),
    "copyreg": frozenset(("__newobj__", "_reconstructor")),
    "datetime": frozenset(("date", "datetime", "time", "timedelta", "timezone")),
    "decimal": frozenset(("Decimal",)),
    "fractions": frozenset(("Fraction",)),
    "functools": frozenset(("partial",)),
    "ipaddress": frozenset(("IPv4Address", "IPv6Address")),
    "multiprocessing.connection": frozenset(("rebuild_connection",)),
    "multiprocessing.managers": frozenset(("RebuildProxy", "Token")),
    "multiprocessing.pool": frozenset(("ExceptionWithTraceback", "RemoteTraceback", "rebuild_exc")),
    "multiprocessing.reduction": frozenset(("_rebuild_partial", "_rebuild_socket")),
    "multiprocessing.resource_sharer": frozenset(("DupFd",)),
    "numpy": frozenset(("dtype", "ndarray")),
    "numpy._core.multiarray": frozenset(("_reconstruct", "scalar")),
    "numpy._core.numeric": frozenset(("_frombuffer",)),
    "numpy.core.multiarray": frozenset(("_reconstruct", "scalar")),
    "numpy.core.numeric": frozenset(("_frombuffer",)),
    "pathlib": frozenset(("Path", "PosixPath", "PurePath", "PurePosixPath", "PureWindowsPath")),
    "types": frozenset(("SimpleNamespace",)),
    "uuid": frozenset(("SafeUUID", "UUID")),
}
"""By module, what a recorded message may call: it makes values and has no effect on anything else."""

NAMED: Final = {
    "builtins": frozenset(
        (
            "abs all any ascii bin bool bytes chr dict divmod enumerate filter float format hash hex int"
            " len list map max min oct ord pow print repr reversed round sorted str sum tuple zip"
        ).split()
    ),
    "celery.app.trace": frozenset(("fast_trace_task", "trace_task_ret")),
    "concurrent.futures.process": frozenset(("_process_chunk",)),
    "json": frozenset(("dumps", "loads")),
    "math": None,
    "multiprocessing.managers": frozenset(
        (
            "ArrayProxy AcquirerProxy AutoProxy BarrierProxy BaseProxy ConditionProxy DictProxy"
            " EventProxy IteratorProxy ListProxy NamespaceProxy PoolProxy ValueProxy"
        ).split()
    ),
    "multiprocessing.pool": frozenset(("mapstar", "starmapstar")),
    "operator": frozenset(
        "add and_ concat contains eq floordiv ge gt le lt mod mul ne neg or_ sub".split()
    ),
    "statistics": None,
    "time": frozenset(("monotonic", "perf_counter", "sleep", "time")),
}
"""By module, what it may name, so that the program may call it, as a worker of a pool calls its task.
None: everything that is public."""


def refusal(data: bytes) -> str:
    """Why a recorded message is not loaded; empty if it may be, also because it is no pickle."""
    copyreg.clear_extension_cache()  # it holds real objects, which are taken without asking for them
    unpickler, failed = _StandIns(io.BytesIO(data)), ""
    try:
        unpickler.load()
    except Exception as problem:
        failed = f"it cannot be checked: {type(problem).__name__}: {problem}"
    # Without a name there is nothing to import or to call, whatever the bytes are.
    if not unpickler.names:
        return ""
    return next((problem for one in unpickler.names if (problem := _problem(one))), failed)


class _Name:
    """Something that a message names."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name
        self.is_called = self.is_made = False


class _Kind(type):
    """Class of the stand-ins. Notes that one was called."""

    named: _Name

    def __call__(cls, *arguments: Any, **_: Any) -> Any:
        """Make an object, of which nothing can be called."""
        if (cls.named.module, cls.named.name) == ("builtins", "getattr"):
            return _method(cls.named, *arguments)
        cls.named.is_called = True
        if cls.named.module == "copyreg":  # it makes an object of the class that it is given
            for one in arguments:
                if isinstance(one, _Kind):
                    one.named.is_made = True
        return object.__new__(cls)


class _StandIn(metaclass=_Kind):
    """Takes everything that a pickle does to an object, and does nothing."""

    def __new__(cls, *_: Any, **__: Any) -> Any:
        cls.named.is_made = True
        return object.__new__(cls)

    def __setstate__(self, state: Any) -> None: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    def append(self, one: Any) -> None: ...
    def extend(self, several: Any) -> None: ...
    def add(self, one: Any) -> None: ...


def _method(getattr_: _Name, *arguments: Any) -> object:
    """Return the stand-in of a method of an object: bound methods are pickled as calls of `getattr`."""
    owner, name = arguments
    if not isinstance(owner, _StandIn) or not isinstance(name, str) or name.startswith("_"):
        getattr_.is_called = True
    return object()


class _StandIns(pickle.Unpickler):
    """Unpickles with a stand-in for each name."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.names: list[_Name] = []

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """Return a new stand-in. Names of Python 2, which old protocols use, are those of Python 3."""
        named = _Name(*NAME_MAPPING.get((module_name, global_name), (module_name, global_name)))
        named.module = IMPORT_MAPPING.get(named.module, named.module)
        self.names.append(named)
        return _Kind("StandIn", (_StandIn,), {"named": named})

    def persistent_load(self, pid: Any) -> Any:
        """Refused: `multiprocessing` has no persistent ids."""
        self.names.append(_Name("pickle", "persistent_load"))
        return None


def _problem(named: _Name) -> str:
    """Why a message must not have a name; empty if it may."""
    module, name = named.module, named.name
    if module.partition(".")[0] == "billiard":  # what Celery has in the place of `multiprocessing`
        module = f"multiprocessing{module.removeprefix('billiard')}"
    if name in CALLED.get(module, ()):
        return ""
    found = plain_classes.defined(module, name)
    if named.is_called or named.is_made:
        if isinstance(found, type) and plain_classes.may_be_unpickled(found, called=named.is_called):
            return ""
        return f"it calls {named.module}.{name}"
    allowed = NAMED.get(module, ())
    if name in allowed if allowed is not None else name.isidentifier() and not name.startswith("_"):
        return ""
    if (module, name) == ("builtins", "getattr") or (found and plain_classes.is_of_program(module)):
        return ""
    return f"it names {named.module}.{name}"
