"""Words by which runs are found: the table ``run_word``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias, cast

from playhead_core.errors import PlayheadError
from playhead_core.reports import WORD_FIELDS
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
    "goal",
    "phase",
    "decision",
    "signal",
    "parent",
    "failure",
    "loop",
    "stuck",
    "derived",
    "agent_type",
)
"""Kinds of words by which runs are found. The index is ``run_word.kind``, so add at the end only."""

KINDS = {word: kind for kind, word in enumerate(WORDS)}
MOST_WORDS = 1000
"""Most words of one kind by which a run can be found."""
_WRITTEN = ", ".join(str(KINDS[field]) for field in (*FIELDS, *WORD_FIELDS))
"""Words of these kinds are written with spans, log records and facts; all others come from summaries."""
"""Words of these kinds are written with the spans; others but `DERIVED` come from summaries."""
DERIVED = ("failure", "loop", "stuck", "derived")
"""Words of these kinds are written by `DerivedFindings.store_findings`; summaries leave them alone."""
DERIVED_KINDS = ", ".join(str(KINDS[kind]) for kind in DERIVED)
_READ = f"{_WRITTEN}, {DERIVED_KINDS}"

RunWords: TypeAlias = dict[str, list[str]]
"""The words of a run that come from its spans, log records and facts, by kind."""


def words_of_runs(db: Db, traces: Collection[bytes]) -> dict[bytes, RunWords]:
    """The words of runs that were written with what arrived, and those that were derived."""
    found: dict[bytes, RunWords] = {}
    if traces:
        rows = db.execute(
            "SELECT DISTINCT trace_id, kind, word FROM run_word"
            f" WHERE kind IN ({_READ}) AND trace_id IN ({', '.join('?' * len(traces))})"
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
    words: dict[str, Sequence[str]] = {
        "agent": [run.agent, agent_word(run.agent)],
        "version": [run.version],
        "environment": [run.environment],
        CONVERSATION: run.conversations[:MOST_WORDS],
        "model": run.models,
        "provider": run.providers,
        "tool": run.tools,
        "error_type": run.error_types,
        "user": run.users[:MOST_WORDS],
        "tag": run.tags[:MOST_WORDS],
        "prompt": run.prompts[:MOST_WORDS],
        "prompt_version": run.prompt_versions[:MOST_WORDS],
        "release": run.releases[:MOST_WORDS],
        **{field: run.reported.get(field, [])[:MOST_WORDS] for field in WORD_FIELDS},
    }
    return {(KINDS[field], word) for field, some in words.items() for word in some if word}


def store_findings(db: Db, trace_id: bytes, words: Mapping[str, Collection[str]]) -> None:
    """Replace the derived words of a run, by kind. For the writer."""
    row = db.execute("SELECT started_ns FROM run WHERE trace_id = ?", (trace_id,)).get
    if row is None:  # deleted in the meantime
        return
    for kind, some in words.items():
        db.execute("DELETE FROM run_word WHERE trace_id = ? AND kind = ?", (trace_id, KINDS[kind]))
        for word in sorted(some)[:MOST_WORDS]:
            db.execute("INSERT INTO run_word VALUES (?, ?, ?, ?)", (KINDS[kind], word, row, trace_id))


def underived(db: Db, version: int, limit: int) -> list[bytes]:
    """Ids of runs whose findings are missing, outdated or of another version, newest first."""
    rows: Any = db.execute(
        "SELECT trace_id FROM run WHERE NOT EXISTS (SELECT 1 FROM run_word WHERE kind = ?"
        " AND word = ? || CAST(run.arrived_ns AS TEXT) AND run_word.trace_id = run.trace_id)"
        " ORDER BY started_ns DESC LIMIT ?",
        (KINDS["derived"], f"{version}.", limit),
    )
    return [trace_id for (trace_id,) in rows]


def changed_runs(db: Db, after: int, up_to: int) -> set[bytes]:
    """Ids of runs that got spans, or whose process left facts, at these positions."""
    found = {
        trace_id
        for sql in (
            "SELECT DISTINCT trace_id FROM span WHERE position > ? AND position <= ?",
            "SELECT DISTINCT trace_id FROM fact_run JOIN instance ON instance.id = fact_run.instance"
            " WHERE position > ? AND position <= ?",
        )
        for (trace_id,) in cast("Iterable[tuple[bytes]]", db.execute(sql, (after, up_to)))
    }
    return found - {b""}


def changed_tapes(db: Db, after: int, up_to: int) -> set[bytes]:
    """Process instances that left facts at these positions."""
    rows: Any = db.execute(
        "SELECT DISTINCT instance.instance FROM fact_run"
        " JOIN instance ON instance.id = fact_run.instance"
        " WHERE position > ? AND position <= ?",
        (after, up_to),
    )
    return {instance for (instance,) in rows}
