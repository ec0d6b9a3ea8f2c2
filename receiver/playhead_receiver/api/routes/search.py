"""``/v1/search``: where something was said, across runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from playhead_core.errors import UsageError
from playhead_receiver.api.asked import Q, Reading
from playhead_receiver.api.models.search import SearchHit, SearchPage
from playhead_receiver.queries.language import read_language
from playhead_receiver.queries.search_hits import find_passages
from playhead_receiver.storage import Query as RunQuery
from playhead_receiver.storage.api.search import Search

router = APIRouter(tags=["search"])


@router.get("/v1/search")
def search(
    asked: Reading,
    q: Q,
    limit: Annotated[int, Query(ge=1, le=500, description="Maximum number of hits.")] = 50,
) -> SearchPage:
    """Search recorded text for all words, newest run first. A text is reported once per run.

    `"…"` matches a phrase, `word*` a prefix.
    """
    wanted = read_language(q, RunQuery(limit=limit))
    if not wanted.text:
        raise UsageError("no word to search for", hint='q=tool:search "order 81"')
    asked.note("search", "runs")
    hits = [
        SearchHit(
            run=one.run.name,
            trace_id=one.run.trace_id,
            step=one.step,
            span_id=one.span_id,
            time_ns=one.time_ns,
            who=one.who,
            excerpt=one.excerpt,
            highlights=one.highlights,
        )
        for one in find_passages(asked.store, wanted, asked.references)
    ]
    return SearchPage(hits=hits, behind=asked.offered(Search).lag().groups)
