"""Processes that `multiprocessing` starts from scratch: ``spawn`` and ``forkserver``.

Such a child records itself. To its parent it is a process like any other. A replay starts it again for
real, with its own tape. A replay needs no fork server: children that were forked there are spawned
like the others. The resource tracker and the fork server are not processes of the run.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
from collections.abc import Generator, Mapping
from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.common.recording import recording
from playhead_instrumentation.libraries.subprocess import child_environment
from playhead_instrumentation.libraries.subprocess.child_environment import (
    EXCHANGE,
    JOINS,
    OWN,
    WHOLE,
    WORKER,
)
from playhead_instrumentation.libraries.subprocess.in_full import Allowed, in_full
from playhead_instrumentation.libraries.subprocess.observed import Observed, observe
from playhead_instrumentation.libraries.subprocess.process_start import ProcessStart
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.lanes import Outside, Shadow
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.session.session import Session

TRACKER, SERVER, CHILD = "resource_tracker", "forkserver", "spawn"
"""What a command line of `multiprocessing` starts: the module whose ``main`` it calls."""

CALL: Final = "multiprocessing."
"""Prefix of the call name for such a start; the start method follows it."""

HANDED: Final = "playhead"
"""Key in the preparation data under which a child of a fork server gets its variables."""


class _Starting(threading.local):
    """The process that this thread is starting."""

    method = ""
    name = ""
    child: Any = None


_starting = _Starting()


def exchange_of_start() -> str:
    """Return the exchange in which this thread has a fork server make a process; empty: none."""
    child = _starting.child
    return str(child.call.id) if child is not None and _starting.method == SERVER else ""


@contextlib.contextmanager
def _starts(process: Any, method: str) -> Generator[_Starting]:
    """Context manager: this thread starts ``process`` inside; the outermost start decides the method."""
    if _starting.method:
        yield _starting
        return
    _starting.method, _starting.name = method, str(process.name)
    try:
        yield _starting
    finally:
        _starting.method, _starting.name, _starting.child = "", "", None


def patch_util(module: ModuleType) -> None:
    """Patch the function that starts an interpreter with a few inherited descriptors."""
    PATCHES.around(module, "spawnv_passfds", _spawnv_passfds)


def _spawnv_passfds(spawn: Any, path: Any, args: Any, passfds: Any) -> Any:
    role = role_of([os.fsdecode(word) for word in args])
    if role in (TRACKER, SERVER):
        with Allowed(), Shadow(), _environment(_without_ours(traced=role == SERVER)):
            return spawn(path, args, passfds)
    session = recording()
    if session is None or role != CHILD or not _starting.method:
        with _environment(_ours()):
            return spawn(path, args, passfds)
    return _start(spawn, session, path, args, list(passfds))


def _ours() -> dict[str, str | None]:
    """Return the variables that tell a worker of this process who its parent is, as strings."""
    told = dict[str, str | None](child_environment.variables())
    return told if told.get(JOINS) == WHOLE else told | {JOINS: ""}


def patch_preparation(module: ModuleType) -> None:
    """Pass variables to the children of a fork server, whose environment is that of the server."""
    PATCHES.around(module, "get_preparation_data", _get_preparation_data)


def _get_preparation_data(get_preparation_data: Any, name: Any) -> Any:
    data = get_preparation_data(name)
    if exchange := exchange_of_start():
        data[HANDED] = _ours() | {EXCHANGE: exchange}
    return data


def role_of(words: list[str]) -> str:
    """Return which process of `multiprocessing` a command line starts; empty: none."""
    for module in (TRACKER, SERVER, CHILD):
        if any(word.startswith(f"from multiprocessing.{module} import") for word in words):
            return module
    return ""


def _begin(session: Session, method: str, name: str) -> Any:
    """Open the exchange of a process that is about to start; None if that failed."""
    started = ProcessStart(CALL + method, (name,))
    full = in_full(session)
    return observe(session, started) if full is None else full.begin(session, started)


def _start(original: Any, session: Session, path: Any, args: Any, passfds: list[Any]) -> int:
    child = _begin(session, _starting.method, _starting.name)
    if child is None:
        return original(path, args, passfds)
    _starting.child = child
    variables: dict[str, str | None] = {**_ours(), EXCHANGE: str(child.call.id)}

    def start(child: Any) -> int:
        try:
            with Allowed(), Shadow(), _environment(variables):
                return original(path, args, passfds)
        except BaseException as error:
            child.failed(error)
            raise

    def live(child: Any) -> int:
        pid = start(child)
        child.started(pid)
        if isinstance(child, Observed):
            child.abandoned()  # its end is learned if nothing observes it
        return pid

    def again(child: Any) -> int:
        tape = child.tape()
        if tape is None:
            _swallow(args)
            return child.start_again()  # what it exchanged with other processes is on their tapes
        told = session.for_worker(tape)
        variables.update(told.variables)
        passfds.extend(told.descriptors)
        child.beside = start(child)
        return child.start_again()

    return child.answer(live, again)


def _swallow(args: Any) -> None:
    """Read and drop what the parent sends to the process, since there is no process to read it."""
    found = re.search(r"pipe_handle=(\d+)", " ".join(os.fsdecode(word) for word in args))
    if found is None:
        return
    number = os.dup(int(found[1]))

    def read() -> None:
        with contextlib.suppress(OSError), open(number, "rb", closefd=True) as file:
            while file.read(1 << 16):
                pass

    name = f"{lanes.OWN_THREADS}swallow"
    threading.Thread(target=read, name=name, daemon=True).start()


def _without_ours(*, traced: bool) -> dict[str, str | None]:
    """Return playhead's variables, to be removed; ``traced``: keep what makes a child record."""
    names = [name for name in os.environ if name.startswith(OWN[:3]) or name in (EXCHANGE, WORKER)]
    names += [name for name in os.environ if name.startswith("PLAYHEAD_PARENT_")]
    left: dict[str, str | None] = dict.fromkeys(names)
    if not traced:
        path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        left["PYTHONPATH"] = os.pathsep.join(one for one in path if not one.endswith(STARTERS)) or None
    return left


