"""Processes through `subprocess`: the adapter of `Popen`.

`Popen` itself is kept. The patches are below ``Popen.__init__``: at the start of the child, at waits,
and at reads and writes. A replay has no child: its pid, its status and the data of its pipes come from
the tape.
"""

from __future__ import annotations

import functools
import os
import threading
from selectors import EVENT_READ
from types import ModuleType
from typing import Any

from playhead_instrumentation.libraries.common.recording import recording
from playhead_instrumentation.libraries.subprocess import child_environment, pipes
from playhead_instrumentation.libraries.subprocess.process_start import ProcessStart
from playhead_instrumentation.libraries.subprocess.streams import PIPES, started_of
from playhead_instrumentation.libraries.subprocess_full.child import STATUS, Child
from playhead_instrumentation.libraries.subprocess_full.exchange import begin
from playhead_instrumentation.libraries.subprocess_full.live_child import LiveChild
from playhead_instrumentation.libraries.subprocess_full.replayed_child import Expired, ReplayedChild
from playhead_instrumentation.patching.lanes import Outside, Shadow
from playhead_instrumentation.patching.patches import PATCHES, Unpatchable, required
from playhead_instrumentation.session.session import Session

STDIN_BYTES = 16 << 20
"""Bytes that are read of a file given to a child as stdin."""

NUMBERS = {
    "stdin": ("p2cread", "p2cwrite"),
    "stdout": ("c2pwrite", "c2pread"),
    "stderr": ("errwrite", "errread"),
}
"""By stream: arguments of ``_execute_child`` with the descriptors of the child's end and of ours."""

CHILD = "_playhead_child"
"""Attribute of a `Popen` that holds its exchange."""

_within = threading.local()


def patch(module: ModuleType) -> None:
    """Patch reads, writes and waits of the program for a child.

    Raises `Unpatchable` on systems other than POSIX.
    """
    owner: Any = required(module, "Popen")
    if "posix" not in os.name:
        raise Unpatchable("processes are recorded on POSIX systems only")
    selector = required(module, "_PopenSelector")
    layers = (
        ("_communicate", functools.partial(_communicate, module)),
        ("_wait", functools.partial(_wait, module)),
        ("_internal_poll", _internal_poll),
    )
    for name, _ in layers:
        required(owner, name)
    for name, layer in layers:
        PATCHES.around(owner, name, layer)
    PATCHES.put(module, "_PopenSelector", _selecting(selector))


class InEventLoop:
    """Context manager: children started inside belong to an event loop."""

    def __enter__(self) -> None:
        _within.loop = True

    def __exit__(self, *_: object) -> None:
        _within.loop = False


def _selecting(selector: Any) -> Any:
    """Return the selector of ``communicate``; its thread counts as waiting for the outside world."""
    original = selector.select

    def select(self: Any, timeout: float | None = None) -> Any:
        session = recording()
        if session is None:
            return original(self, timeout)
        with Outside():
            ready: list[tuple[Any, int]] = original(self, timeout)
        if not any(events & EVENT_READ for _, events in ready):
            session.driver.gate.arrive(None).wait()
        return ready

    return type(selector.__name__, (selector,), {"select": select})


def of(popen: Any) -> Child | None:
    """Return the exchange of a `Popen`; None if it is not recorded."""
    child: Child | None = popen.__dict__.get(CHILD)
    return None if child is None or child.passes else child


def start(session: Session, original: Any, popen: Any, given: dict[str, Any]) -> Any:
    """Start the child or answer from the tape; ``given``: arguments of ``Popen._execute_child``."""
    try:
        started = started_of(
            popen, given, stdin_bytes=STDIN_BYTES if session.has("processes.talk") else 0
        )
    except (TypeError, ValueError, OSError):
        return original(popen, **given)  # the original reports the wrong argument
    child = begin(session, started)
    if child is None:
        given["env"] = child_environment.environment(given["env"])
        return original(popen, **given)
    pipes.watch_numbers()
    child.asynchronous = getattr(_within, "loop", False)
    child.own_group = bool(given["start_new_session"]) or given.get("process_group") == 0
    popen.__dict__[CHILD] = child
    for stream in NUMBERS:
        pipes.belongs_to(getattr(popen, stream), child, stream)
    return child.answer(_start, _start_again, original, popen, started, given)


def _start(
    child: LiveChild, original: Any, popen: Any, started: ProcessStart, given: dict[str, Any]
) -> None:
    try:
        _follow_files(child, started, given)
        given["env"] = child_environment.environment(given["env"], str(child.call.id))
        with Shadow():
            original(popen, **given)
    except BaseException as error:
        child.failed(error)
        raise
    child.started(popen.pid)


def _start_again(
    child: ReplayedChild, original: Any, popen: Any, started: ProcessStart, given: dict[str, Any]
) -> None:
    popen.pid = child.start_again()
    popen._child_created = True
    for stream, (theirs, ours) in NUMBERS.items():
        if given[ours] != -1:
            child.far.hold(stream, os.dup(given[theirs]))
    _follow_files(child, started, given)
    popen._close_pipe_fds(*(given[name] for name in PIPES))
    child.offer()


