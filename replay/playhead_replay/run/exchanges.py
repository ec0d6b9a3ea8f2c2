"""Recorded exchanges; their bytes are read from the tape on demand."""

from __future__ import annotations

import base64
import sys
from dataclasses import dataclass
from typing import cast

from playhead_core.errors import TapeError
from playhead_core.facts import Content, End, Exchange, ExchangeId, Part
from playhead_core.tape.folds import is_inbound
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_genai.providers import WireResponse, decode_body
from playhead_genai.providers.xai.grpc import grpc_response
from playhead_replay.json_objects.recorded import Body, ExchangeItem
from playhead_semconv import attributes as a
from playhead_semconv import events as e


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """A piece of a response as the program received it."""

    time_ns: int
    data: bytes
    """As on the wire: still content-encoded."""
    batch: int | None
    """The delivery it belonged to."""


@dataclass(slots=True, eq=False)
class RecordedExchange:
    """One attempt at a boundary: verbatim request and response, read from the tape on demand."""

    id: ExchangeId
    tape: IndexedTape
    lane_name: str
    key: str
    """Method and URL for HTTP."""
    digest: bytes
    """Digest of the request body; empty if its bytes were not recorded."""
    first_seq: int
    """Number of the request fact."""
    span_id: str
    """The span of this attempt, 16 hex digits; empty if none was recorded."""
    origin: RecordedExchange | None = None
    """Replay: the recording that answered it and holds the bytes that this one refers to."""

    @property
    def exchange(self) -> Exchange:
        """Everything the tape has about it."""
        found = self.tape.exchange(self.id)
        assert found is not None
        return found

    @property
    def name(self) -> str:
        """Lane and ordinal, e.g. ``main#4``; for boundaries other than HTTP also the kind."""
        kind = "" if self.id.kind == "http" else f"{self.id.kind}:"
        return f"{self.lane_name}#{kind}{self.id.ordinal}"

    @property
    def instance(self) -> str:
        """The process instance, hex."""
        return self.tape.instance.hex()

    @property
    def end(self) -> End | None:
        """How it ended; None: it had no answer when the tape ends."""
        return self.exchange.end

    @property
    def request(self) -> bytes:
        """The request body. `TapeError` if the tape does not hold it."""
        return self._read(self.exchange.ask.body, None)

    @property
    def request_headers(self) -> list[tuple[str, str]]:
        """In their order; credentials are replaced."""
        return _pairs(self.exchange.ask.details.get(a.PLAYHEAD_HTTP_HEADERS))

    @property
    def response_headers(self) -> list[tuple[str, str]]:
        """In their order; empty if there was no response."""
        return _pairs(self.exchange.head.get(a.PLAYHEAD_HTTP_HEADERS))

    @property
    def status_code(self) -> int | None:
        """HTTP status; None if there was no response."""
        status = self.exchange.head.get(a.HTTP_RESPONSE_STATUS_CODE)
        return None if status is None else int(status)

    @property
    def chunks(self) -> list[AnswerPart]:
        """The response body as it was delivered."""
        return [
            AnswerPart(
                part.time_ns,
                self._read(part.data, index),
                None if part.delivery is None else part.delivery.batch,
            )
            for index, part in enumerate(self.exchange.parts)
        ]

    @property
    def wire_response(self) -> WireResponse:
        """The answer, for `playhead_genai.providers.derive`. `TapeError` if the tape lacks it."""
        found = self.exchange
        chunks = [self._read(part.data, index) for index, part in enumerate(found.parts)]
        if self.id.kind == "grpc":
            return grpc_response(found, chunks)
        status = found.head.get(a.HTTP_RESPONSE_STATUS_CODE)
        return WireResponse(
            None if status is None else int(status),
            _pairs(found.head.get(a.PLAYHEAD_HTTP_HEADERS)),
            chunks,
            complete=found.end is not None and found.end.how == "complete",
        )

    def sent(self, number: int) -> bytes:
        """A message that the program sent, counted from 0."""
        return self._read(self.exchange.sent[number].data, None)

    @property
    def response(self) -> bytes:
        """The response body as on the wire, as far as it was received."""
        return b"".join(chunk.data for chunk in self.chunks)

    @property
    def chunk_sizes(self) -> list[int]:
        """Sizes of the chunks in bytes; does not read the tape."""
        return [part.data.size for part in self.exchange.parts]

    @property
    def has_content(self) -> bool:
        """Whether the bytes were recorded, and not only their sizes."""
        contents = [self.exchange.ask.body, *(part.data for part in self.exchange.parts)]
        return all(one.digest or one.inline is not None or not one.size for one in contents)

    def to_json(self) -> ExchangeItem:
        """As an object of plain values: bytes as text, else as base64; null where they are not recorded.

        ``chunks`` are as on the wire; ``response`` is their sum without its content encoding.
        """
        end = self.end
        error = None if end is None else end.error
        return {
            "name": self.name,
            "id": str(self.id),
            "instance": self.instance,
            "key": self.key,
            "started_ns": self.exchange.time_ns,
            "request_headers": self.request_headers,
            "request": _plain(self.request) if self.has_content else None,
            "status_code": self.status_code,
            "response_headers": self.response_headers,
            "response": _plain(self.decoded_response) if self.has_content else None,
            "chunks": [{**_plain(one.data), "time_ns": one.time_ns} for one in self.chunks]
            if self.has_content
            else [],
            "end": None if end is None else end.how,
            "error": None if error is None else f"{error.qualname}: {error.message}",
        }

    @property
    def decoded_response(self) -> bytes:
        """The response body without its content encodings; as on the wire where they are not known."""
        pieces = [one.data for one in self.chunks]
        body, problem = decode_body(self.response_headers, pieces)
        return b"".join(pieces) if problem and not body else body

    def _read(self, content: Content, part: int | None) -> bytes:
        try:
            if content.size and not content.digest and content.inline is None:
                raise TapeError("a chunk without bytes is not on the tape")
            return self.tape.read(content)
        except TapeError:
            if self.origin is None:
                raise
        recorded = self.origin.exchange
        if part is None:
            return self.origin.tape.read(recorded.ask.body)
        answered: Part = recorded.parts[part]
        return self.origin.tape.read(answered.data)


