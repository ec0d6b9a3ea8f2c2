"""``/v1/flow``, ``conform``, ``compare``, ``failures``, ``runs/RUN/like``: what many runs mean."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from playhead_analysis import RunPath, read_path
from playhead_analysis.comparison.versions import GroupComparison, compare
from playhead_analysis.failure_kinds import FailureKinds
from playhead_analysis.flows.flow import Flow, flow_of
from playhead_analysis.likeness import LikeRun, LikeRuns, runs_like
from playhead_analysis.workflows.conformance import ConformanceReport, conformance_of
from playhead_analysis.workflows.definition import SHIPPED, shipped_names, workflow_of
from playhead_core.errors import UsageError
from playhead_receiver.api.context import Limit, Q, Reading, RunName
from playhead_receiver.api.middleware import while_wanted
from playhead_receiver.api.models.analysis import ShippedWorkflow, ShippedWorkflows, WantedWorkflow
from playhead_receiver.queries.failed_runs import failure_kinds
from playhead_receiver.queries.run_paths import MOST_RUNS, SelectedPaths, matching, paths_of
from playhead_receiver.queries.same_content import same_content
from playhead_receiver.storage.api.search import Search

router = APIRouter(tags=["analysis"])

MOST_S: Final = 30.0
"""Seconds after which a comparison with a workflow ends."""

Runs = Annotated[int, Query(ge=1, le=MOST_RUNS, description="Runs to read at most, the newest ones.")]


@router.get("/v1/flow", response_model=Flow)
def show_flow(
    request: Request,
    context: Reading,
    query: Q = "",
    runs: Runs = 1000,
    ways: Annotated[int, Query(ge=1, le=1000, description="Distinct ways at most.")] = 20,
    margin: Annotated[float, Query(ge=0.001, le=0.5, description="Margin of error of shares.")] = 0.05,
) -> Response:
    """Show which ways the runs of a query take: graph, distinct ways, and points at which runs part."""
    context.note("read", "flow")
    selected = _selected(request, context, query, runs)
    return _answer(flow_of(selected.paths, ways, margin, selected.truncated))


@router.get("/v1/workflows")
def list_workflows(context: Reading) -> ShippedWorkflows:
    """List the workflows that playhead ships."""
    context.note("read", "workflows")
    names = shipped_names()
    texts = [(SHIPPED / f"{name}.toml").read_text("utf-8") for name in names]
    return ShippedWorkflows(
        workflows=[
            ShippedWorkflow(
                name=name, description=workflow_of(text.encode(), name).description, file=text
            )
            for name, text in zip(names, texts, strict=True)
        ]
    )


@router.post("/v1/conform", response_model=ConformanceReport)
def check_conformance(
    request: Request,
    context: Reading,
    wanted: WantedWorkflow,
    query: Q = "",
    runs: Runs = 1000,
    alignment: Annotated[bool, Query(description="Include the alignment of each run.")] = False,
) -> Response:
    """Check whether the runs of a query did what a workflow says. It is read, and never stored."""
    context.note("read", "conform")
    if bool(wanted.name) == bool(wanted.file):
        raise UsageError("either the name of a workflow or a file is needed", hint="GET /v1/workflows")
    if wanted.name and wanted.name not in shipped_names():
        known = ", ".join(shipped_names())
        raise UsageError(f"no workflow is named {wanted.name[:60]!r}", hint=f"known: {known}")
    data = wanted.file.encode() if wanted.file else (SHIPPED / f"{wanted.name}.toml").read_bytes()
    workflow = workflow_of(data)
    selected = _selected(request, context, query, runs, with_states=bool(workflow.states))
    report = conformance_of(workflow, _in_time(while_wanted(request, selected.paths)))
    if not alignment:
        report = replace(report, results=[replace(one, alignment=[]) for one in report.results])
    return _answer(report)


@router.get("/v1/compare", response_model=GroupComparison)
def compare_groups(
    request: Request,
    context: Reading,
    left: Annotated[str, Query(max_length=2000, description="Query of the left group.")],
    right: Annotated[str, Query(max_length=2000, description="Query of the right group.")],
    query: Q = "",
    runs: Runs = 1000,
) -> Response:
    """Test whether two groups of runs differ in outcome, tools, failures, order, cost or time."""
    context.note("read", "compare")
    sides = [_selected(request, context, f"{query} {side}", runs).paths for side in (left, right)]
    return _answer(compare(*sides))


@router.get("/v1/failures", response_model=FailureKinds)
def list_failure_kinds(request: Request, context: Reading, query: Q = "", runs: Runs = 1000) -> Response:
    """Group the failed runs of a query by cause."""
    context.note("read", "failures")
    return _answer(failure_kinds(context.store, _selected(request, context, query, runs)))


@router.get("/v1/runs/{run}/like", response_model=LikeRuns)
def list_like_runs(
    request: Request,
    context: Reading,
    run: RunName,
    step: Annotated[
        int | None, Query(ge=1, le=1_000_000_000, description="List only who read the same there.")
    ] = None,
    query: Q = "",
    limit: Limit = 20,
    runs: Runs = 1000,
) -> Response:
    """List the runs that are most like a run, and those that read the same content and acted on it."""
    loaded = context.read(run)
    contents, same = same_content(context.offered(Search), loaded, step)
    like: list[LikeRun] = []
    if step is None:
        path = read_path(context.store, loaded.trace_id)
        others = _selected(request, context, query or f'agent:"{path.agent}"', runs).paths
        like = runs_like(path, others, limit)
    return _answer(LikeRuns(run=loaded.name, like=like, contents=contents, same_content=same))


def _selected(
    request: Request, context: Reading, query: str, runs: int, *, with_states: bool = False
) -> SelectedPaths:
    found = while_wanted(request, matching(context.store, query, runs + 1))
    return paths_of(context.store, found, runs, with_states=with_states)


def _in_time(paths: Iterable[RunPath]) -> Iterator[RunPath]:
    """Yield the paths. `UsageError` once they take too long: a workflow may be made to be slow."""
    until = time.monotonic() + MOST_S
    for path in paths:
        if time.monotonic() > until:
            raise UsageError("the workflow takes too long", hint="select fewer runs")
        yield path


def _answer(found: object) -> Response:
    return Response(msgspec.json.encode(found), media_type="application/json")
