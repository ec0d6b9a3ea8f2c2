"""Input and result of runs and of spans, as lists and rows show them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

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

MOST_ROW_CHARS = 160
"""Most characters of the text in a row of a run."""

_AGENTS = frozenset(("invoke_agent", "create_agent", "invoke_workflow"))
_RETRIEVALS = frozenset(("embeddings", "retrieval"))
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


class SpanText(NamedTuple):
    """What a row shows of a span besides its name."""

    kind: str
    """model, tool, agent, retrieval, http; empty for other spans."""
    label: str
    """Name of a tool, or method and path of a request; empty for other spans."""
    text: str
    """Answer of a model, arguments and result of a tool."""


def texts_of_spans(
    store: Store, trace_id: bytes, ids: Collection[bytes], references: References | None = None
) -> dict[bytes, SpanText]:
    """What rows show of some spans. Pending and unreadable spans are left out."""
    deriver, found = Deriver(store), dict[bytes, SpanText]()
    for stored in store.spans(trace_id, ids):
        try:
            at = attributes_of(span_of(deriver.whole(stored)).attributes)
            found[stored.span_id] = _text_of(at | (references or References()).resolved(at)[0])
        except PlayheadError:  # damaged; `verify` reports it
            continue
    return found


def _text_of(at: Mapping[str, Any]) -> SpanText:
    operation, tool = at.get(a.GEN_AI_OPERATION_NAME), at.get(a.GEN_AI_TOOL_NAME)
    if operation in _AGENTS:
        return SpanText("agent", "", _line(_answer(at)))
    if operation == "execute_tool" or (tool and not operation):
        pair = (_request(at), _response(at))
        return SpanText("tool", _line(text_of(tool or "")), " → ".join(filter(None, map(_line, pair))))
    if operation in _RETRIEVALS:
        return SpanText("retrieval", "", _line(_question(at)))
    if operation:
        return SpanText("model", "", _line(_answer(at)))
    if at.get(a.HTTP_REQUEST_METHOD):
        method, _, url = _request(at).partition(" ")
        parts = urlsplit(url) if url.isprintable() else urlsplit("")
        status = text_of(at.get(a.HTTP_RESPONSE_STATUS_CODE) or "")
        label = f"{method} {parts.path or '/'}" if url else ""
        return SpanText("http", _line(label), f"{parts.netloc} {status}".strip())
    return SpanText("", "", "")


def _line(text: str) -> str:
    """A text in one line, cut to what a row can show."""
    line = " ".join(text[: 2 * MOST_ROW_CHARS].split())
    return line if len(line) <= MOST_ROW_CHARS else f"{line[: MOST_ROW_CHARS - 1]}…"


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
