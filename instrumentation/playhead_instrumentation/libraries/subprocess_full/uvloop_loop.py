"""Processes of uvloop, which libuv starts. A recording starts them as asyncio starts its own.

So `asyncio_transport` handles their events. A program that asks the loop itself for a process gets
asyncio's transport instead of uvloop's; both have the same methods.
"""

from __future__ import annotations

import contextlib
import weakref
from asyncio import base_events, unix_events
from types import ModuleType
from typing import Any

from playhead_instrumentation.libraries.common.recording import recording
from playhead_instrumentation.patching.patches import PATCHES, Unpatchable, required

_events: Any = unix_events
_base: Any = base_events.BaseEventLoop
_unix: Any = unix_events._UnixSelectorEventLoop  # pyright: ignore[reportPrivateUsage]


def patch(module: ModuleType) -> None:
    """Patch the two loop methods that start a process."""
    owner: Any = required(module, "Loop")
    if _watcher() is None:
        raise Unpatchable("asyncio has no watcher of children that needs no loop of its own")
    for name, layer in (("subprocess_exec", _exec), ("subprocess_shell", _shell)):
        required(_base, name)
        PATCHES.around(owner, name, layer)
    PATCHES.around(owner, "close", _close)


def _close(close: Any, loop: Any) -> None:
    close(loop)
    for transport in _open.pop(loop, ()):
        transport.close()


_open: weakref.WeakKeyDictionary[Any, weakref.WeakSet[Any]] = weakref.WeakKeyDictionary()
"""Transports of running processes by loop, which ends them when it is closed."""


async def _exec(original: Any, loop: Any, protocol_factory: Any, *args: Any, **kwargs: Any) -> Any:
    if recording() is None:
        return await original(loop, protocol_factory, *args, **kwargs)
    return await _base.subprocess_exec(_Unix(loop), protocol_factory, *args, **kwargs)


async def _shell(original: Any, loop: Any, protocol_factory: Any, *args: Any, **kwargs: Any) -> Any:
    if recording() is None:
        return await original(loop, protocol_factory, *args, **kwargs)
    return await _base.subprocess_shell(_Unix(loop), protocol_factory, *args, **kwargs)


def _watcher() -> Any:
    return getattr(_events, "ThreadedChildWatcher", None) or getattr(
        _events, "_ThreadedChildWatcher", None
    )


class _Unix:
    """Wraps a loop of uvloop for asyncio's transports of processes and pipes."""

    connect_read_pipe = _base.connect_read_pipe
    connect_write_pipe = _base.connect_write_pipe
    _log_subprocess = _base._log_subprocess
    _make_read_pipe_transport = _unix._make_read_pipe_transport
    _make_write_pipe_transport = _unix._make_write_pipe_transport
    _child_watcher_callback = _unix._child_watcher_callback

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._debug = loop.get_debug()
        self._add_reader, self._add_writer = loop.add_reader, loop.add_writer
        self._remove_reader = self._if_open(loop.remove_reader)
        self._remove_writer = self._if_open(loop.remove_writer)

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:
        """See `call_soon` of the loop. On a closed loop: call at once, which ends open transports."""
        if not self._loop.is_closed():
            return self._loop.call_soon(callback, *args, context=context)
        with contextlib.suppress(RuntimeError):
            callback(*args)

    def _if_open(self, function: Any) -> Any:
        """Make ``function`` do nothing on a closed loop, as uvloop ignores what is left open."""

        def call(*args: Any, **kwargs: Any) -> Any:
            return None if self._loop.is_closed() else function(*args, **kwargs)

        return call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    async def _make_subprocess_transport(
        self, protocol: Any, args: Any, shell: bool, *streams: Any, extra: Any = None, **kwargs: Any
    ) -> Any:
        waiter = self._loop.create_future()
        transport = _events._UnixSubprocessTransport(
            self, protocol, args, shell, *streams, waiter=waiter, extra=extra, **kwargs
        )
        _open.setdefault(self._loop, weakref.WeakSet()).add(transport)
        told = self._child_watcher_callback
        _watcher()().add_child_handler(transport.get_pid(), told, transport)
        try:
            await waiter
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException:
            transport.close()
            await transport._wait()
            raise
        return transport
