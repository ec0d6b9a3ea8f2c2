"""Patch the functions that start child processes: `subprocess`, asyncio, and those of `os`.

At level ``exchanges`` a child is only observed (`observed`). If the tape also holds what the program
and its children exchange, and at every replay, the same patches lead to `in_full`.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.common import random_state
from playhead_instrumentation.libraries.common.recording import recording
from playhead_instrumentation.libraries.subprocess import child_environment, pipes, streams
from playhead_instrumentation.libraries.subprocess.in_full import Allowed, in_full
from playhead_instrumentation.libraries.subprocess.observed import Observed, observe
from playhead_instrumentation.libraries.subprocess.process_start import (
    FORK,
    ProcessStart,
    remember,
    words_of,
)
from playhead_instrumentation.patching import unpatched
from playhead_instrumentation.patching.lanes import Outside, Shadow
from playhead_instrumentation.patching.patches import PATCHES, Patches, required
from playhead_instrumentation.session.session import Session, current
from playhead_semconv import attributes as a

OBSERVED: Final = "_playhead_observed"
"""Attribute of a `Popen` that holds its exchange."""

PROCESSOR: Final = ["uname", "-p"]
"""What `platform` runs to learn the processor, mostly for an SDK's headers: no child of the run."""

STREAMS: Final = {1: "stdout", 2: "stderr"}

_parameters: list[str] = []
"""Parameter names of ``Popen._execute_child``."""


def watch(patches: Patches, session: Session) -> None:
    """Patch the functions of `os`."""
    remember(str(session.process.attributes.get(a.PLAYHEAD_RUN_CWD, "")))
    if os.name == "posix":
        for name, layer in LAYERS.items():
            if hasattr(os, name):
                patches.attempt(f"os.{name}", functools.partial(patches.around, os, name, layer))


def patch_subprocess(module: ModuleType) -> None:
    """Patch `Popen`, below its ``__init__``."""
    owner: Any = required(module, "Popen")
    _parameters[:] = streams.parameters(owner)
    for name in ("_communicate", "_handle_exitstatus"):
        required(owner, name)
    PATCHES.put(module, "io", pipes.opening(required(module, "io")))
    PATCHES.around(owner, "_execute_child", _execute_child)
    PATCHES.around(owner, "_communicate", _communicate)
    PATCHES.around(owner, "_handle_exitstatus", _handle_exitstatus)


def patch_gevent(module: ModuleType) -> None:
    """Patch gevent's `Popen`, which forks and then executes."""
    PATCHES.around(required(module, "Popen"), "_execute_child", _execute_among_greenlets)


def _execute_among_greenlets(execute_child: Any, popen: Any, args: Any, *more: Any, **named: Any) -> Any:
    session = current()
    if session is None or args != PROCESSOR:
        return execute_child(popen, args, *more, **named)
    with session.process.forks("", execs=True), Shadow(), Allowed():
        return execute_child(popen, args, *more, **named)


def patch_asyncio(module: ModuleType) -> None:
    """Patch asyncio's process transports, which deliver a child's output and its exit."""
    owner: Any = required(module, "BaseSubprocessTransport")
    PATCHES.around(owner, "_pipe_data_received", _pipe_data_received)
    PATCHES.around(owner, "_process_exited", _process_exited)


def _execute_child(execute_child: Any, popen: Any, *args: Any, **kwargs: Any) -> Any:
    given = dict(zip(_parameters, args, strict=False)) | kwargs
    session = recording()
    if session is not None and given["args"] == PROCESSOR and not session.has("machine"):
        with Shadow(), Allowed():
            return execute_child(popen, **given)
    if session is None:
        given["env"] = child_environment.environment(given["env"])
        return execute_child(popen, **given)
    full = in_full(session)
    if full is not None:
        return full.popen(session, execute_child, popen, given)
    return _observe_popen(session, execute_child, popen, given)


def _observe_popen(session: Session, execute_child: Any, popen: Any, given: dict[str, Any]) -> Any:
    try:
        started = streams.started_of(popen, given)
    except (TypeError, ValueError, OSError):
        return execute_child(popen, **given)  # it reports this mistake itself
    observed = observe(session, started)
    given["env"] = child_environment.environment(given["env"], _name(observed))
    if observed is None:
        return execute_child(popen, **given)
    popen.__dict__[OBSERVED] = observed
    for name, stream in (("stdout", "stdout"), ("stderr", "stderr")):
        pipes.belongs_to(getattr(popen, name, None), observed, stream)
    try:
        with Shadow():
            execute_child(popen, **given)
    except BaseException as error:
        observed.failed(error)
        raise
    observed.pid = popen.pid


def _name(observed: Observed | None) -> str:
    return "" if observed is None else observed.name


def _observed(popen: Any) -> Observed | None:
    """Return the exchange of a `Popen` that is observed; None if it is not."""
    found: Observed | None = getattr(popen, "__dict__", {}).get(OBSERVED)
    return None if found is None or found.passes else found


def _communicate(communicate: Any, popen: Any, *args: Any, **kwargs: Any) -> Any:
    observed = _observed(popen)
    if observed is None:
        return communicate(popen, *args, **kwargs)
    ended = False
    timeout: Any = None
    try:
        result = communicate(popen, *args, **kwargs)
        ended = True
    except Exception as error:
        timeout = getattr(error, "timeout", None)
        raise
    finally:
        _tell_read(observed, popen, ended=ended)
        if isinstance(timeout, int | float):
            observed.expired(timeout)
    return result


