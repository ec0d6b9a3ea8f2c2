"""Standard input, standard output and standard error of the program.

Input is one exchange with its chunks as they came. `sys.stdin` becomes a text stream over a raw file of
ours; the layers above (decoding, lines, iteration, `input`, `fileinput`) are Python's own. A line typed
at a terminal, which Python reads below `sys.stdin`, is a separate exchange. So is a password, which is
not put on the tape.

Output is text on stdout and stderr, as effects. The stream objects are kept; their `write` is covered on
the instance. So the output of a program that replaces `sys.stdout` goes there and not on the tape.
"""

from __future__ import annotations

import _thread
import builtins
import functools
import getpass
import io
import os
import stat
import sys
from collections import deque
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.instrumentation.utils import is_instrumentation_enabled

from playhead_core.facts import Content
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.waited_input import Waiting
from playhead_instrumentation.patching import at_fork, lanes
from playhead_instrumentation.patching.lanes import Outside
from playhead_instrumentation.patching.patches import PATCHES, Patches
from playhead_instrumentation.recorder.call import Call
from playhead_instrumentation.recorder.exceptions import again, record_of
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_instrumentation.session.session import Session, current
from playhead_semconv import attributes as a
from playhead_semconv import events as e

KIND: Final = "stdin"
STAR: Final = ord("*")


def watch_stdin(patches: Patches, session: object = None) -> None:
    """Put our file below `sys.stdin`, and cover functions that bypass it."""
    if _plain(sys.stdin):
        patches.attempt("stdin", _replace)
    patches.attempt("input", lambda: patches.around(builtins, "input", _typed))
    patches.attempt("getpass", lambda: patches.around(getpass, "getpass", _asked))


def _plain(stream: Any) -> bool:
    """Return whether a stream is the interpreter's own, on descriptor 0."""
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return type(stream) is io.TextIOWrapper and type(raw) is io.FileIO and raw.fileno() == 0


def _replace() -> None:
    old: Any = sys.stdin
    raw = StdinFile(0, "rb", closefd=False)
    raw.name = old.name
    made: Any = io.TextIOWrapper(
        io.BufferedReader(raw),
        old.encoding,
        old.errors,
        line_buffering=old.line_buffering,
        write_through=old.write_through,
    )
    made.__dict__.update(vars(old))
    raw.below = old
    for name in ("stdin", "__stdin__"):
        if getattr(sys, name) is old:
            # It alone holds the bytes that it has read ahead.
            PATCHES.put(sys, name, made, stays=lambda: raw.has_read)


class StdinFile(io.FileIO):
    """Descriptor 0, answered by the driver."""

    below: Any = None
    """The raw file that it replaces, kept open."""
    _input: Input | None = None
    _rest = b""
    has_read = False

    def readinto(self, buffer: Any, /) -> Any:
        """See `io.RawIOBase.readinto`."""
        view = memoryview(buffer).cast("B")
        if not len(view):
            return 0
        try:
            data = self._rest or self._next(len(view))
        except BlockingIOError:
            return None
        self._rest = data[len(view) :]
        size = min(len(data), len(view))
        view[:size] = data[:size]
        return size

    def readall(self) -> Any:
        """See `io.RawIOBase.readall`."""
        chunks: list[bytes] = []
        while chunk := self.read(io.DEFAULT_BUFFER_SIZE):
            chunks.append(chunk)
        return b"".join(chunks) if chunks or chunk is not None else None

    def read(self, size: int | None = -1, /) -> Any:
        """See `io.RawIOBase.read`."""
        if size is None or size < 0:
            return self.readall()
        buffer = bytearray(size)
        number = self.readinto(buffer)
        return None if number is None else bytes(buffer[:number])

    def _next(self, size: int) -> bytes:
        self.has_read = True
        return PATCHES.call(self._hear, os.read, 0, size)

    def _hear(self, read: Any, descriptor: int, size: int) -> bytes:
        session = current()
        if session is None:
            return read(descriptor, size)
        if lanes.current() is lanes.UNRECORDED:
            # What a marked tool reads is not recorded, only that it waits.
            with Waiting(session, "stdin"):
                return read(descriptor, size)
        if self._input is None or self._input.over or self._input.call.inherited:
            self._input = Input(session, "stdin", b"")
        return self._input.read(functools.partial(read, descriptor, size))