def _plain(data: bytes) -> Body:
    """Bytes as text if they are valid text, else as base64."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def lane_names(tape: IndexedTape) -> dict[int, str]:
    """Names of the lanes that a tape declares."""
    return {
        fact.lane: str(fact.attributes[a.PLAYHEAD_LANE_NAME])
        for fact in tape.named(e.PLAYHEAD_LANE)
        if a.PLAYHEAD_LANE_NAME in fact.attributes
    }


def exchanges_of(tape: IndexedTape, trace_id: str = "") -> list[RecordedExchange]:
    """Exchanges of the program on a tape, in order.

    ``trace_id``: only those of this trace or of none.
    """
    names = lane_names(tape)
    found: list[RecordedExchange] = []
    edits = tape.named(e.PLAYHEAD_CONTROL_EDIT)
    edited = {fact.exchange: fact.body for fact in edits if fact.body is not None}
    for request in tape.named(e.PLAYHEAD_EXCHANGE_REQUEST):
        id = request.exchange
        if id is None or is_inbound(request):
            continue
        if trace_id and any(request.trace_id) and request.trace_id.hex() != trace_id:
            continue
        body = edited.get(id) or request.body
        if body is None:  # the body was generated while it was sent
            exchange = tape.exchange(id)
            body = exchange.ask.body if exchange is not None else Content.chunk(b"")
        found.append(
            RecordedExchange(
                id,
                tape,
                names.get(id.lane, f"{id.lane:016x}"),
                sys.intern(str(request.attributes[a.PLAYHEAD_ASK_KEY])),
                body.digest,
                request.seq,
                request.span_id.hex(),
            )
        )
    return found


def _pairs(flat: object) -> list[tuple[str, str]]:
    if not isinstance(flat, list):
        return []
    words = [str(word) for word in cast("list[object]", flat)]
    return list(zip(words[::2], words[1::2], strict=False))
