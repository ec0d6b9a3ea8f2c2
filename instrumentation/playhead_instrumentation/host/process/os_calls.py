"""Processes through `os`: system, spawn*, posix_spawn*, exec*; waits for them and signals to them."""

from __future__ import annotations

import contextlib
import functools
import os
import shlex
import signal
from collections.abc import Callable
from typing import Any

from playhead_instrumentation.boundaries.process import child_environment, unpatched
from playhead_instrumentation.boundaries.process.in_full import InFull, enter
from playhead_instrumentation.boundaries.process.words import EXCHANGE, VARIABLES, Started, words_of
from playhead_instrumentation.boundaries.recording import recording
from playhead_instrumentation.host.process import forks, popen, terminals
from playhead_instrumentation.host.process.exchange import CHILDREN, Child, begin
from playhead_instrumentation.host.process.fence import block
from playhead_instrumentation.runtime.lanes import Outside, Shadow
from playhead_instrumentation.runtime.patching import INNER, Patches
from playhead_instrumentation.runtime.real_clock import REAL

STARTS: dict[str, Callable[..., Any]] = {}
"""Layers of functions that start a process, by name in `os`; called through
`boundaries.process.in_full`."""

TALK: dict[str, Callable[..., Any]] = {}
"""Layers of functions that wait for a process or signal to one, by name in `os`."""


def watch(patches: Patches, session: object = None) -> None:
    """Record processes in full: patch starts, waits, signals and terminals."""
    enter(InFull(popen.start, STARTS, begin, until_over))
    if os.name != "posix":
        return
    for name, layer in TALK.items():
        if hasattr(os, name):
            patches.attempt(
                f"os.{name}", functools.partial(patches.around, os, name, layer, order=INNER)
            )
    patches.attempt("os.forkpty", terminals.cover_forkpty)