def _tell_read(observed: Observed, popen: Any, *, ended: bool) -> None:
    """Record what ``communicate`` has read by descriptor number."""
    pieces: Mapping[Any, list[bytes]] = popen.__dict__.get("_fileobj2output") or {}
    for stream in STREAMS.values():
        file = getattr(popen, stream, None)
        if file is not None and file in pieces:
            observed.has_read(stream, b"".join(pieces[file]), ended=ended)


def _handle_exitstatus(handle_exitstatus: Any, popen: Any, *args: Any, **kwargs: Any) -> Any:
    result = handle_exitstatus(popen, *args, **kwargs)
    observed = _observed(popen)
    # `subprocess` also asks for the status of a program that could not start, before it raises the
    # error.
    if observed is not None and observed.pid and popen.returncode is not None:
        observed.exited(popen.returncode)
    return result


def _pipe_data_received(pipe_data_received: Any, transport: Any, fd: int, data: Any) -> Any:
    observed = _observed(getattr(transport, "_proc", None))
    if observed is not None and fd in STREAMS:
        observed.learned(STREAMS[fd], bytes(data))
    return pipe_data_received(transport, fd, data)


def _process_exited(process_exited: Any, transport: Any, returncode: int) -> Any:
    observed = _observed(getattr(transport, "_proc", None))
    if observed is not None:
        observed.exited(returncode)
    return process_exited(transport, returncode)


def _dispatched(name: str, light: Callable[..., Any]) -> Callable[..., Any]:
    """Return the layer for a function of `os`: ``light`` to observe children, else that of `in_full`."""

    def layer(original: Any, *args: Any, **kwargs: Any) -> Any:
        session = recording()
        if session is None:
            return original(*args, **kwargs)
        full = in_full(session)
        if full is not None:
            return full.functions[name](original, *args, **kwargs)
        return light(session, original, *args, **kwargs)

    return layer


def _begun(session: Session, call: str, args: Any, *, program: Any = "", **more: Any) -> Observed | None:
    try:
        words, program = words_of(args), os.fsdecode(program)
        executable = "" if words[:1] == (program,) else program
        return observe(session, ProcessStart(call, words, executable=executable, **more))
    except TypeError:
        return None  # the function reports this mistake itself


def _system(session: Session, system: Any, command: Any) -> Any:
    # The shell gets the command unchanged, so its children do not learn which process is their parent.
    observed = _begun(session, "os.system", command, shell=True)
    with Outside():
        status = system(command)
    if observed is not None:
        observed.exited(status)
    return status


def _spawn(session: Session, spawn: Any, mode: int, file: Any, args: Any, env: Any, func: Any) -> Any:
    waits = mode == os.P_WAIT
    observed = _begun(session, "os.spawn", args, program=file, environ=env, more=(("wait", waits),))
    function = child_environment.WITH_ENVIRONMENT.get(getattr(func, "__name__", ""))
    if env is not None or function is not None:
        told = child_environment.environment(env, _name(observed))
        env = os.environ if told is None else told
        func = func if function is None else getattr(os, function)
    try:
        with session.process.forks("", execs=True), Outside() if waits else Shadow():
            result = spawn(mode, file, args, env, func)
    except BaseException as error:
        if observed is not None:
            observed.failed(error)
        raise
    if observed is not None:
        if waits:
            observed.exited(result)
        else:
            observed.left(result)
    return result


def _posix_spawn(
    call: str, session: Session, posix_spawn: Any, path: Any, argv: Any, env: Any, **options: Any
) -> Any:
    streams = ("inherited", "pipe", "inherited") if options.get("file_actions") else ("inherited",) * 3
    observed = _begun(session, call, argv, program=path, environ=env, streams=streams)
    try:
        with Shadow():
            pid = posix_spawn(path, argv, child_environment.environment(env, _name(observed)), **options)
    except BaseException as error:
        if observed is not None:
            observed.failed(error)
        raise
    if observed is not None:
        observed.left(pid)
    return pid


def _exec(session: Session, execute: Any, path: Any, argv: Any, *env: Any) -> Any:
    """Replace the process image: the run continues in another program."""
    session.drain()
    observed = _begun(session, "os.exec", argv, program=path, environ=env[0] if env else None)
    try:
        return unpatched.execve(
            path, argv, child_environment.environment(env[0] if env else None, _name(observed))
        )
    except BaseException as error:
        if observed is not None:
            observed.failed(error)
        raise


def _fork(session: Session, fork: Any) -> int:
    observed = observe(session, ProcessStart(FORK, ()))
    if observed is None:
        return fork()
    try:
        # Fork hooks of others (OpenTelemetry describes the process again) are not part of the program.
        with session.process.forks(observed.name), Shadow():
            pid = fork()
    except BaseException as error:
        observed.failed(error)
        raise
    if pid:
        observed.left(pid)
    elif session.has("random"):
        random_state.restore(session)
    return pid


LAYERS: Final[dict[str, Callable[..., Any]]] = {
    name: _dispatched(name, light)
    for name, light in (
        ("system", _system),
        ("_spawnvef", _spawn),
        ("posix_spawn", functools.partial(_posix_spawn, "os.posix_spawn")),
        ("posix_spawnp", functools.partial(_posix_spawn, "os.posix_spawnp")),
        ("execv", _exec),
        ("execve", _exec),
        ("fork", _fork),
    )
}
"""The functions of `os` that start a process, with their layers."""
