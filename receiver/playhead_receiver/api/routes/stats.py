"""``/v1/stats``: sums over runs."""

from __future__ import annotations

from fastapi import APIRouter, Request

from playhead_receiver.api.asked import Q, Reading
from playhead_receiver.api.models.sums import Group, Stats
from playhead_receiver.api.patience import while_wanted
from playhead_receiver.queries.asked_runs import ask_runs
from playhead_receiver.queries.language import read_language
from playhead_receiver.queries.sums import MOST_RUNS, By, summed
from playhead_receiver.storage import Query as RunQuery
from playhead_receiver.storage.api.maintenance import Statistics
from playhead_receiver.storage.api.search import Search
from playhead_receiver.storage.api.store import offered

router = APIRouter(tags=["runs"])


@router.get("/v1/stats")
def show_stats(request: Request, asked: Reading, q: Q = "", by: By = "none") -> Stats:
    """Aggregate runs, in total and by group.

    A run with several models, tools or error types counts fully in each group.
    """
    wanted = read_language(q, RunQuery(limit=MOST_RUNS))
    asked.note("read", "stats")
    total, groups = summed(while_wanted(request, ask_runs(asked.store, wanted)), by)
    search = offered(asked.store, Search)
    return Stats(
        total=Group.model_validate(total),
        groups=[Group.model_validate(one) for one in groups],
        truncated=total.runs == MOST_RUNS,
        size_bytes=asked.offered(Statistics).size_bytes(),
        position=asked.store.position(),
        behind=0 if search is None else search.lag().groups,
    )