def _follow_files(child: Child, started: ProcessStart, given: dict[str, Any]) -> None:
    for stream, kind, name in zip(
        ("stdout", "stderr"), started.streams[1:], ("c2pwrite", "errwrite"), strict=True
    ):
        if kind == "file":
            number = os.dup(given[name])
            child.files.writes_to(stream, number, _place(number))


def _place(number: int) -> int:
    """Return the offset in a file at which the next write goes."""
    import fcntl

    appends = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_APPEND
    return os.fstat(number).st_size if appends else os.lseek(number, 0, os.SEEK_CUR)


def _wait(module: Any, original: Any, popen: Any, timeout: float | None) -> Any:
    child = of(popen)
    if child is None or popen.returncode is not None:
        return original(popen, timeout)

    def live(child: LiveChild) -> Any:
        try:
            with Outside():
                status = original(popen, timeout)
        except module.TimeoutExpired as error:
            child.expired(error)
            raise
        child.exited(status, in_turn=True)
        return status

    def again(child: ReplayedChild) -> Any:
        status = child.wait(timeout)
        if isinstance(status, Expired):
            raise module.TimeoutExpired(popen.args, status.timeout)
        popen.returncode = status
        return status

    return child.answer(live, again)


def _internal_poll(original: Any, popen: Any, _deadstate: Any = None, *args: Any, **kwargs: Any) -> Any:
    child = None if popen.returncode is not None else of(popen)
    if child is None:
        return original(popen, _deadstate, *args, **kwargs)
    asked = _deadstate is None  # otherwise a finalizer asks

    def live(child: LiveChild) -> Any:
        status = original(popen, _deadstate, *args, **kwargs)
        if status is not None:
            child.exited(status, in_turn=asked)
        elif asked:
            child.running()
        return status

    def again(child: ReplayedChild) -> Any:
        popen.returncode = child.poll() if asked else child.poll_quietly()
        return popen.returncode

    return child.answer(live, again)


def _communicate(module: Any, original: Any, popen: Any, input: Any, endtime: Any, timeout: Any) -> Any:
    child = of(popen)
    if child is None:
        return original(popen, input, endtime, timeout)

    def live(child: LiveChild) -> Any:
        try:
            return original(popen, input, endtime, timeout)
        except module.TimeoutExpired as error:
            child.expired(error)
            raise

    def again(child: ReplayedChild) -> Any:
        return _communicate_again(child, module, popen, input, endtime)

    return child.answer(live, again)


def _communicate_again(
    child: ReplayedChild, module: Any, popen: Any, input: Any, endtime: Any
) -> tuple[Any, Any]:
    """Work like the original, except that the tape decides what comes next."""
    if popen.stdin and not popen._communication_started:
        try:
            popen.stdin.flush()
            if not input:
                popen.stdin.close()
        except BrokenPipeError:
            pass
    if not popen._communication_started:
        made: dict[Any, list[bytes]] = {}
        popen._fileobj2output = made | {file: [] for file in (popen.stdout, popen.stderr) if file}
    got: dict[Any, list[bytes]] = popen.__dict__["_fileobj2output"]
    popen._save_input(input)
    _send_again(child, popen)
    reading = {
        name: file
        for name, file in (("stdout", popen.stdout), ("stderr", popen.stderr))
        if file and not file.closed
    }
    while reading:
        index, name = child.next((*reading, *STATUS))
        if index is not None and name in STATUS:
            if endtime is not None and name == "status.expired":
                expired = child.expires(index)
                raise module.TimeoutExpired(
                    popen.args,
                    expired.timeout,
                    output=b"".join(got[popen.stdout]) if got.get(popen.stdout) else None,
                    stderr=b"".join(got[popen.stderr]) if got.get(popen.stderr) else None,
                )
            child.took(index)
            child.call.skip([index + 1])
            continue
        stream = name if index is not None else next(iter(reading))
        data = os.read(reading[stream].fileno(), 32768)
        got[reading[stream]].append(data)
        if not data:
            reading.pop(stream).close()
    popen.wait(timeout=popen._remaining_time(endtime))
    files = popen.stdout, popen.stderr
    sides: list[Any] = [b"".join(got[file]) if file else None for file in files]
    if popen.text_mode:
        sides = [
            None if data is None else popen._translate_newlines(data, file.encoding, file.errors)
            for data, file in zip(sides, files, strict=True)
        ]
    return sides[0], sides[1]


def _send_again(child: ReplayedChild, popen: Any) -> None:
    if not popen.stdin or not popen._input or popen.stdin.closed:
        return
    left = memoryview(popen._input).cast("B")
    try:
        while popen._input_offset < len(left):
            if not child.takes_more():
                return  # it was not taken when recorded: the wait timed out, or the process was killed
            popen._input_offset += os.write(popen.stdin.fileno(), left[popen._input_offset :])
    except BrokenPipeError:
        pass
    popen.stdin.close()