class Input:
    """One exchange that holds the input from one source."""

    def __init__(self, session: Session, key: str, asked: bytes) -> None:
        session.settle()
        self.call: Final[Call] = session.driver.open(KIND, key, asked, {})
        self.call.scrub = session.redactor.response("text/plain", "")
        self.call.head({a.PLAYHEAD_INPUT_KEY: key}, None)
        self._session = session
        self._part = 0
        session.open_exchanges.add(self)

    @property
    def over(self) -> bool:
        """Whether the exchange has ended."""
        return self.call.ended is not None

    def read(self, live: Any) -> bytes:
        """Return the next piece; empty at the end."""
        try:
            try:
                data = self._answer(live)
            except OSError as error:
                at = self.call.arrive().wait()
                self._end("error", at, error)
                raise
            at = self.call.arrive().wait()
        except BaseException as error:
            self._end("error", None, error)
            raise
        if data:
            self.call.part(data, at)
        else:
            self._end("complete", at, None)
        return data

    def abandoned(self) -> None:
        """The program stops reading."""
        self._end("abandoned", None, None)

    def finished(self) -> None:
        """The end of the input was reached."""
        self._end("complete", None, None)

    def _answer(self, live: Any) -> bytes:
        return self.call.answer(self._live, self._again, live)

    def _live(self, live: Any) -> bytes:
        with Outside():
            return live()

    def _again(self, played: PlayedExchange, live: Any) -> bytes:
        self._part += 1
        end = played.exchange.end
        if self._part <= len(played.exchange.parts):
            return played.part(self._part - 1)
        if played.reopen is None:
            if end is not None and end.error is not None:
                raise again(end.error, OSError)
            return b""
        if self._part == len(played.exchange.parts) + 1:
            _skip([played.part(index) for index in range(self._part - 1)])
        return self._live(live)

    def _end(self, how: Any, at: Any, error: BaseException | None) -> None:
        record = None if error is None else record_of(error, self._session.redactor.text)
        if self.call.end(how, at, record):
            self._session.open_exchanges.discard(self)


def _skip(read: list[bytes]) -> None:
    """Skip the bytes that the tape holds, if the same file is given again."""
    data = b"".join(read)
    try:
        if stat.S_ISREG(os.fstat(0).st_mode) and os.lseek(0, 0, os.SEEK_CUR) == 0:
            there = os.pread(0, len(data), 0)
            # The tape has stars in place of credentials.
            same = all(one in (other, STAR) for one, other in zip(data, there, strict=False))
            if len(there) == len(data) and same:
                os.lseek(0, len(data), os.SEEK_SET)
    except OSError:
        return


def _typed(original: Any, prompt: object = "", /) -> str:
    session = current()
    if session is None or not isinstance(
        getattr(getattr(sys.stdin, "buffer", None), "raw", None), StdinFile
    ):
        return original(prompt)
    if lanes.current() is lanes.UNRECORDED:
        if not _at_terminal():
            return original(prompt)  # reads `sys.stdin`
        with Waiting(session, "input"):
            return original(prompt)
    # At a terminal Python reads the line itself and prints the prompt without `sys.stdout`.
    if not session.driver.reads.read("inputs/terminal", _at_terminal):
        return original(prompt)
    return _line(session, "input", str(prompt), functools.partial(original, prompt))


def _at_terminal() -> bool:
    try:
        return os.isatty(0) and sys.stdout.fileno() == 1 and os.isatty(1)
    except (AttributeError, OSError, ValueError):
        return False


def _line(session: Session, key: str, prompt: str, original: Any, secret: bool = False) -> str:
    asked = Input(session, key, prompt.encode("utf-8", "surrogateescape"))

    def live() -> bytes:
        try:
            line: str = original()
        except EOFError:
            return b""
        if secret:
            session.redactor.learn(line)
        return f"{line}\n".encode("utf-8", "surrogateescape")

    data = asked.read(live)
    asked.finished()
    if not data:
        raise EOFError
    return data.decode("utf-8", "surrogateescape")[:-1]


