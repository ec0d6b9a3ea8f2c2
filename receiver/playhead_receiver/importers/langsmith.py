"""Exports of LangSmith: runs as its SDK and its bulk export write them, a list or a run a line."""

from __future__ import annotations

from typing import Any, cast

from playhead_genai.other_tools.conversations import call_attributes, tool_attributes
from playhead_genai.other_tools.values import list_in, object_in, objects_in
from playhead_receiver.importers.documents import items_of, ns_of, text
from playhead_receiver.importers.spans import CLIENT, INTERNAL, Converted
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName as Operation

_CALLS = {"llm": Operation.CHAT, "embedding": Operation.EMBEDDINGS}


def is_langsmith(item: dict[str, Any]) -> bool:
    """Whether an object is a run of LangSmith."""
    return "run_type" in item and "start_time" in item and "id" in item


def convert(document: Any, found: Converted) -> None:
    """Add the runs of a document, and their child runs, to ``found``."""
    runs: dict[str, dict[str, Any]] = {}
    waiting = list(reversed(items_of(document, "runs")))
    while waiting:
        run = waiting.pop()
        if not is_langsmith(run):
            found.not_understood("objects that are no runs")
            continue
        runs.setdefault(text(run, "id"), run)
        waiting += reversed(objects_in(run, "child_runs"))
    for run in runs.values():
        _run(run, runs, found)


def _run(run: dict[str, Any], runs: dict[str, dict[str, Any]], found: Converted) -> None:
    id, kind = text(run, "id"), text(run, "run_type")
    trace = text(run, "trace_id") or _dotted(run) or id
    service = text(runs.get(trace, run), "name") or "langsmith"
    extra = object_in(run, "extra")
    metadata = object_in(extra, "metadata")
    sent, received = object_in(run, "inputs"), object_in(run, "outputs")
    attributes: dict[str, Any] = {
        "langsmith.span.kind": kind,
        "langsmith.span.tags": list_in(run, "tags") or None,
        **{f"langsmith.metadata.{name}": value for name, value in metadata.items()},
    }
    asked = {**object_in(extra, "invocation_params"), **sent}
    operation = _CALLS.get(kind, "")
    if operation:
        tools = object_in(extra, "invocation_params").get("tools")
        attributes |= call_attributes(sent, received or None, operation=operation, tools=tools)
        attributes |= _call(run, asked, metadata, received)
    elif kind == "tool":
        attributes |= tool_attributes(text(run, "name"), _bare(sent), _bare(received))
    else:
        attributes |= {"input.value": sent or None, "output.value": received or None}
        if kind == "retriever":
            attributes[a.GEN_AI_OPERATION_NAME] = Operation.RETRIEVAL
    started = ns_of(run.get("start_time"))
    found.span(
        trace=trace,
        id=id,
        parent=text(run, "parent_run_id"),
        name=text(run, "name"),
        started_ns=started,
        ended_ns=ns_of(run.get("end_time")) or started,
        attributes=attributes,
        kind=CLIENT if operation else INTERNAL,
        error=text(run, "error") or None,
        service=service,
    )


def _dotted(run: dict[str, Any]) -> str:
    """The id of the trace in a dotted order: ``20230914T223155647Z<uuid>.…``."""
    return text(run, "dotted_order").partition(".")[0].partition("Z")[2]


def _bare(value: dict[str, Any]) -> Any:
    """The value of a tool's input or output without the object around it."""
    names = ("input", "output")
    return next((value[one] for one in names if set(value) == {one}), value or None)


def _call(
    run: dict[str, Any], asked: dict[str, Any], metadata: dict[str, Any], received: dict[str, Any]
) -> dict[str, Any]:
    usage = object_in(received, "usage_metadata") or _usage(received) or object_in(received, "usage")
    model = text(metadata, "ls_model_name") or text(asked, "model", "model_name")
    counts = (
        usage.get("input_tokens", usage.get("prompt_tokens", run.get("prompt_tokens"))),
        usage.get("output_tokens", usage.get("completion_tokens", run.get("completion_tokens"))),
    )
    details = object_in(usage, "input_token_details") or object_in(run, "prompt_token_details")
    return {
        a.GEN_AI_REQUEST_MODEL: model,
        a.GEN_AI_RESPONSE_MODEL: text(received, "model"),
        a.GEN_AI_RESPONSE_ID: text(received, "id"),
        a.GEN_AI_PROVIDER_NAME: text(metadata, "ls_provider"),
        a.GEN_AI_CONVERSATION_ID: text(metadata, "session_id", "thread_id", "conversation_id"),
        a.GEN_AI_USAGE_INPUT_TOKENS: _count(counts[0]),
        a.GEN_AI_USAGE_OUTPUT_TOKENS: _count(counts[1]),
        a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: _count(details.get("cache_read")),
    }


def _usage(received: dict[str, Any]) -> dict[str, Any]:
    """Counts of tokens where LangChain has them: in ``llm_output``, or in the message."""
    told = object_in(object_in(received, "llm_output"), "token_usage")
    value: Any = list_in(received, "generations")
    while isinstance(value, list) and value:
        value = cast("list[Any]", value)[0]
    if told or not isinstance(value, dict):
        return told
    message = object_in(cast("dict[str, Any]", value), "message")
    return object_in(object_in(message, "kwargs") or message, "usage_metadata")


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