STARTERS: Final = (
    os.path.join("opentelemetry", "instrumentation", "auto_instrumentation"),
    os.path.join("playhead_instrumentation", "bootstrap", "site"),
)
"""Ends of the paths of folders whose `sitecustomize` starts a recording."""


@contextlib.contextmanager
def _environment(variables: Mapping[str, str | None]) -> Generator[None]:
    """Context manager: set these variables in our environment while a process starts; None: unset."""
    before = {name: os.environ.get(name) for name in variables}
    _put(variables)
    try:
        yield
    finally:
        _put(before)


def _put(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def patch_spawn(module: ModuleType) -> None:
    """Patch the start of a spawned process: `spawnv_passfds` does not get the process object."""
    PATCHES.around(required(module, "Popen"), "_launch", _launch_spawned)


def _launch_spawned(launch: Any, popen: Any, process: Any) -> None:
    with _starts(process, CHILD):
        launch(popen, process)


def patch_forkserver(module: ModuleType) -> None:
    """Patch how a fork server makes a child, and how its pipe reports the child's end."""
    owner, server = required(module, "Popen"), required(module, "forkserver")
    for name in ("_launch", "poll"):
        required(owner, name)
    own = ModuleType(server.__name__)
    own.__dict__.update(server.__dict__)
    for name in ("connect_to_new_process", "read_signed"):
        own.__dict__[name] = _in_shadow(required(server, name))
    PATCHES.put(module, "forkserver", own)
    PATCHES.around(owner, "_launch", _launch_from_server)
    PATCHES.around(owner, "poll", _poll)


def _launch_from_server(launch: Any, popen: Any, process: Any) -> None:
    session = recording()
    if session is None:
        return launch(popen, process)
    with _starts(process, SERVER) as starting:
        if session.driver.fenced:
            _spawn_instead(popen, process)
        else:
            child = starting.child = _begin(session, SERVER, str(process.name))
            _launch(child, launch, popen, process)
        popen.__dict__["_playhead_child"] = starting.child


def _launch(child: Any, launch: Any, popen: Any, process: Any) -> None:
    try:
        launch(popen, process)
    except BaseException as error:
        if child is not None:
            child.failed(error)
        raise
    if child is not None:
        child.started(popen.pid)


def _spawn_instead(popen: Any, process: Any) -> None:
    from multiprocessing.popen_spawn_posix import Popen

    made: Any = Popen(process)
    popen.pid, popen.sentinel, popen.finalizer = made.pid, made.sentinel, made.finalizer


def _poll(original: Any, popen: Any, flag: int = os.WNOHANG) -> int | None:
    child: Any = popen.__dict__.get("_playhead_child")
    if child is None or child.passes:
        return original(popen, flag)
    session = recording()
    if session is None or popen.returncode is not None:
        return original(popen, flag)
    patient = not flag & os.WNOHANG

    def live(child: Any) -> int | None:
        with Outside() if patient else Shadow():
            status = original(popen, flag)
        if status is not None:
            child.exited(status, in_turn=True)
        elif not patient:
            child.running()
        return status

    def again(child: Any) -> int | None:
        full = in_full(session)
        status = child.wait() if patient else child.poll()
        if isinstance(status, int):
            if full is not None:
                full.until_over(child, status)
            popen.returncode = status
        return popen.returncode

    return child.answer(live, again)


def _in_shadow(original: Any) -> Any:
    @functools.wraps(original)
    def function(*args: Any) -> Any:
        with Allowed(), Shadow():
            return original(*args)

    return function
