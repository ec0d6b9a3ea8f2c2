"""A gRPC call as an exchange: what is on the tape, and what a recorded call gives the library again.

The body is the request, if there is a single one. The head is the initial metadata, the parts are the
answers, and the end is the status with the trailing metadata. Requests of a stream are sent messages.
"""

from __future__ import annotations

import asyncio
import base64
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from playhead_core.errors import ExchangeExhausted, PlayheadError
from playhead_core.facts import Delivery, ErrorRecord
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.common.message_exchange import MessageExchange, MessageRequest
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_instrumentation.session.session import Session, current
from playhead_instrumentation.tracing.attempts import Attempt
from playhead_semconv import attributes as a

OK, INTERNAL = 0, 13
CANCELLED = "CANCELLED"
"""Name of the status of a call that the program has cancelled."""
COLLECTED = "Cancelled upon garbage collection!"
"""Details with which the library cancels a call that has been garbage-collected."""

log = Log(__name__)


class Status(NamedTuple):
    """How a call ended."""

    code: int
    details: str
    trailers: Any
    """Trailing metadata, as the library has it; None if there is none."""
    debug: str


def begin(
    session: Session, target: str, method: str, metadata: Any, request: bytes | None
) -> MessageExchange | None:
    """Open the span and the exchange; None if that failed.

    ``request`` None: the request is a stream.
    """
    try:
        session.settle()
        redactor = session.redactor
        kept, redacted = redactor.headers(_pairs(metadata))
        details: dict[str, Any] = {a.PLAYHEAD_GRPC_METADATA: kept}
        if redacted:
            details[a.PLAYHEAD_REDACTED_COUNT] = redacted
        name = method.strip("/")
        host, port = _address(target)
        exchange = MessageExchange(
            session,
            MessageRequest("grpc", f"{redactor.text(target)}{method}", request or b"", details),
            name,
            {
                a.RPC_SYSTEM_NAME: "grpc",
                a.RPC_METHOD: name,
                a.SERVER_ADDRESS: host,
                a.SERVER_PORT: port,
            },
        )
        exchange.call.scrub = redactor.response("application/grpc", "")
        if session.on_unclaimed is not None and request is not None:
            exchange.attempt = _attempt(exchange, f"grpc://{host}:{port}{method}")
        return exchange
    except Exception:
        log.debug("playhead could not record a gRPC call", exc_info=True)
        return None


def _attempt(exchange: MessageExchange, url: str) -> Attempt | None:
    """Return the call as an attempt of a call to a model; None if it is none."""
    from playhead_genai.providers import wire_of  # few programs are watched

    if wire_of("POST", url) is None:
        return None
    session, call = exchange.session, exchange.call
    return Attempt(
        call.id,
        session.sink.instance,
        "POST",
        url,
        call.body,
        0,
        exchange.span_context,
        call.time_ns,
    )


def release(exchange: MessageExchange, deadline: float | None) -> float | None:
    """Wait until the call may go out. Return its deadline, extended by the time that it waited.

    ``deadline``: seconds since the epoch; None: none. A call is refused if a tape ends meanwhile.
    """
    if exchange.call.pending_release is None:
        return deadline
    since_s = REAL.now_s()
    with _departing(exchange):
        exchange.call.release().wait()
    return _later(deadline, since_s)


async def arelease(exchange: MessageExchange, deadline: float | None) -> float | None:
    """As `release`, in a task."""
    if exchange.call.pending_release is None:
        return deadline
    since_s = REAL.now_s()
    with _departing(exchange):
        await exchange.call.release()
    return _later(deadline, since_s)


@contextmanager
def _departing(exchange: MessageExchange) -> Generator[None]:
    try:
        yield
    except ExchangeExhausted as error:
        exchange.exhausted(error)
    except asyncio.CancelledError:
        raise  # the library cancels the call now, which ends the exchange
    except BaseException as error:
        exchange.failed(error)
        raise


def _later(deadline: float | None, since_s: float) -> float | None:
    return None if deadline is None else deadline + REAL.now_s() - since_s


def metadata_with_context(exchange: MessageExchange | None, metadata: Any) -> Any:
    """Return the metadata that a live call sends: ``metadata`` with the trace context."""
    if exchange is None:
        return metadata
    fields = exchange.context_fields({name.decode("latin-1") for name, _ in _pairs(metadata)})
    if not fields:
        return metadata
    return (*(metadata or ()), *((name.lower(), value) for name, value in fields))


def answered(exchange: MessageExchange, metadata: Any, at: Delivery | None) -> None:
    """Record the initial metadata."""
    try:
        kept, redacted = exchange.session.redactor.headers(_pairs(metadata))
        values: dict[str, Any] = {a.PLAYHEAD_GRPC_METADATA: kept}
        if redacted:
            values[a.PLAYHEAD_REDACTED_COUNT] = redacted
        exchange.answered(values, at)
    except Exception:
        log.debug("playhead could not record metadata", exc_info=True)


