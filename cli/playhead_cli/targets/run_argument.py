"""RUN on the command line: a run, and the store or file that contains it."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from playhead_cli.session.session import Session
from playhead_core.errors import RunUnknown, StoreBusy
from playhead_receiver.storage import open_store
from playhead_receiver.storage.api.search import Search
from playhead_receiver.storage.api.store import needed
from playhead_replay import Run, read_tape_file

if TYPE_CHECKING:
    from playhead_receiver.storage.api.store import Store


LATEST = "last"
SUFFIX = ".tape"
"""Suffix of tape files, as in `playhead_replay.tape_files.tape_file`, which is slow to import."""
_TRACE_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
_SHORT_TRACE_ID = re.compile(r"/traces?/([0-9a-f]{16,31})(?![0-9a-f])")
"""A trace id in a path of Jaeger or Tempo, which may leave out zeros at its beginning."""
_SPAN_ID_IN_URL = re.compile(r"(?:uifind|span_?id)\W{1,4}([0-9a-f]{16})(?![0-9a-f])")
"""A span in a query: Jaeger's ``uiFind=ID``, Grafana's ``"spanId":"ID"``."""
_SPAN_ID = re.compile(r"[0-9a-f]{16}\Z", re.IGNORECASE)
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}\Z", re.IGNORECASE)
"""As in W3C's header ``traceparent``: version, trace id, span id, flags."""


@dataclass(frozen=True, slots=True)
class Target:
    """RUN[:POINT], split into its parts."""

    run: str
    point: str = ""

    @property
    def is_file(self) -> bool:
        """Whether the run is a tape file."""
        return self.run.endswith(SUFFIX)


def parse_target(text: str | None, at: str | None = None) -> Target:
    """Split RUN[:POINT]; ``at`` is POINT given as an option, which takes precedence.

    A span id is both: the run that has the span, and the point. So are a W3C ``traceparent`` and a URL
    of Jaeger or Grafana that names a trace and perhaps a span.

    >>> parse_target("refund-7:3")
    Target(run='refund-7', point='3')
    >>> parse_target(None)
    Target(run='last', point='')
    >>> parse_target("goldens/refund.tape:error").run
    'goldens/refund.tape'
    >>> parse_target("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").point
    '00f067aa0ba902b7'
    """
    text = text or LATEST
    if "://" in text:
        return _of_url(text, at)
    if found := _TRACEPARENT.match(text):
        return Target(found[1].lower(), at or found[2].lower())
    if _SPAN_ID.match(text):
        return Target(text.lower(), at or text.lower())
    if text.endswith(SUFFIX) or Path(text).is_file():
        return Target(text, at or "")
    run, colon, point = text.rpartition(":")
    if not colon:
        return Target(text, at or "")
    return Target(run or LATEST, at or point)


def _of_url(url: str, at: str | None) -> Target:
    text = unquote(unquote(url)).lower()  # Grafana puts JSON into a query, often encoded twice
    found = _TRACE_ID.search(text)
    short = None if found else _SHORT_TRACE_ID.search(text)
    if found is None and short is None:
        raise RunUnknown(f"no trace id in {url}", hint="playhead ls")
    trace_id = found[0] if found else short[1].zfill(32) if short else ""
    span = _SPAN_ID_IN_URL.search(text)
    return Target(trace_id, at or (span[1] if span else ""))


@contextmanager
def reading(session: Session) -> Generator[Store]:
    """The store of the data folder, opened for reading.

    `RunUnknown` if nothing has been recorded yet.
    """
    if session.has_no_store:
        raise RunUnknown(f"nothing is recorded in {session.data_dir}", hint="playhead record SCRIPT")
    store = open_store(session.store, read_only=True)
    try:
        yield store
    finally:
        store.close()


def origin_name(store: Store, origin: str) -> str:
    """``refund-7``, ``refund-7:3``: the origin of a run by name; by id if the origin is not stored."""
    run_id, colon, step = origin.partition(":")
    trace_id = run_id.partition("-")[0]
    try:
        name = store.resolve(trace_id).name
    except RunUnknown:
        name = trace_id[:8]
    return f"{name}{colon}{step}"


@contextmanager
def opened_run(session: Session, target: Target) -> Generator[Run]:
    """The run of a target, from the store or from a tape file."""
    with opened_with_store(session, target) as (run, _):
        yield run


@contextmanager
def opened_with_store(session: Session, target: Target) -> Generator[tuple[Run, Store | None]]:
    """The run of a target, and its store; None for a tape file."""
    if target.is_file or Path(target.run).is_file():
        path = Path(target.run)
        found = read_tape_file(path)
        name = path.name.partition(SUFFIX)[0]
        yield Run.of_tapes(found.tapes, found.spans, name, found.logs), None
        return
    with reading(session) as store:
        yield Run.load(store, target.run), store


def searchable(session: Session) -> Search:
    """Return the store; its index is completed first if no receiver writes to it.

    `RunUnknown` if there is none.
    """
    if session.has_no_store:
        raise RunUnknown(f"nothing is recorded in {session.data_dir}", hint="playhead record SCRIPT")
    from playhead_receiver.storage.content.references import References

    references = References.named(session.settings.references)
    try:
        store = needed(open_store(session.store, references=references), Search)
    except StoreBusy:  # the receiver maintains the index
        return needed(open_store(session.store, read_only=True, references=references), Search)
    while store.index():
        if left := store.lag().bundles:
            session.progress(f"{left} groups of spans to go")
    return store
