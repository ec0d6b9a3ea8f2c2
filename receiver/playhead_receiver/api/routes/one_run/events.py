"""``/v1/runs/{run}/events``: facts of the tape between two points of a run."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from playhead_core.errors import UsageError
from playhead_core.facts import Fact
from playhead_receiver.api.context import Limit, Reading, RequestContext, RunName
from playhead_receiver.api.models.spans import FactLine, FactPage
from playhead_receiver.api.problems import NotFound
from playhead_receiver.storage import RunSummary

TEXT_BYTES = 2048
"""Number of bytes of a body that are shown."""
MOST_NS = (1 << 63) - 1

BYTES = "application/octet-stream"

router = APIRouter(tags=["runs"])

Point = Annotated[
    str,
    Query(pattern="^([0-9]{1,19}|[0-9a-f]{16})?$", description="Start: a span id, or a time in ns."),
]
Instance = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="Id of a process of the run.")]
Seq = Annotated[int, Path(ge=0, le=10**18, description="Number of the fact on its tape.")]


@router.get("/v1/runs/{run}/events")
def list_events(
    context: Reading,
    run: RunName,
    begin: Annotated[Point, Query(alias="from")] = "",
    end: Annotated[Point, Query(alias="to", description="End: a span id, or a time in ns.")] = "",
    name: Annotated[
        str, Query(max_length=100, description="Only facts with this name or below it.")
    ] = "",
    limit: Limit = 200,
    after: Annotated[
        str, Query(pattern="^([0-9a-f]{32}:[0-9]{1,18})?$", description="`next` of the page before.")
    ] = "",
    order: Annotated[
        Literal["recorded", "newest"],
        Query(
            description="`newest`: the latest facts of all processes, without `next` (`to` pages back)."
        ),
    ] = "recorded",
) -> FactPage:
    """List recorded facts between two points, by process, in order of occurrence."""
    summary = context.run(run)
    context.note("read", summary.trace_id)
    first_ns, last_ns = _between(context, summary, begin, end)
    facts = (
        fact
        for fact in _facts(context, summary, after)
        if first_ns <= fact.time_ns <= last_ns and (not name or f"{fact.name}.".startswith(f"{name}."))
    )
    if order == "newest":
        newest = heapq.nlargest(limit, facts, key=lambda fact: (fact.time_ns, fact.instance, fact.seq))
        return FactPage(events=[fact_line(fact) for fact in newest], next=None)
    found: list[FactLine] = []
    for fact in facts:
        if len(found) == limit:
            last = found[-1]
            return FactPage(events=found, next=f"{last.instance}:{last.seq}")
        found.append(fact_line(fact))
    return FactPage(events=found, next=None)


@router.get(
    "/v1/runs/{run}/events/{instance}/{seq}/body",
    response_class=Response,
    responses={200: {"content": {BYTES: {"schema": {"type": "string", "format": "binary"}}}}},
)
def show_body(context: Reading, run: RunName, instance: Instance, seq: Seq) -> Response:
    """Get the full body of a fact: a request, a response or a file."""
    summary = context.run(run)
    context.note("export", f"{summary.trace_id}/{instance}:{seq}")
    if instance in summary.instances:
        tape = context.store.tape(bytes.fromhex(instance))
        fact = next(tape.facts(seq - 1), None)
        if fact is not None and fact.seq == seq and fact.body is not None and _is_of(fact, summary):
            return Response(tape.read(fact.body), media_type=BYTES)
    raise NotFound(f"{summary.name} has no body {instance}:{seq}")


def _between(context: RequestContext, run: RunSummary, begin: str, end: str) -> tuple[int, int]:
    spans = {bytes.fromhex(one) for one in (begin, end) if _is_span(one)}
    rows = (
        {row.span_id: row for row in context.store.outline(bytes.fromhex(run.trace_id))} if spans else {}
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


def _facts(context: RequestContext, run: RunSummary, after: str) -> Iterator[Fact]:
    """Facts of a run after a position (``instance:seq``)."""
    instance, _, seq = after.partition(":")
    if instance and instance not in run.instances:
        raise UsageError(f"{after} is not a position in {run.name}")
    behind = run.instances[run.instances.index(instance) :] if instance else run.instances
    for one in behind:
        begin = int(seq) if one == instance else -1
        for fact in context.store.tape(bytes.fromhex(one)).facts(begin):
            if _is_of(fact, run):
                yield fact


def _is_of(fact: Fact, run: RunSummary) -> bool:
    """Whether a fact belongs to the run, or to its whole process."""
    return fact.trace_id.hex() == run.trace_id or not any(fact.trace_id)


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
        attributes=readable(fact.attributes),
        size_bytes=None if body is None else body.size,
        text=None if beginning is None else _text(beginning),
    )


def readable(value: Any) -> Any:
    """An attribute's value for JSON: bytes as text, with escapes for invalid UTF-8."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, list):
        return [readable(one) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {name: readable(one) for name, one in cast("dict[str, Any]", value).items()}
    return value


def _text(data: bytes) -> str | None:
    try:
        return data[:TEXT_BYTES].decode("utf-8", "strict" if len(data) <= TEXT_BYTES else "ignore")
    except UnicodeDecodeError:
        return None
