"""``/v1/runs/{run}/events``: what is on the tape between two points of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Query

from playhead_receiver.query.asked import Asked, Limit, Reading, RunName
from playhead_receiver.query.models import FactLine, FactPage
from playhead_receiver.query.problems import NotFound
from playhead_receiver.store import RunSummary
from playhead_semconv.errors import UsageError
from playhead_semconv.facts import Fact

TEXT_BYTES = 2048
"""Of a body so much is shown."""
MOST_NS = (1 << 63) - 1

router = APIRouter(tags=["runs"])

Point = Annotated[
    str,
    Query(pattern="^([0-9]{1,19}|[0-9a-f]{16})?$", description="A span id (its start), or ns."),
]


@router.get("/v1/runs/{run}/events")
def list_events(
    asked: Reading,
    run: RunName,
    begin: Annotated[Point, Query(alias="from")] = "",
    end: Annotated[Point, Query(alias="to", description="A span id (its end), or ns.")] = "",
    name: Annotated[str, Query(max_length=100, description="Facts of this name only.")] = "",
    limit: Limit = 200,
    after: Annotated[
        str, Query(pattern="^([0-9a-f]{32}:[0-9]{1,18})?$", description="`next` of the page before.")
    ] = "",
) -> FactPage:
    """Facts between two points, process by process, in the order in which they happened there."""
    summary = asked.run(run)
    asked.note("read", summary.trace_id)
    first_ns, last_ns = _between(asked, summary, begin, end)
    found: list[FactLine] = []
    for fact in _facts(asked, summary, after):
        if not first_ns <= fact.time_ns <= last_ns or (name and fact.name != name):
            continue
        if len(found) == limit:
            last = found[-1]
            return FactPage(events=found, next=f"{last.instance}:{last.seq}")
        found.append(fact_line(fact))
    return FactPage(events=found, next=None)


def _between(asked: Asked, run: RunSummary, begin: str, end: str) -> tuple[int, int]:
    spans = {bytes.fromhex(one) for one in (begin, end) if _is_span(one)}
    rows = (
        {row.span_id: row for row in asked.store.outline(bytes.fromhex(run.trace_id))} if spans else {}
    )
    for span_id in spans:
        if span_id not in rows:
            raise NotFound(f"{run.name} has no span {span_id.hex()}")
    first = rows[bytes.fromhex(begin)].start_ns if _is_span(begin) else int(begin or 0)
    if _is_span(end):
        row = rows[bytes.fromhex(end)]
        last = MOST_NS if row.end_ns is None else row.end_ns
    else:
        last = int(end or MOST_NS)
    return first, last


def _is_span(point: str) -> bool:
    return len(point) == 16


def _facts(asked: Asked, run: RunSummary, after: str) -> Iterator[Fact]:
    """Facts of a run behind a place."""
    instance, _, seq = after.partition(":")
    if instance and instance not in run.instances:
        raise UsageError(f"{after} is no place in {run.name}")
    behind = run.instances[run.instances.index(instance) :] if instance else run.instances
    trace_id = bytes.fromhex(run.trace_id)
    for one in behind:
        begin = int(seq) if one == instance else -1
        for fact in asked.store.tape(bytes.fromhex(one)).facts(begin):
            if fact.trace_id == trace_id or not any(fact.trace_id):
                yield fact


def fact_line(fact: Fact) -> FactLine:
    """A fact in a list."""
    body = fact.body
    beginning = None if body is None or body.base is not None else body.inline
    return FactLine(
        instance=fact.instance.hex(),
        seq=fact.seq,
        time_ns=fact.time_ns,
        name=fact.name,
        lane=f"{fact.lane & (1 << 64) - 1:016x}",
        trace_id=fact.trace_id.hex(),
        span_id=fact.span_id.hex(),
        exchange=None if fact.exchange is None else str(fact.exchange),
        attributes=dict(fact.attributes),
        size_bytes=None if body is None else body.size,
        text=None if beginning is None else _text(beginning),
    )


def _text(data: bytes) -> str | None:
    try:
        return data[:TEXT_BYTES].decode("utf-8", "strict" if len(data) <= TEXT_BYTES else "ignore")
    except UnicodeDecodeError:
        return None
