"""Reads and cuts spans in a separate process, which has its own interpreter lock.

A request goes there through a pipe. The answer says where in the request the large values lie, so that
they need not be sent back.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import struct
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import IO

import msgspec

from playhead_core.errors import MalformedOtlp
from playhead_receiver.ingest.spans import Rejections, read_spans
from playhead_receiver.storage.content.cutting import CutSpan, Cutter
from playhead_receiver.storage.writing.prepare import Bundle, Prepared, bundles_of

BUSY = 16
"""The process is started after this many requests have arrived while another was in progress."""
MOST_BYTES = 16 * 1024 * 1024
"""Larger requests are read in this process, because otherwise they would be in memory twice."""
PIPE_BYTES = 1024 * 1024

_COMMAND = [sys.executable, "-P", "-c", f"from {__name__} import work; work()"]
_SIZE = struct.Struct("<I")
_READY = b"\n"
_GONE = (OSError, EOFError, ValueError, msgspec.DecodeError)


class Reading(msgspec.Struct, array_like=True):
    """The result of reading a request."""

    bundles: list[Bundle]
    spans: int
    size_bytes: int
    rejections: Rejections
    problem: str = ""
    """Why the request cannot be read at all; empty if it can."""

    def prepared(self) -> Prepared:
        """The batch to write."""
        return Prepared([], self.bundles, {}, self.size_bytes)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Reading).decode


class SpanReadingProcess:
    """The separate process, started under load. Safe from any thread.

    While there is no such process, callers read their requests themselves.
    """

    def __init__(self) -> None:
        self._under_way = self._busy = 0
        self._gate = threading.Lock()
        self._process: _Process | None = None
        self._starting: threading.Thread | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """Id of the process; None while there is none."""
        process = self._process
        return None if process is None else process.pid

    @contextmanager
    def read(self, body: bytes) -> Generator[Reading | None]:
        """Read a traces request, which counts as in progress during the ``with`` block.

        The block gets the result; None: the caller has to read the request itself. `MalformedOtlp` as in
        `read_spans`.
        """
        with self._gate:
            self._under_way += 1
            self._busy += self._under_way > 1
            if self._busy >= BUSY and self._starting is None and not self._closed:
                self._starting = threading.Thread(target=self._start, name="playhead-apart", daemon=True)
                self._starting.start()
        try:
            yield self._read(body)
        finally:
            with self._gate:
                self._under_way -= 1

    def _read(self, body: bytes) -> Reading | None:
        process = self._process
        if process is None or not 0 < len(body) <= MOST_BYTES:
            return None
        try:
            reading = _decode(process.ask(body))
        except _GONE:
            self._lose(process)
            return None
        if reading.problem:
            raise MalformedOtlp(reading.problem)
        for bundle in reading.bundles:
            for span in bundle.spans:
                if isinstance(span.cut, CutSpan):
                    span.cut.source = body
        return reading

    def close(self) -> None:
        """End the process. Idempotent."""
        with self._gate:
            self._closed = True
            starting = self._starting
        if starting is not None:
            starting.join()
        if self._process is not None:
            self._lose(self._process)

    def _start(self) -> None:
        with suppress(OSError):
            self._process = _Process()

    def _lose(self, process: _Process) -> None:
        """Discard a process; another may be started under load."""
        with self._gate:
            if self._process is not process:
                return
            self._process, self._starting, self._busy = None, None, 0
        process.close()


class _Process:
    """A started process. Several threads may ask at once; it answers one after the other."""

    def __init__(self) -> None:
        """Start it; returns when it is ready. `OSError` if it cannot be started."""
        self._running = subprocess.Popen(
            _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self.pid = self._running.pid
        assert self._running.stdin is not None and self._running.stdout is not None
        self._to, self._from = self._running.stdin, self._running.stdout
        for end in (self._to, self._from):
            with suppress(OSError, AttributeError):  # pipes have a size on Linux only, up to a limit
                fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._sending, self._receiving = threading.Lock(), threading.Lock()
        self._asked: deque[Future[bytes]] = deque()
        if self._from.read(len(_READY)) != _READY:
            self.close()
            raise OSError("the process that reads spans did not start")

    def ask(self, body: bytes) -> bytes:
        """The answer to a request. `OSError`, `EOFError`, `ValueError` if the process has ended."""
        mine = Future[bytes]()
        with self._sending:
            self._asked.append(mine)
            _send(self._to, body)
        with self._receiving:
            while not mine.done():
                answer = _receive(self._from)
                self._asked.popleft().set_result(answer)
        return mine.result()

    def close(self) -> None:
        """End it. Callers that wait for an answer read their requests themselves."""
        self._running.kill()
        for end in (self._to, self._from):
            with suppress(OSError):
                end.close()
        self._running.wait()


def _send(to: IO[bytes], data: bytes) -> None:
    to.write(_SIZE.pack(len(data)))
    to.write(data)
    to.flush()


def _receive(source: IO[bytes]) -> bytes:
    head = source.read(_SIZE.size)
    data = source.read(_SIZE.unpack(head)[0]) if len(head) == _SIZE.size else b""
    if not data:
        raise EOFError
    return data


def work() -> None:
    """Main function of the process: answer requests until the pipe is closed."""
    return_large_blocks()
    cutter = Cutter()
    gc.freeze()
    source, to = sys.stdin.buffer, sys.stdout.buffer
    with suppress(EOFError, BrokenPipeError):
        to.write(_READY)
        to.flush()
        while True:
            _send(to, _encode(_reading(_receive(source), cutter)))


def _reading(body: bytes, cutter: Cutter) -> Reading:
    try:
        spans, rejections = read_spans(body)
    except MalformedOtlp as problem:
        return Reading([], 0, 0, Rejections(), problem.what)
    bundles = bundles_of(spans, cutter)
    for bundle in bundles:
        for span in bundle.spans:
            if isinstance(span.cut, CutSpan):
                span.cut.source = b""  # the caller has it
    return Reading(bundles, len(spans), sum(span.size_bytes for span in spans), rejections)


LARGE_BYTES = 1024 * 1024

HEAPS = 4
"""Most heaps (arenas) of all threads together, because each heap keeps fragmented memory."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def return_large_blocks() -> None:
    """Have glibc return large blocks to the system when they are freed.

    By default it adapts to the first of them, and keeps such blocks, in a heap per thread. No-op with
    other C libraries.
    """
    tune = getattr(ctypes.CDLL(None), "mallopt", None)
    if tune is not None:
        tune(_M_MMAP_THRESHOLD, LARGE_BYTES)
        tune(_M_TRIM_THRESHOLD, LARGE_BYTES)
        tune(_M_ARENA_MAX, HEAPS)
