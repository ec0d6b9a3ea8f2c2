"""``/v1/search``: where something was said, across runs."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query

from playhead_receiver.asking.asked_runs import ask_hits, highlights
from playhead_receiver.asking.language import read_language
from playhead_receiver.query.asked import Q, Reading
from playhead_receiver.query.models import SearchHit, SearchPage
from playhead_receiver.store import Query as RunQuery
from playhead_semconv.errors import UsageError

router = APIRouter(tags=["search"])


@router.get("/v1/search")
def search(
    asked: Reading, q: Q, limit: Annotated[int, Query(ge=1, le=500, description="How many hits.")] = 50
) -> SearchPage:
    """Where all words are said together, newest first. `"…"` is a phrase, `word*` a beginning."""
    wanted = read_language(q, RunQuery(mode=None))
    if not wanted.text:
        raise UsageError("there is no word to search for", hint='q=tool:search "order 81"')
    asked.note("search", "runs")
    wanted = msgspec.structs.replace(wanted, query=msgspec.structs.replace(wanted.query, limit=limit))
    hits = [
        SearchHit(
            run=run.name,
            trace_id=hit.trace_id,
            span_id=hit.span_id,
            time_ns=hit.time_ns,
            excerpt=hit.excerpt,
            highlights=highlights(hit.excerpt, wanted.text),
        )
        for run, hit in ask_hits(asked.store, wanted)
    ]
    lag = asked.store.lag()
    return SearchPage(hits=hits, behind=lag.bundles + lag.fact_runs)