def _asked(original: Any, prompt: str = "Password: ", *args: Any, **kwargs: Any) -> str:
    session = current()
    if session is None:
        return original(prompt, *args, **kwargs)
    if lanes.current() is lanes.UNRECORDED:
        with Waiting(session, "getpass"):
            return original(prompt, *args, **kwargs)
    live = functools.partial(original, prompt, *args, **kwargs)
    return _line(session, "getpass", prompt, live, secret=True)


log = Log(__name__)


LONGEST = 4096
"""Characters of an unfinished line after which they are recorded."""


def watch_output(patches: Patches, session: Session) -> None:
    """Cover both streams, if the process has them."""
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name, None)
        if stream is not None:
            printed = Printed(session, name, getattr(stream, "encoding", None) or "utf-8")
            layers = _LAYERS[name]
            if patches.attempt(name, functools.partial(patches.around_all, stream, layers)):
                _printed[name] = printed
                session.before_asking(printed.settle, printed.pieces)
                # If the last flush fails, the interpreter prints the frames that it passed. And what
                # destructors print last is flushed only by a stream to which no reference is left.
                session.finishing.append(functools.partial(patches.take_off, stream))


_printed: dict[str, Printed] = {}
"""Recorders by stream name."""


def _write(name: str, write: Any, text: Any, /) -> Any:
    new = text
    if isinstance(text, str) and is_the_programs():
        printed = _printed[name]
        printed.take(text)
        new = printed.new(text)
    if new == text:
        return write(text)
    if new:
        write(new)
    return len(text)


def _flush(name: str, flush: Any) -> Any:
    _printed[name].settle()
    return flush()


_LAYERS: Final = {
    name: {"write": functools.partial(_write, name), "flush": functools.partial(_flush, name)}
    for name in ("stdout", "stderr")
}


def is_the_programs() -> bool:
    """Whether the output is the program's: not from below an exchange, nor of a console exporter."""
    return lanes.current() is not lanes.UNRECORDED and is_instrumentation_enabled()


class Printed:
    """Records the output of one stream line by line, with the lane and the span that printed it.

    An unfinished line is recorded when the stream is flushed, before the program makes a request, and
    when another thread or task prints: it may serve another request, which is another run.
    """

    def __init__(self, session: Session, name: str, encoding: str) -> None:
        self._session = session
        self._name = name
        self._encoding = encoding
        self.pieces = deque[str]()
        """What was printed and is not on the tape yet."""
        self._lane = lanes.MAIN
        self._span = trace.INVALID_SPAN
        self._renew()
        at_fork.in_child(self._renew)

    def _renew(self) -> None:
        # A native lock: the scheduler does not see it. Reentrant: a handler of a signal may print.
        self._lock = _thread.RLock()

    def new(self, text: str) -> str:
        """Return the part of ``text`` that is not yet on the terminal or in the file."""
        if current() is not self._session:
            return text
        return self._session.driver.prints(self._name, text, self._encoding)

    def take(self, text: str) -> None:
        """The program prints ``text``."""
        if current() is not self._session:
            return
        lane = lanes.current()
        with self._lock:
            if lane is not self._lane:
                self.settle()
            if not self.pieces:
                self._lane, self._span = lane, trace.get_current_span()
            self.pieces.append(text)
            if text.endswith("\n") or len(text) > LONGEST or len(self.pieces) > LONGEST:
                self.settle()

    def settle(self) -> None:
        """Put pending output on the tape. Never raises."""
        with self._lock:
            pieces: list[str] = []
            while self.pieces:  # a signal handler or a finalizer may print
                pieces.append(self.pieces.popleft())
            if pieces and current() is self._session:
                try:
                    self._record("".join(pieces))
                except Exception:
                    log.debug("playhead could not record what was printed", exc_info=True)

    def _record(self, text: str) -> None:
        session = self._session
        scrubbed = session.redactor.text(text)
        data = scrubbed.encode(self._encoding, "backslashreplace")
        attributes: dict[str, Any] = {a.PLAYHEAD_EFFECT_KIND: self._name}
        if scrubbed != text:
            attributes[a.PLAYHEAD_REDACTED_COUNT] = 1
        body = Content(b"", len(data), data if session.redactor.content else None)
        session.tell(e.PLAYHEAD_EFFECT, attributes, body, lane=self._lane, span=self._span)
