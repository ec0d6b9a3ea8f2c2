"""HTTP/1.1 framing: finds the body in the bytes of a connection, and frames a recorded answer again.

Sans-I/O. An adapter that sees the bytes of a connection passes them through a `Framing` and gets the
pieces of the body; `frames` makes the bytes that a connection would have carried from a recorded answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from playhead_core.facts import ErrorRecord
from playhead_instrumentation.libraries.http.recorded_response import Unanswered
from playhead_instrumentation.recorder.exceptions import again, is_own_doing
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_semconv import attributes as a

TRUNCATED = "http.client", "IncompleteRead"
"""Module and class recorded for a connection that ended within an answer."""

Expected = Literal["size", "data", "rest", "trailer"]


class Framing:
    """Finds the body in the bytes of an answer after its head."""

    def __init__(self, *, chunked: bool, length_bytes: int | None) -> None:
        """``length_bytes``: of a body that is not chunked; None: it ends with the connection."""
        self.over = not chunked and length_bytes == 0
        """Whether the answer is complete."""
        self._chunked = chunked
        self._left_bytes = 0 if chunked else length_bytes
        self._expected: Expected = "size" if chunked else "data"
        self._line = b""

    def body(self, data: bytes) -> bytes:
        """Return the part of ``data`` that is body. ValueError if a chunk has no size."""
        if self._chunked:
            return b"".join(self.pieces(data))
        left_bytes = self._left_bytes
        if left_bytes is None:
            return data
        taken = data[:left_bytes]
        self._left_bytes = left_bytes = left_bytes - len(taken)
        self.over = not left_bytes
        return taken

    def pieces(self, data: bytes) -> list[bytes]:
        """As `body`, as a list of chunks."""
        if not self._chunked:
            return [body] if (body := self.body(data)) else []
        found: list[bytes] = []
        while data and not self.over:
            if self._expected == "data":
                piece = data[: self._left_bytes]
                data = data[len(piece) :]
                found.append(piece)
                self._left_bytes = (self._left_bytes or 0) - len(piece)
                if not self._left_bytes:
                    self._expected = "rest"
                continue
            line, ending, data = data.partition(b"\n")
            self._line += line + ending
            if ending:
                line, self._line = self._line, b""
                self._read(line)
        return found

    def _read(self, line: bytes) -> None:
        if self._expected == "rest":
            self._expected = "size"
        elif self._expected == "trailer":
            self.over = not line.strip()
        else:
            try:
                self._left_bytes = int(line.partition(b";")[0], 16)
            except ValueError:
                self._line = line
                raise
            self._expected = "data" if self._left_bytes else "trailer"

    def cut(self) -> ErrorRecord | None:
        """Handle the end of the connection. Return what is missing; None if the answer is complete."""
        if self.over or (not self._chunked and self._left_bytes is None):
            self.over = True
            return None
        module, qualname = TRUNCATED
        if self._line:
            text = self._line.decode("latin-1")
            return ErrorRecord(module, qualname, "no size of a chunk", [text])
        missing = self._left_bytes if self._expected == "data" else 0
        return ErrorRecord(module, qualname, f"{missing} more bytes expected", [missing])


def head(played: PlayedExchange) -> bytes:
    """Status line and headers of a recorded answer."""
    values = played.exchange.head
    version = str(values.get(a.PLAYHEAD_HTTP_VERSION, "HTTP/1.1"))
    reason = str(values.get(a.PLAYHEAD_HTTP_REASON, ""))
    lines = [f"{version} {values[a.HTTP_RESPONSE_STATUS_CODE]} {reason}"]
    lines += [f"{name}: {value}" for name, value in _headers(played)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")


def frames(played: PlayedExchange, otherwise: type[Exception]) -> Iterator[bytes]:
    """The bytes behind the head, one recorded piece of the body at a time.

    Ends where the connection ended. Raises the recorded error, as ``otherwise`` if its class is missing.
    """
    exchange = played.exchange
    chunked = is_chunked(_headers(played))
    count = len(exchange.parts)
    end = exchange.end
    cut = end is not None and end.error is not None and _of(end.error) == TRUNCATED
    missing = end.error.args[0] if cut and end is not None and end.error and end.error.args else 0
    for index in range(count):
        data = played.part(index)
        if not chunked or not data:  # a chunk without data would be the last one
            yield data
            continue
        announced = len(data) + (missing if isinstance(missing, int) and index == count - 1 else 0)
        yield b"%x\r\n%b" % (announced, data) + (b"\r\n" if announced == len(data) else b"")
    if cut:
        if isinstance(missing, str):
            yield missing.encode("latin-1")
        elif chunked and missing and not count:
            yield b"%x\r\n" % missing
    elif end is not None and end.how == "complete":
        if chunked:
            yield b"0\r\n\r\n"
    else:
        raise error_of(played, otherwise)


def error_of(played: PlayedExchange, otherwise: type[Exception]) -> BaseException:
    """Return the recorded error of an answer, to be raised again."""
    end = played.exchange.end
    if end is None or end.error is None:
        return Unanswered()
    return Unanswered() if is_own_doing(end.error) else again(end.error, otherwise)


def is_chunked(headers: Iterable[tuple[str, str]]) -> bool:
    """Return whether the first transfer-encoding is chunked, as `http.client` checks it."""
    for name, value in headers:
        if name.lower() == "transfer-encoding":
            return value.lower() == "chunked"
    return False


def _headers(played: PlayedExchange) -> list[tuple[str, str]]:
    flat = [str(word) for word in played.exchange.head.get(a.PLAYHEAD_HTTP_HEADERS, [])]
    return list(zip(flat[::2], flat[1::2], strict=True))


def _of(error: ErrorRecord) -> tuple[str, str]:
    return error.module, error.qualname
