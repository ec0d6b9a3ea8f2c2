"""Processes that the program starts through `os`: system, spawn*, posix_spawn*, exec*, fork."""

from __future__ import annotations

import functools
import os
import shlex
from collections.abc import Callable
from typing import Any, NoReturn

from playhead_instrumentation.libraries.common.recording import recording
from playhead_instrumentation.libraries.subprocess import child_environment
from playhead_instrumentation.libraries.subprocess.child_environment import EXCHANGE, VARIABLES
from playhead_instrumentation.libraries.subprocess.in_full import InFull, enter
from playhead_instrumentation.libraries.subprocess.process_start import ProcessStart, words_of
from playhead_instrumentation.libraries.subprocess_full import forks, os_waits, popen, terminals
from playhead_instrumentation.libraries.subprocess_full.child import Child
from playhead_instrumentation.libraries.subprocess_full.exchange import begin
from playhead_instrumentation.libraries.subprocess_full.live_child import LiveChild
from playhead_instrumentation.libraries.subprocess_full.replayed_child import ReplayedChild
from playhead_instrumentation.patching import unpatched
from playhead_instrumentation.patching.lanes import Outside, Shadow
from playhead_instrumentation.patching.patches import Patches

STARTS: dict[str, Callable[..., Any]] = {}
"""Layers of functions that start a process, by name in `os`; called through
`libraries.subprocess.in_full`."""


def watch(patches: Patches, session: object = None) -> None:
    """Record processes in full: patch starts, waits, signals and terminals."""
    enter(InFull(popen.start, STARTS, begin, os_waits.until_over))
    if os.name == "posix":
        os_waits.watch(patches)
        patches.attempt("os.forkpty", terminals.cover_forkpty)


def _starts(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        STARTS[name] = function
        return function

    return keep


def _begin(call: str, args: Any, *, program: Any = "", **more: Any) -> Child | None:
    """The exchange of a process that starts now; None if it is not recorded or the call is wrong."""
    session = recording()
    if session is None:
        return None
    try:
        words, program = words_of(args), os.fsdecode(program)
        executable = "" if words[:1] == (program,) else program
        started = ProcessStart(call, words, executable=executable, **more)
    except TypeError:
        return None
    return begin(session, started)


@_starts("system")
def _system(original: Any, command: Any) -> Any:
    child = _begin("os.system", command, shell=True)
    if child is None:
        return original(command)

    def live(child: LiveChild) -> int:
        child.started(0)
        with Outside():
            status = original(_traced(command, child))
        child.exited(status, in_turn=True)
        return status

    return child.answer(live, _ran_again)


def _ran_again(child: ReplayedChild) -> Any:
    """Start a child and wait for its end."""
    child.start_again()
    return child.wait()


def _traced(command: Any, child: Child) -> Any:
    """Return a shell command line that passes the trace context to its children."""
    told = child_environment.variables()
    if not told:
        return command
    told[EXCHANGE] = str(child.call.id)
    given = [f"{name}={shlex.quote(told[name])}" for name in VARIABLES if name in told]
    text = f"export {' '.join(given)}; {os.fsdecode(command)}"
    return os.fsencode(text) if isinstance(command, bytes) else text


@_starts("_spawnvef")
def _spawn(original: Any, mode: int, file: Any, args: Any, env: Any, func: Any) -> Any:
    waits = mode == os.P_WAIT
    child = _begin("os.spawn", args, program=file, environ=env, more=(("wait", waits),))
    if child is None:
        return original(mode, file, args, env, func)

    def live(child: LiveChild) -> int:
        name = child_environment.WITH_ENVIRONMENT.get(getattr(func, "__name__", ""))
        function = func if name is None else getattr(os, name)
        told = None if env is None and name is None else child.environment(env)
        try:
            if waits:
                child.started(0)
            with child.execs(), Outside() if waits else Shadow():
                found = original(mode, file, args, told, function)
        except BaseException as error:
            child.failed(error)
            raise
        if waits:
            child.exited(found, in_turn=True)
        else:
            child.started(found)
        return found

    return child.answer(live, _ran_again if waits else ReplayedChild.start_again)


def _posix_spawn(call: str, original: Any, path: Any, argv: Any, env: Any, **options: Any) -> Any:
    streams = ("inherited", "pipe", "inherited") if options.get("file_actions") else ("inherited",) * 3
    child = _begin(call, argv, program=path, environ=env, streams=streams)
    if child is None:
        return original(path, argv, env, **options)

    def live(child: LiveChild) -> int:
        try:
            with Shadow():
                pid = original(path, argv, child.environment(env), **options)
        except BaseException as error:
            child.failed(error)
            raise
        child.started(pid)
        return pid

    return child.answer(live, ReplayedChild.start_again)


STARTS["posix_spawn"] = functools.partial(_posix_spawn, "os.posix_spawn")
STARTS["posix_spawnp"] = functools.partial(_posix_spawn, "os.posix_spawnp")


def _exec(original: Any, path: Any, argv: Any, *env: Any) -> Any:
    """Continue the run in another program. Replay: end here, like the tape."""
    child = _begin("os.exec", argv, program=path, environ=env[0] if env else None)
    if child is None:
        return original(path, argv, *env)

    def live(child: LiveChild) -> Any:
        try:
            if (session := recording()) is not None:
                session.drain()
            return unpatched.execve(path, argv, child.environment(env[0] if env else None))
        except BaseException as error:
            child.failed(error)
            raise

    return child.answer(live, _exec_again)


def _exec_again(child: ReplayedChild) -> NoReturn:
    if child.played.exchange.end is not None:
        child.start_again()
    unpatched.exit_at_once(0)


STARTS["execv"] = STARTS["execve"] = _exec
STARTS["fork"] = forks.fork
