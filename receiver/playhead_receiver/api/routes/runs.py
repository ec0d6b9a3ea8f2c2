"""``/v1/runs``: list, read, compare, export, mark and delete runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from playhead_receiver.api.context import Administrating, Controlling, Limit, Q, Reading, RunName, hex_id
from playhead_receiver.api.lines import span_lines
from playhead_receiver.api.models.runs import Marks, Removed, RunPage, RunTree
from playhead_receiver.archive.run_files import Material
from playhead_receiver.queries.language import read_list
from playhead_receiver.queries.matching_runs import ask_runs
from playhead_receiver.queries.run_items import RunItem, run_items
from playhead_receiver.storage import Query as RunQuery
from playhead_receiver.storage import RunSummary, Sort, page_cursor
from playhead_receiver.storage.api.retention import Retention
from playhead_receiver.storage.retention import delete_runs, named_to_go
from playhead_replay.diff import diff
from playhead_replay.json_objects.comparisons import Diff

router = APIRouter(tags=["runs"])

Mark = Literal["held", "flagged", "test"]


@router.get("/v1/runs")
def list_runs(
    context: Reading,
    q: Q = "",
    sort: Sort = "started",
    order: Literal["descending", "ascending"] = "descending",
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    after: Annotated[str, Query(max_length=100, description="`next` of the page before.")] = "",
) -> RunPage:
    """List runs, newest first. Without a query, successful processes without steps are left out."""
    base = RunQuery(sort=sort, ascending=order == "ascending", limit=limit, after=after)
    wanted = read_list(q, base)
    context.note("read", "runs")
    found = list(ask_runs(context.store, wanted))
    more = page_cursor(found[-1], wanted.query) if len(found) == limit else None
    return RunPage(runs=run_items(context.store, found, context.references), next=more)


@router.get("/v1/runs/{run}")
def show_run(
    context: Reading,
    run: RunName,
    under: Annotated[
        str, Query(pattern="^([0-9a-f]{16})?$", description="Root span of the part to return.")
    ] = "",
    depth: Annotated[int | None, Query(ge=0, le=10_000, description="Maximum depth.")] = None,
    offset: Annotated[int, Query(ge=0, le=100_000_000)] = 0,
    limit: Limit = 200,
) -> RunTree:
    """Get a run and a page of its span tree."""
    summary = context.run(run)
    context.note("read", summary.trace_id)
    trace_id = bytes.fromhex(summary.trace_id)
    above = hex_id(under, 8, "under") if under else b""
    tree = context.tree(summary)
    places = tree.places(above, depth)
    window = tree.lines(places[offset : offset + limit], tree.depths[places[0]] if places else 0)
    return RunTree(
        run=_item(context, summary),
        total=len(places),
        offset=offset,
        spans=span_lines(context.store, trace_id, window),
        next=offset + limit if offset + limit < len(places) else None,
    )


@router.get("/v1/runs/{run}/summary")
def summarize_run(context: Reading, run: RunName) -> RunItem:
    """Get the summary of a run, as in the list."""
    summary = context.run(run)
    context.note("read", summary.trace_id)
    return _item(context, summary)


@router.get("/v1/diff", response_model=Diff)
def compare_runs(
    context: Reading,
    left: Annotated[str, Query(min_length=1, max_length=200, description="A run.")],
    right: Annotated[str, Query(min_length=1, max_length=200, description="Another run.")],
) -> Response:
    """Compare two runs step by step."""
    one, other = context.read(left), context.read(right)
    return Response(msgspec.json.encode(diff(one, other).to_json()), media_type="application/json")


@router.get("/v1/runs/{run}/export", responses={200: {"content": {"application/jsonl": {}}}})
def export_run(context: Reading, run: RunName) -> Response:
    """Export a run as OTLP JSON lines, for `playhead import` or a Collector."""
    summary = context.run(run)
    context.note("export", summary.trace_id)
    lines = Material.of_store(context.store, summary.trace_id).lines()
    first = [*islice(lines, 1)]  # before the head goes out: a damaged run is answered as a problem

    def ended() -> Iterator[bytes]:
        for line in chain(first, lines):
            yield line + b"\n"

    return StreamingResponse(ended(), media_type="application/jsonl")


@router.get("/v1/runs/{run}/marks")
def show_marks(context: Reading, run: RunName) -> Marks:
    """Get the marks of a run."""
    trace_id = context.run(run).trace_id
    context.note("read", trace_id)
    return _marks(context, trace_id)


@router.put("/v1/runs/{run}/marks/{mark}")
def set_mark(context: Controlling, run: RunName, mark: Mark) -> Marks:
    """Set a mark: hold the run, flag it, or mark it as a test."""
    trace_id = context.run(run).trace_id
    context.note("mark", trace_id)
    context.offered(Retention).mark(bytes.fromhex(trace_id), mark)
    return _marks(context, trace_id)


@router.delete("/v1/runs/{run}/marks/{mark}")
def take_mark(context: Controlling, run: RunName, mark: Mark) -> Marks:
    """Remove a mark."""
    trace_id = context.run(run).trace_id
    context.note("mark", trace_id)
    context.offered(Retention).mark(bytes.fromhex(trace_id), mark, on=False)
    return _marks(context, trace_id)


@router.delete("/v1/runs/{run}")
def delete_run(context: Administrating, run: RunName) -> Removed:
    """Delete a run and all data that only it uses. Held and running runs are refused (422)."""
    runs, store = named_to_go(context.store, [run]), context.offered(Retention)
    by = f"token {context.caller.name}" if context.caller.name else ""
    done = delete_runs(store, runs, lambda trace_id: context.note("delete", trace_id), by)
    return Removed.model_validate(done, from_attributes=True)


def _item(context: Reading, run: RunSummary) -> RunItem:
    return run_items(context.store, [run], context.references)[0]


def _marks(context: Reading, trace_id: str) -> Marks:
    marks = context.offered(Retention).marks().get(bytes.fromhex(trace_id), set())
    return Marks(trace_id=trace_id, marks=sorted(marks))