def ended(exchange: MessageExchange, status: Status, at: Delivery | None) -> None:
    """Record the status, unless the program has given the call up before."""
    if exchange.over:
        return
    try:
        redactor = exchange.session.redactor
        code, details = int(status.code), redactor.text(status.details or "")
        said: dict[str, Any] = {a.RPC_GRPC_STATUS_CODE: code, a.PLAYHEAD_GRPC_DETAILS: details}
        exchange.describe({a.RPC_RESPONSE_STATUS_CODE: _name(code)})
        if status.trailers is not None:
            said[a.PLAYHEAD_GRPC_TRAILERS], _ = redactor.headers(_pairs(status.trailers))
        if status.debug:
            said[a.PLAYHEAD_GRPC_DEBUG] = redactor.text(status.debug)
        if code == OK:
            exchange.finished(at, said)
        else:
            error = ErrorRecord("grpc", "RpcError", f"{_name(code)}: {details}")
            exchange.broken(error, at, said, error_type=_name(code))
    except Exception:
        log.debug("playhead could not record a status", exc_info=True)


def head_of(played: PlayedExchange) -> Any:
    """Return the recorded initial metadata."""
    return _metadata(played.exchange.head.get(a.PLAYHEAD_GRPC_METADATA))


def status_of(played: PlayedExchange) -> Status | None:
    """Return the recorded status; None if there is none."""
    end = played.exchange.end
    if end is None or a.RPC_GRPC_STATUS_CODE not in end.values:
        return None
    said = end.values
    trailers = said.get(a.PLAYHEAD_GRPC_TRAILERS)
    return Status(
        int(said[a.RPC_GRPC_STATUS_CODE]),
        str(said.get(a.PLAYHEAD_GRPC_DETAILS, "")),
        None if trailers is None else _metadata(trailers),
        str(said.get(a.PLAYHEAD_GRPC_DEBUG, "")),
    )


def given_up(exchange: MessageExchange, details: str) -> None:
    """Record that the program cancelled the call, or that the call was garbage-collected."""
    if details == COLLECTED:
        exchange.abandoned()
    else:
        exchange.describe({a.RPC_RESPONSE_STATUS_CODE: CANCELLED})
        error = ErrorRecord("grpc", "FutureCancelledError", details)
        exchange.broken(error, None, error_type=CANCELLED)


def too_late(exchange: MessageExchange, played: PlayedExchange | None) -> bool:
    """Return whether this message was sent too late in the recording: the call had failed before."""
    if played is None or exchange.sent_count < len(played.exchange.sent):
        return False
    end = played.exchange.end
    return end is not None and end.error is not None


def refused(error: PlayheadError) -> Status:
    """Return the status for a call that the tape does not answer."""
    return Status(INTERNAL, str(error), (), str(error))


def play_again(
    exchange: MessageExchange, played: PlayedExchange, index: int, at: Delivery | None
) -> Any:
    """Put the ``index``-th recorded item on the tape of the replay, and return it.

    A tuple is metadata, bytes are a message, a `Status` is the end.
    """
    recorded = played.exchange
    if index == 0 and recorded.head:
        exchange.answered(dict(recorded.head), at)
        return head_of(played)
    place = index - bool(recorded.head)
    if place < len(recorded.parts):
        data = played.part(place)
        exchange.received(data, at)
        return data
    status = status_of(played)
    end = recorded.end
    if end is not None and status is not None:
        exchange.describe({a.RPC_RESPONSE_STATUS_CODE: _name(status.code)})
        said = {
            name: end.values[name]
            for name in (
                a.RPC_GRPC_STATUS_CODE,
                a.PLAYHEAD_GRPC_DETAILS,
                a.PLAYHEAD_GRPC_TRAILERS,
                a.PLAYHEAD_GRPC_DEBUG,
            )
            if name in end.values
        }
        if end.error is None:
            exchange.finished(at, said)
        else:
            exchange.broken(end.error, at, said, error_type=_name(status.code))
    return status


def _pairs(metadata: Any) -> list[tuple[bytes, bytes]]:
    found: list[tuple[bytes, bytes]] = []
    pairs: Iterable[Any] = metadata or ()
    for key, value in pairs:
        name = key if isinstance(key, bytes) else str(key).encode()
        data = value if isinstance(value, bytes) else str(value).encode()
        found.append((name, base64.b64encode(data) if name.endswith(b"-bin") else data))
    return found


def _metadata(flat: Any) -> Any:
    words = [str(word) for word in flat or ()]
    make = getattr(sys.modules.get("grpc._cython.cygrpc"), "_Metadatum", None)
    found: list[Any] = []
    for key, value in zip(words[::2], words[1::2], strict=True):
        data = _unpacked(value) if key.endswith("-bin") else value
        found.append((key, data) if make is None else make(key, data))
    return tuple(found)


def _unpacked(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError:
        return text.encode()  # the text was redacted


def _address(target: str) -> tuple[str, int]:
    place = target.rpartition("/")[2] if "//" in target else target.rpartition("dns:")[2]
    parts = urlsplit(f"//{place}")
    try:
        return parts.hostname or target, parts.port or 0
    except ValueError:
        return target, 0


def _name(code: int) -> str:
    codes: Any = getattr(sys.modules.get("grpc"), "StatusCode", ())
    return next((one.name for one in codes if one.value[0] == code), str(code))


READY = 2
"""Connectivity state of a channel in a replay."""


class Channel:
    """Mixin that precedes the core's channel class in the bases of a patched channel."""

    def __init__(self, target: bytes, *_: Any, **__: Any) -> None:
        self.playhead_target = bytes(target).decode("utf-8", "replace")

    def check_connectivity_state(self, try_to_connect: bool) -> Any:
        """Return the connectivity state; in a replay always `READY`."""
        original: Any = super()
        session = current()
        if session is not None and session.driver.closed:
            return READY
        return original.check_connectivity_state(try_to_connect)
