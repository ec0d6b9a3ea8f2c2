"""Output of the program: text on stdout and stderr, as effects on the tape.

The stream objects are kept; their `write` is covered on the instance. So the output of a program that
replaces `sys.stdout` by another object goes there and not on the tape.
"""

from __future__ import annotations

import functools
import logging
import sys
from typing import Any, Final

from opentelemetry.instrumentation.utils import is_instrumentation_enabled

from playhead_core.facts import Content
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.patches import Patches
from playhead_instrumentation.session.session import Session, current
from playhead_semconv import attributes as a

log = logging.getLogger(__name__)


LONGEST = 4096
"""Characters of an unfinished line after which they are recorded."""


def watch(patches: Patches, session: Session) -> None:
    """Cover both streams, if the process has them."""
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name, None)
        if stream is not None:
            printed = Printed(session, name, getattr(stream, "encoding", None) or "utf-8")
            layers = _LAYERS[name]
            if patches.attempt(name, functools.partial(patches.around_all, stream, layers)):
                _printed[name] = printed
                session.before_asking(printed.settle)
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
    """Records the output of one stream line by line.

    An unfinished line is recorded when the stream is flushed, and before the program makes a request.
    """

    def __init__(self, session: Session, name: str, encoding: str) -> None:
        self._session = session
        self._name = name
        self._encoding = encoding
        self._pieces: list[str] = []

    def new(self, text: str) -> str:
        """Return the part of ``text`` that is not yet on the terminal or in the file."""
        if current() is not self._session:
            return text
        return self._session.driver.prints(self._name, text, self._encoding)

    def take(self, text: str) -> None:
        """The program prints ``text``."""
        if current() is not self._session:
            return
        pieces = self._pieces
        pieces.append(text)
        if text.endswith("\n") or len(text) > LONGEST or len(pieces) > LONGEST:
            self.settle()

    def settle(self) -> None:
        """Put pending output on the tape. Never raises."""
        pieces, self._pieces = self._pieces, []
        if pieces and current() is self._session:
            try:
                self._record("".join(pieces))
            except Exception:
                log.debug("playhead could not record what was printed", exc_info=True)

    def _record(self, text: str) -> None:
        session = self._session
        scrubbed = session.redactor.text(text)
        data = scrubbed.encode(self._encoding, "backslashreplace")
        session.driver.effect(
            self._name,
            body=Content(b"", len(data), data if session.redactor.content else None),
            attributes={a.PLAYHEAD_REDACTED_COUNT: 1} if scrubbed != text else None,
        )
