"""Processes of asyncio: the events of a child that an event loop delivers.

asyncio starts its children through `subprocess.Popen` and reads their pipes with ``os.read``. This
module handles the end of a child, and of its stdin. In a replay, a task delivers everything that the
loop would deliver.
"""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import Any

from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.subprocess import pipes
from playhead_instrumentation.libraries.subprocess_full import popen
from playhead_instrumentation.libraries.subprocess_full.child import UNREAD, Child, stream_of
from playhead_instrumentation.libraries.subprocess_full.live_child import LiveChild
from playhead_instrumentation.libraries.subprocess_full.replayed_child import ReplayedChild
from playhead_instrumentation.patching.lanes import Outside, Shadow
from playhead_instrumentation.patching.patches import PATCHES, required

NUMBERS = {"stdin": 0, "stdout": 1, "stderr": 2}

log = Log(__name__)


def patch(module: ModuleType) -> None:
    """Patch the transports."""
    owner: Any = required(module, "BaseSubprocessTransport")
    for name in ("__init__", "_connect_pipes", "_process_exited"):
        required(owner, name)
    PATCHES.around(owner, "__init__", _init)
    PATCHES.around(owner, "_connect_pipes", _connect_pipes)
    PATCHES.around(owner, "_process_exited", _process_exited)


def _init(init: Any, transport: Any, *args: Any, **kwargs: Any) -> None:
    with popen.InEventLoop():
        init(transport, *args, **kwargs)


async def _connect_pipes(connect_pipes: Any, transport: Any, *args: Any) -> None:
    await connect_pipes(transport, *args)
    child = _of(transport)
    if child is not None:
        child.answer(_nothing, _begin_feeding, transport)


def _nothing(child: LiveChild, transport: Any) -> None:
    """No-op: the loop itself delivers the events of a child that runs."""


def _begin_feeding(child: ReplayedChild, transport: Any) -> None:
    with Shadow():
        child.feeder = asyncio.create_task(_feed(transport, child))


def _process_exited(process_exited: Any, transport: Any, returncode: int) -> None:
    child = _of(transport)
    if child is not None:
        child.exited(returncode, in_turn=True)
    process_exited(transport, returncode)


def patch_watchers(module: ModuleType) -> None:
    """Patch every class that watches for the end of children, and the pipe to their stdin."""
    PATCHES.around(required(module, "_UnixWritePipeTransport"), "_read_ready", _unread)
    owners: list[Any] = list(vars(module).values())
    for owner in owners:
        if isinstance(owner, type) and "add_child_handler" in vars(owner):
            PATCHES.around(owner, "add_child_handler", _add_child_handler)
            if "Threaded" in owner.__name__ and hasattr(owner, "_do_waitpid"):
                PATCHES.around(owner, "_do_waitpid", _do_waitpid)


def _add_child_handler(add: Any, watcher: Any, pid: int, callback: Any, *args: Any) -> Any:
    child = _of(args[0]) if args and hasattr(args[0], "_proc") else None

    def live(_: LiveChild | None) -> Any:
        with Shadow():
            return add(watcher, pid, callback, *args)

    def again(_: ReplayedChild) -> None:
        """No-op: there is no process to wait for."""

    return live(None) if child is None else child.answer(live, again)


def _do_waitpid(wait: Any, watcher: Any, *args: Any) -> None:
    with Outside():
        wait(watcher, *args)


def _unread(original: Any, pipe: Any) -> None:
    """The loop learned that nothing reads the pipe any more. Replay: `_feed` says so."""
    end = pipes.ENDS.get(pipe._fileno)
    child = None if end is None or not end.belongs() else end.child
    if isinstance(child, Child) and not child.passes:
        child.answer(_learned_unread, _nothing_again)
    original(pipe)


def _learned_unread(child: LiveChild) -> None:
    child.arrived(UNREAD, b"")


def _nothing_again(child: ReplayedChild) -> None:
    """No-op: `_feed` delivers it from the tape."""


def _of(transport: Any) -> Child | None:
    process = getattr(transport, "_proc", None)
    return None if process is None or not hasattr(process, "__dict__") else popen.of(process)


async def _feed(transport: Any, child: ReplayedChild) -> None:
    """Deliver the recorded events of a child in their order."""
    recorded = child.played.exchange
    try:
        for index, part in enumerate(recorded.parts):
            stream = {UNREAD: "stdin"}.get(stream_of(part), stream_of(part))
            if stream in NUMBERS:
                await _exit_before(transport, child, part.delivery)
                child.answers()
                at = await child.call.arrive(index + 1)
                data = child.took(index, at)
                _bring(transport, child, stream, data)
        if child.observed and recorded.end is not None and recorded.end.how == "complete":
            # The ends of the streams were not recorded.
            _bring(transport, child, "stdout", b"")
            _bring(transport, child, "stderr", b"")
        await _exit(transport, child)
    except Exception as error:
        _break(transport, error)


async def _exit_before(transport: Any, child: ReplayedChild, due: Any) -> None:
    """Deliver the end of the child if it is due before the rest of its pipes."""
    end = child.played.exchange.end
    if child.call.ended is not None or end is None or end.delivery is None or due is None:
        return
    if (end.delivery.batch, end.delivery.order) < (due.batch, due.order):
        await _exit(transport, child)


async def _exit(transport: Any, child: ReplayedChild) -> None:
    if child.call.ended is not None:
        return
    permit = child.exit_permit()
    status = child.exits(await permit if permit is not None else None)
    _bring(transport, child, "stdin", b"")
    transport._process_exited(status)


def _bring(transport: Any, child: ReplayedChild, stream: str, data: bytes) -> None:
    """Deliver data of a stream, or its end."""
    if stream == "stdin":
        child.far.let_go(stream)
    pipe = transport.get_pipe_transport(NUMBERS[stream])
    if pipe is None or pipe.is_closing():
        return
    if data:
        pipe._protocol.data_received(data)
        return
    if stream != "stdin":
        child.end_stream(stream)
    pipe._read_ready()


def _break(transport: Any, error: Exception) -> None:
    """Stop answering: the program gets ``error`` when it reads."""
    log.debug("a replayed process is not answered to its end", exc_info=error)
    for number in (1, 2):
        if transport._protocol is not None and transport.get_pipe_transport(number) is not None:
            transport._protocol.pipe_connection_lost(number, error)
