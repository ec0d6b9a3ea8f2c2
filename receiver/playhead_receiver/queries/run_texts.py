"""What was asked of a run and what came of it: its input and its result, as lists show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from playhead_core.errors import PlayheadError
from playhead_core.otlp import attributes_of
from playhead_genai.readable_text import arguments_of, last_question, text_of, text_of_messages
from playhead_receiver.storage import RunSummary, Store
from playhead_receiver.storage.content.references import References
from playhead_receiver.storage.spans.whole_spans import Deriver, span_of
from playhead_replay.run.messages import read_messages
from playhead_semconv import attributes as a

MOST_CHARS = 500
"""Most characters of a text; longer ones are cut."""

_INPUTS = ("langfuse.trace.input", "input.value", "traceloop.entity.input", "langfuse.observation.input")
_RESULTS = (
    *("langfuse.trace.output", "output.value", "traceloop.entity.output"),
    "langfuse.observation.output",
)


class RunTexts(NamedTuple):
    """Both are empty if nothing is recorded."""

    input: str
    """The user message of the first call of a model, else the first request."""
    result: str
    """The last response of a model, else of a tool or a service."""


def texts_of_runs(
    store: Store, runs: Iterable[RunSummary], references: References | None = None
) -> Iterator[RunTexts]:
    """The input and the result of each run. Reads only its root, its first and its last step."""
    deriver = Deriver(store)
    for run in runs:
        try:
            yield _texts_of(store, deriver, run, references or References())
        except PlayheadError:  # damaged; `verify` reports it
            yield RunTexts("", "")


def _texts_of(store: Store, deriver: Deriver, run: RunSummary, references: References) -> RunTexts:
    ids = [bytes.fromhex(one) for one in (run.root_span_id, run.first_step, run.last_step)]
    spans: dict[bytes, Mapping[str, Any]] = {}
    for stored in store.spans(bytes.fromhex(run.trace_id), {one for one in ids if one}):
        at = attributes_of(span_of(deriver.whole(stored)).attributes)
        spans[stored.span_id] = at | references.resolved(at)[0]
    root, first, last = (spans.get(one, {}) for one in ids)
    # A root that is a step itself says nothing about the steps after it.
    frame: Mapping[str, Any] = {} if ids[0] == ids[1] else root
    return RunTexts(
        _first(
            (
                _question(frame),
                _question(first),
                *_named(frame, _INPUTS),
                *_named(first, _INPUTS),
                _request(first or root),
            )
        ),
        _first(
            (
                _answer(frame),
                _answer(last),
                *_named(frame, _RESULTS),
                *_named(last, _RESULTS),
                _response(last or root),
            )
        ),
    )


def _first(texts: Iterable[str]) -> str:
    text = next((one for one in map(str.strip, texts) if one), "")
    return text if len(text) <= MOST_CHARS else f"{text[: MOST_CHARS - 1]}…"


def _question(at: Mapping[str, Any]) -> str:
    return last_question(read_messages(at).input)


def _answer(at: Mapping[str, Any]) -> str:
    return text_of_messages(read_messages(at).output)


def _named(at: Mapping[str, Any], names: Iterable[str]) -> Iterator[str]:
    return (text_of(at[name]) for name in names if name in at)


def _request(at: Mapping[str, Any]) -> str:
    """The arguments of a tool, or method and address of a request."""
    if a.GEN_AI_TOOL_CALL_ARGUMENTS in at:
        return arguments_of(at[a.GEN_AI_TOOL_CALL_ARGUMENTS])
    method, url = at.get(a.HTTP_REQUEST_METHOD), at.get(a.URL_FULL) or at.get(a.URL_PATH)
    return f"{method} {url}" if method and url else ""


def _response(at: Mapping[str, Any]) -> str:
    """The result of a tool, or the status of a response."""
    return text_of(at.get(a.GEN_AI_TOOL_CALL_RESULT) or at.get(a.HTTP_RESPONSE_STATUS_CODE) or "")
