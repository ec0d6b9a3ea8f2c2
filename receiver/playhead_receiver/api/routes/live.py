"""``/v1/live``: incoming data as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import anyio
import anyio.to_thread
import msgspec
from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.sse import format_sse_event
from starlette.responses import StreamingResponse

from playhead_core.errors import PlayheadError, UsageError
from playhead_core.facts import Fact
from playhead_core.tape.span_starts import starts_of
from playhead_receiver.api.context import Q, Reading, RequestContext, serving_of
from playhead_receiver.api.problems import Busy
from playhead_receiver.api.serving import MOST_LIVE, Serving
from playhead_receiver.queries.language import ParsedQuery, read_language
from playhead_receiver.queries.matching_runs import Watched
from playhead_receiver.storage import Change, StoredSpan
from playhead_receiver.storage import Query as RunQuery
from playhead_receiver.storage.spans.span_view import open_frame, parse_span, resource_summary, summarize
from playhead_semconv import attributes as a
from playhead_semconv import events as e

MEDIA_TYPE = "text/event-stream"
POLL_S = 0.2
PING_S = 15.0
"""Seconds between comments on an idle stream."""
AT_ONCE = 500
"""Number of changes that are read from the store at once."""

MOST = (1 << 63) - 1

router = APIRouter(tags=["live"])

_EVENT_NAMES = {
    e.PLAYHEAD_EXCHANGE_REQUEST: "exchange.asked",
    e.PLAYHEAD_EXCHANGE_RESPONSE: "exchange.answered",
    e.PLAYHEAD_EXCHANGE_DATA: "exchange.data",
    e.PLAYHEAD_EXCHANGE_END: "exchange.ended",
    e.PLAYHEAD_CONTROL_HALT: "exchange.halted",
    e.PLAYHEAD_CONTROL_EDIT: "exchange.edited",
    e.PLAYHEAD_CONTROL_RELEASE: "exchange.released",
    e.PLAYHEAD_PROCESS_START: "process.started",
    e.PLAYHEAD_PROCESS_EXIT: "process.ended",
}


class Follower:
    """Reads changes after a position, and selects those that match the query."""

    def __init__(
        self, context: RequestContext, wanted: ParsedQuery, trace_id: bytes, position: int
    ) -> None:
        self._store = context.store
        self._watched = Watched(context.store, wanted.query)
        self._all = wanted.query == RunQuery(mode=None)
        self._trace_id = trace_id
        self.position = position

    def more(self) -> list[tuple[int, str, dict[str, Any]]]:
        """New matching events: position, name, content. Empty if nothing has arrived."""
        while True:
            events: list[tuple[int, str, dict[str, Any]]] = []
            moved = False
            for change in self._store.changes(self.position, AT_ONCE):
                self.position, moved = change.position, True
                trace_id = change.item.trace_id
                if self._asked_for(trace_id):
                    events += _events_of(change)
            if events or not moved:
                return events

    def _asked_for(self, trace_id: bytes) -> bool:
        if self._trace_id:
            return trace_id == self._trace_id
        return self._all or self._watched.run(trace_id) is not None


def open_follower(
    request: Request,
    context: Reading,
    q: Q = "",
    run: Annotated[str, Query(max_length=200, description="Only this run.")] = "",
    after: Annotated[
        int | None, Query(ge=0, le=MOST, description="Start after this event id. Default: now.")
    ] = None,
    last_event_id: Annotated[str | None, Header(max_length=20, pattern="^[0-9]{1,18}$")] = None,
) -> Follower:
    """Open the source of a stream, so that errors are reported before it begins."""
    if serving_of(request).live >= MOST_LIVE:
        raise Busy(f"{MOST_LIVE} live streams are open already")
    wanted = read_language(q, RunQuery(mode=None))
    if wanted.text:
        raise UsageError("a text search cannot be followed", hint="use fields: agent:NAME")
    trace_id = bytes.fromhex(context.run(run).trace_id) if run else b""
    context.note("read", trace_id.hex() or "live")
    begin = after if last_event_id is None else int(last_event_id)
    return Follower(context, wanted, trace_id, context.store.position() if begin is None else begin)


@router.get(
    "/v1/live",
    response_class=StreamingResponse,
    responses={200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}},
)
def follow(request: Request, follower: Annotated[Follower, Depends(open_follower)]) -> StreamingResponse:
    """Stream incoming data as server-sent events. Resume with `Last-Event-ID`.

    `span.started`, `span.ended`, `exchange.asked|halted|edited|released|answered|data|ended`,
    `process.started|ended`.
    """
    stream = _stream(serving_of(request), follower)
    return StreamingResponse(stream, media_type=MEDIA_TYPE, headers={"cache-control": "no-store"})


async def _stream(serving: Serving, follower: Follower) -> AsyncIterator[bytes]:
    serving.live += 1
    idle_s = PING_S
    try:
        while not serving.stopping:
            events = await anyio.to_thread.run_sync(follower.more)
            for position, what, content in events:
                data = msgspec.json.encode(content).decode()
                yield format_sse_event(data_str=data, event=what, id=str(position))
            if events:
                idle_s = 0.0
                continue
            if idle_s >= PING_S:
                idle_s = 0.0
                yield format_sse_event(comment=f"behind {follower.position}")
            await anyio.sleep(POLL_S)
            idle_s += POLL_S
    finally:
        serving.live -= 1


def _events_of(change: Change) -> Iterator[tuple[int, str, dict[str, Any]]]:
    item = change.item
    if isinstance(item, StoredSpan):
        content = _span_content(item)
        if content is not None:
            yield change.position, "span.ended", content
        return
    for start in starts_of(item):
        yield change.position, "span.started", _fact_content(start)
    if item.name in _EVENT_NAMES:
        yield change.position, _EVENT_NAMES[item.name], _fact_content(item)


def _span_content(stored: StoredSpan) -> dict[str, Any] | None:
    try:
        resource, span = open_frame(stored.otlp)
        found = summarize(parse_span(span), bool(resource_summary(resource).instance))
    except PlayheadError:
        return None
    return {
        "trace_id": found.trace_id.hex(),
        "span_id": found.span_id.hex(),
        "parent_id": found.parent.hex() or None,
        "name": found.name,
        "time_ns": found.end_ns,
        "started_ns": found.start_ns,
        "failed": found.failed,
        "step": found.label.step,
        "model": found.label.model,
        "input_tokens": found.usage.input,
        "output_tokens": found.usage.output,
    }


def _fact_content(fact: Fact) -> dict[str, Any]:
    return {
        "trace_id": fact.trace_id.hex(),
        "span_id": fact.span_id.hex(),
        "name": str(fact.attributes.get(a.PLAYHEAD_SPAN_NAME, "")),
        "time_ns": fact.time_ns,
        "exchange": None if fact.exchange is None else str(fact.exchange),
        "size_bytes": None if fact.body is None else fact.body.size,
    }
