"""``/v1/conversations``: runs that belong together."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from playhead_receiver.api.asked import Q, Reading
from playhead_receiver.api.models.conversations import Conversation, ConversationPage
from playhead_receiver.queries.asked_runs import ask_runs
from playhead_receiver.queries.language import read_language
from playhead_receiver.storage import Query as RunQuery
from playhead_receiver.storage import RunSummary

MOST_RUNS = 20_000
"""Runs that are looked at: the newest."""

router = APIRouter(tags=["runs"])


@router.get("/v1/conversations")
def list_conversations(
    asked: Reading, q: Q = "", limit: Annotated[int, Query(ge=1, le=500)] = 50
) -> ConversationPage:
    """List conversations, most recent first. `/v1/runs?q=conversation:ID` lists the runs of one.

    Replays repeat a conversation and are counted only if the query has `mode:replay`.
    """
    wanted = read_language(q, RunQuery(limit=MOST_RUNS))
    asked.note("read", "conversations")
    runs: dict[str, list[RunSummary]] = {}
    seen = 0
    for run in ask_runs(asked.store, wanted):
        seen += 1
        for id in run.conversations:
            if wanted.query.conversation in (None, id):
                runs.setdefault(id, []).append(run)
    found = [_conversation(id, some) for id, some in runs.items()]
    found.sort(key=lambda one: one.last_ns, reverse=True)
    return ConversationPage(
        conversations=found[:limit], truncated=seen == MOST_RUNS or len(found) > limit
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
