"""``/v1/search``, ``/v1/conversations``, ``/v1/stats`` and ``/v1/facets``: across runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from playhead_core.errors import UsageError
from playhead_receiver.api.context import Q, Reading
from playhead_receiver.api.middleware import while_wanted
from playhead_receiver.api.models.runs import (
    Conversation,
    ConversationPage,
    Facets,
    FacetValue,
    SearchPage,
)
from playhead_receiver.queries.language import read_language, read_list
from playhead_receiver.queries.matching_runs import ask_runs
from playhead_receiver.queries.search_hits import find_text_hits
from playhead_receiver.queries.sums import MOST_RUNS, By, RunStats, count_facets, stats_of
from playhead_receiver.storage import Query as RunQuery
from playhead_receiver.storage import RunSummary
from playhead_receiver.storage.api.search import Search

router = APIRouter(tags=["search"])
conversations_router = APIRouter(tags=["runs"])
stats_router = APIRouter(tags=["runs"])

MOST_CONVERSATION_RUNS = 20_000
"""Number of runs that the list of conversations looks at, newest first."""


@router.get("/v1/search")
def search(
    context: Reading,
    q: Q,
    limit: Annotated[int, Query(ge=1, le=500, description="Maximum number of hits.")] = 50,
) -> SearchPage:
    """Search recorded text for all words, newest run first. A text is reported once per run.

    `"…"` matches a phrase, `word*` a prefix.
    """
    wanted = read_language(q, RunQuery(limit=limit))
    if not wanted.text:
        raise UsageError("no word to search for", hint='q=tool:search "order 81"')
    context.note("search", "runs")
    hits = find_text_hits(context.store, wanted, context.references)
    return SearchPage(hits=hits, behind=context.offered(Search).lag().groups)


@conversations_router.get("/v1/conversations")
def list_conversations(
    context: Reading, q: Q = "", limit: Annotated[int, Query(ge=1, le=500)] = 50
) -> ConversationPage:
    """List conversations, most recent first. `/v1/runs?q=conversation:ID` lists the runs of one.

    Replays repeat a conversation and are counted only if the query has `mode:replay`.
    """
    wanted = read_language(q, RunQuery(limit=MOST_CONVERSATION_RUNS))
    context.note("read", "conversations")
    runs: dict[str, list[RunSummary]] = {}
    seen = 0
    for run in ask_runs(context.store, wanted):
        seen += 1
        for id in run.conversations:
            if wanted.query.conversation in (None, id):
                runs.setdefault(id, []).append(run)
    found = [_conversation(id, some) for id, some in runs.items()]
    found.sort(key=lambda one: one.last_ns, reverse=True)
    return ConversationPage(
        conversations=found[:limit], truncated=seen == MOST_CONVERSATION_RUNS or len(found) > limit
    )


def _conversation(id: str, runs: list[RunSummary]) -> Conversation:
    last = max(runs, key=lambda run: run.last_ns)
    costs = [run.cost_usd for run in runs if run.cost_usd is not None]
    return Conversation(
        id=id,
        agent=last.agent,
        runs=len(runs),
        started_ns=min(run.started_ns for run in runs),
        last_ns=last.last_ns,
        status=last.status,
        steps=sum(run.steps for run in runs),
        errors=sum(run.errors for run in runs),
        input_tokens=sum(run.input_tokens for run in runs),
        output_tokens=sum(run.output_tokens for run in runs),
        cost_usd=round(sum(costs), 9) if costs else None,
        unpriced_runs=sum(bool(run.unpriced) for run in runs),
    )


@stats_router.get("/v1/stats")
def show_stats(request: Request, context: Reading, q: Q = "", by: By = "none") -> RunStats:
    """Aggregate runs, in total and by group.

    A run with several models, tools or error types counts fully in each group.
    """
    wanted = read_language(q, RunQuery(limit=MOST_RUNS))
    context.note("read", "stats")
    return stats_of(context.store, while_wanted(request, ask_runs(context.store, wanted)), by)


@stats_router.get("/v1/facets")
def list_facets(
    request: Request,
    context: Reading,
    q: Q = "",
    most: Annotated[int, Query(ge=1, le=500, description="Maximum number of values of a field.")] = 50,
) -> Facets:
    """Count the runs that a list shows, in total and by value: status, agent, version, model, …

    A value has the number of runs that are listed if `field:value` is added to the query. A run with
    several models, tools or tags counts in each.
    """
    base = RunQuery(limit=MOST_RUNS)
    without_idle = read_list(q, base).query.without_idle
    context.note("read", "facets")
    matching = while_wanted(request, ask_runs(context.store, read_language(q, base)))
    runs, found = count_facets(matching, most, without_idle)
    facets = {
        field: [FacetValue(value=value, runs=count) for value, count in values]
        for field, values in found.items()
    }
    return Facets(runs=runs, facets=facets, truncated=runs >= MOST_RUNS)
