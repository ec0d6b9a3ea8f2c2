"""Words by which runs are found: the table ``run_word``."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any, TypeAlias, cast

from playhead_core.errors import PlayheadError
from playhead_genai.run_fields import CONVERSATION, FIELDS
from playhead_receiver.storage.content.texts import Texts
from playhead_receiver.storage.runs.naming import agent_word
from playhead_receiver.storage.spans.span_view import open_frame, parse_span, resource_summary, summarize
from playhead_receiver.storage.sql.tables.database import Db
from playhead_receiver.storage.sql.tables.frames import frames_at
from playhead_receiver.storage.values.run_summaries import RunSummary

WORDS: tuple[str, ...] = (
    "agent",
    "version",
    "environment",
    CONVERSATION,
    "model",
    "provider",
    "tool",
    "error_type",
    "user",
    "tag",
    "prompt",
    "prompt_version",
    "release",
)
"""Kinds of words by which runs are found. The index is ``run_word.kind``, so add at the end only."""

KINDS = {word: kind for kind, word in enumerate(WORDS)}
MOST_WORDS = 1000
"""Most words of one kind by which a run can be found."""
_OF_SPANS = ", ".join(str(KINDS[field]) for field in FIELDS)
"""Words of these kinds are written with the spans; all others come from summaries."""

RunWords: TypeAlias = dict[str, list[str]]
"""The words of a run that come from its spans, by kind."""


def words_of_runs(db: Db, traces: Collection[bytes]) -> dict[bytes, RunWords]:
    """The words of runs that were written with their spans."""
    found: dict[bytes, RunWords] = {}
    if traces:
        rows = db.execute(
            "SELECT DISTINCT trace_id, kind, word FROM run_word"
            f" WHERE kind IN ({_OF_SPANS}) AND trace_id IN ({', '.join('?' * len(traces))})"
            " ORDER BY word",
            tuple(traces),
        )
        for trace_id, kind, word in cast("Iterable[tuple[bytes, int, str]]", rows):
            found.setdefault(trace_id, {}).setdefault(WORDS[kind], []).append(word)
    return found


def words_in_spans(db: Db, trace_id: bytes) -> RunWords:
    """The same words, read from the spans: for runs that an earlier version stored without them."""
    texts = Texts(lambda id: frames_at(db, id))
    found: RunWords = {}
    rows: Any = db.execute(
        "SELECT bundle, place, resource.data FROM span JOIN resource ON resource.id = span.resource"
        " WHERE trace_id = ? ORDER BY bundle, place",
        (trace_id,),
    )
    for bundle, place, resource in rows:
        with suppress(PlayheadError):  # damaged; `verify` reports it
            about, span = open_frame(resource + texts.span(bundle, place))
            for field, word in (*summarize(parse_span(span)).words, *resource_summary(about).words):
                known = found.setdefault(field, [])
                if word not in known and len(known) < MOST_WORDS:
                    known.append(word)
    return found


def words_of(run: RunSummary) -> set[tuple[int, str]]:
    """The words by which a run is to be found, with their kinds."""
    words: tuple[Iterable[str], ...] = (
        [run.agent, agent_word(run.agent)],
        [run.version],
        [run.environment],
        run.conversations[:MOST_WORDS],
        run.models,
        run.providers,
        run.tools,
        run.error_types,
        run.users[:MOST_WORDS],
        run.tags[:MOST_WORDS],
        run.prompts[:MOST_WORDS],
        run.prompt_versions[:MOST_WORDS],
        run.releases[:MOST_WORDS],
    )
    return {(kind, word) for kind, some in enumerate(words) for word in some if word}