def _starts(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        STARTS[name] = function
        return function

    return keep


def _talks(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        TALK[name] = function
        return function

    return keep


def _begin(call: str, args: Any, *, program: Any = "", **more: Any) -> Child | None:
    """The exchange of a process that starts now; None where it is not recorded or the call is wrong."""
    session = recording()
    if session is None:
        return None
    try:
        words, program = words_of(args), os.fsdecode(program)
        executable = "" if words[:1] == (program,) else program
        started = Started(call, words, executable=executable, **more)
    except TypeError:
        return None
    return begin(session, started)


@_starts("system")
def _system(original: Any, command: Any) -> Any:
    child = _begin("os.system", command, shell=True)
    if child is None:
        return original(command)
    if child.played is not None:
        child.start_again()
        return child.wait()
    child.started(0)
    with Outside():
        status = original(_traced(command, child))
    child.exited(status, in_turn=True)
    return status


def _traced(command: Any, child: Child) -> Any:
    """A shell command line that passes the trace context to its children."""
    told = child_environment.variables()
    if not told:
        return command
    told[EXCHANGE] = str(child.call.id)
    given = [f"{name}={shlex.quote(told[name])}" for name in VARIABLES if name in told]
    text = f"export {' '.join(given)}; {os.fsdecode(command)}"
    return os.fsencode(text) if isinstance(command, bytes) else text


@_starts("_spawnvef")
def _spawn(original: Any, mode: int, file: Any, args: Any, env: Any, func: Any) -> Any:
    more = (("wait", mode == os.P_WAIT),)
    child = _begin("os.spawn", args, program=file, environ=env, more=more)
    if child is None:
        return original(mode, file, args, env, func)
    waits = mode == os.P_WAIT
    if child.played is not None:
        pid = child.start_again()
        return child.wait() if waits else pid
    function = child_environment.WITH_ENVIRONMENT.get(getattr(func, "__name__", ""))
    if env is not None or function is not None:
        env = child.environment(env)
        func = func if function is None else getattr(os, function)
    try:
        if waits:
            child.started(0)
        with child.execs(), Outside() if waits else Shadow():
            found = original(mode, file, args, env, func)
    except BaseException as error:
        child.failed(error)
        raise
    if waits:
        child.exited(found, in_turn=True)
    else:
        child.started(found)
    return found


def _posix_spawn(call: str, original: Any, path: Any, argv: Any, env: Any, **options: Any) -> Any:
    streams = ("inherited", "pipe", "inherited") if options.get("file_actions") else ("inherited",) * 3
    child = _begin(call, argv, program=path, environ=env, streams=streams)
    if child is None:
        return original(path, argv, env, **options)
    if child.played is not None:
        return child.start_again()
    try:
        with Shadow():
            pid = original(path, argv, child.environment(env), **options)
    except BaseException as error:
        child.failed(error)
        raise
    child.started(pid)
    return pid


STARTS["posix_spawn"] = functools.partial(_posix_spawn, "os.posix_spawn")
STARTS["posix_spawnp"] = functools.partial(_posix_spawn, "os.posix_spawnp")


def _exec(original: Any, path: Any, argv: Any, *env: Any) -> Any:
    """Continue the run in another program. Replay: end here, like the tape."""
    child = _begin("os.exec", argv, program=path, environ=env[0] if env else None)
    if child is None:
        return original(path, argv, *env)
    if child.played is not None:
        if child.played.exchange.end is not None:
            child.start_again()
        os._exit(0)
    try:
        return unpatched.execve(path, argv, child.environment(env[0] if env else None))
    except BaseException as error:
        child.failed(error)
        raise


STARTS["execv"] = STARTS["execve"] = _exec
STARTS["fork"] = forks.fork


def _known(pid: Any) -> Child | None:
    if recording() is None:
        return None
    child = CHILDREN.get(pid)
    return None if child is None or child.passes else child


@_talks("waitpid")
def _waitpid(original: Any, pid: int, options: int) -> Any:
    child = _known(pid)
    if child is None and pid == -1 and any(one.played and not one.passes for one in CHILDREN.values()):
        child = _first_to_end()
    if child is None:
        return original(pid, options)
    if child.played is not None:
        if child.call.ended is not None:
            raise ChildProcessError(10, os.strerror(10))
        status = child.poll() if options & os.WNOHANG else child.wait()
        if isinstance(status, int):
            until_over(child, status)
        return (child.pid, _raw(status)) if isinstance(status, int) else (0, 0)
    if options & os.WNOHANG:
        found = original(pid, options)
    else:
        with Outside():
            found = original(pid, options)
    if found[0] == pid:
        child.exited(os.waitstatus_to_exitcode(found[1]), in_turn=True)
    elif options & os.WNOHANG:
        child.running()
    return found


KILLED_PATIENCE_S = 5.0
"""Seconds that a replayed process may take to reach the point where its recording was killed."""


def until_over(child: Child, status: int) -> None:
    """Wait until the fork of this replay has ended too, so that its output is in the pipes."""
    pid, child.beside = child.beside, 0
    if not pid or unpatched.waitpid is None:
        return
    with Outside(), contextlib.suppress(ChildProcessError):
        patient_until = REAL.now_s() + KILLED_PATIENCE_S
        while status < 0 and REAL.now_s() < patient_until:
            if unpatched.waitpid(pid, os.WNOHANG)[0]:
                return
            REAL.sleep(0.01)
        if status < 0:
            unpatched.kill(pid, signal.SIGKILL)
        unpatched.waitpid(pid, 0)


def _raw(status: int) -> int:
    return status << 8 if status >= 0 else -status


def _first_to_end() -> Child | None:
    def end(child: Child) -> tuple[int, int]:
        assert child.played is not None and child.played.exchange.end is not None
        at = child.played.exchange.end.delivery
        return (1 << 62, 0) if at is None else (at.batch, at.order)

    ending = [
        child
        for child in CHILDREN.values()
        if child.played is not None
        and not child.passes
        and child.call.ended is None
        and child.played.exchange.end is not None
    ]
    return min(ending, key=end, default=None)


@_talks("wait")
def _wait(original: Any) -> Any:
    if recording() is None or not CHILDREN:
        return original()
    child = _first_to_end()
    if child is not None:
        return _waitpid(original, child.pid, 0)
    with Outside():
        pid, status = original()
    child = CHILDREN.get(pid)
    if child is not None and not child.passes:
        child.exited(os.waitstatus_to_exitcode(status), in_turn=True)
    return pid, status


@_talks("kill")
def _kill(original: Any, pid: int, number: int) -> Any:
    session = recording()
    if session is None:
        return original(pid, number)
    child = _known(pid)
    if child is None:
        if pid != os.getpid():
            block(f"a signal to the process {pid}")
        return original(pid, number)
    return _signal(original, child, pid, number)


@_talks("killpg")
def _killpg(original: Any, group: int, number: int) -> Any:
    session = recording()
    if session is None:
        return original(group, number)
    child = _known(group)
    if child is None or not child.own_group:
        block(f"a signal to the process group {group}")
        return original(group, number)
    return _signal(original, child, group, number)


def _signal(original: Any, child: Child, target: int, number: int) -> Any:
    session = recording()
    if child.played is not None and child.call.ended is not None:
        raise ProcessLookupError(3, os.strerror(3))
    if number and session is not None:
        child.signalled = True
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        session.driver.effect("signal", f"{name} {session.redactor.text(child.key)}")
    return None if child.played is not None else original(target, number)


@_talks("getpgid")
def _getpgid(original: Any, pid: int) -> Any:
    child = _known(pid)
    if child is None or child.played is None:
        return original(pid)
    return pid if child.own_group else os.getpgrp()
