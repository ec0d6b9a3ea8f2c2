"""Exports of Langfuse: traces with their observations, or observations, as its API returns them.

Names of attributes are those of Langfuse's own OTLP where the GenAI conventions have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from playhead_genai.other_tools.conversations import call_attributes, tool_attributes
from playhead_genai.other_tools.values import decoded, json_text, list_in, object_in, objects_in
from playhead_genai.usage_details import USAGE_DETAILS, counts_of
from playhead_receiver.importers.documents import items_of, ns_of, text
from playhead_receiver.importers.spans import CLIENT, INTERNAL, Converted
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName as Operation

_CALLS = {"GENERATION": Operation.CHAT, "EMBEDDING": Operation.EMBEDDINGS}
_OTHERS = {"AGENT": Operation.INVOKE_AGENT, "RETRIEVER": Operation.RETRIEVAL}
_OF_TRACE = ("timestamp", "projectId", "bookmarked", "htmlPath", "sessionId", "observations")


def is_langfuse(item: dict[str, Any]) -> bool:
    """Whether an object is a trace or an observation of Langfuse."""
    if isinstance(item.get("trace"), dict) and isinstance(item.get("observations"), list):
        return True
    if "id" not in item:
        return False
    is_observation = "traceId" in item and "startTime" in item and "type" in item
    return is_observation or ("timestamp" in item and sum(name in item for name in _OF_TRACE) > 1)


def convert(document: Any, found: Converted) -> None:
    """Add the traces and observations of a document to ``found``."""
    loose: dict[str, list[dict[str, Any]]] = {}
    for item in items_of(document):
        trace = object_in(item, "trace") or item
        if "traceId" in item and "startTime" in item:
            loose.setdefault(text(item, "traceId"), []).append(item)
        elif is_langfuse(item):
            holder = item if "observations" in item else trace
            observations = objects_in(holder, "observations")
            for _ in range(len(list_in(holder, "observations")) - len(observations)):
                found.not_understood("observations of which the file has only the id")
            _trace(trace, observations, found)
        else:
            found.not_understood("objects that are neither traces nor observations")
    for id, observations in loose.items():
        first = observations[0]
        _trace({"id": id, "name": first.get("traceName"), **_shared(first)}, observations, found)


def _shared(observation: dict[str, Any]) -> dict[str, Any]:
    names = ("sessionId", "userId", "environment", "release", "tags")
    return {name: observation[name] for name in names if observation.get(name) is not None}


def _trace(trace: dict[str, Any], observations: Sequence[dict[str, Any]], found: Converted) -> None:
    """Add a trace: a span for each observation, below one of its own unless one has no parent."""
    ids = {text(one, "id") for one in observations}
    roots = [one for one in observations if text(one, "parentObservationId") not in ids]
    id = text(trace, "id")
    service = text(trace, "name") or (text(roots[0], "name") if roots else "") or "langfuse"
    about = {
        "langfuse.trace.name": trace.get("name"),
        "langfuse.session.id": trace.get("sessionId"),
        "langfuse.user.id": trace.get("userId"),
        "langfuse.trace.tags": list_in(trace, "tags") or None,
        "langfuse.release": trace.get("release"),
        "langfuse.environment": trace.get("environment"),
        "langfuse.trace.input": trace.get("input"),
        "langfuse.trace.output": trace.get("output"),
        a.GEN_AI_CONVERSATION_ID: trace.get("sessionId"),
    }
    about |= _metadata("langfuse.trace.metadata", trace.get("metadata"))
    if len(roots) != 1:
        starts = [ns_of(one.get("startTime")) for one in observations]
        ends = [ns_of(one.get("endTime")) for one in observations]
        started = min([one for one in starts if one], default=ns_of(trace.get("timestamp")))
        found.span(
            trace=id,
            id=f"trace {id}",
            name=service,
            started_ns=started,
            ended_ns=max([*starts, *ends], default=0),
            attributes=about,
            service=service,
        )
    for one in observations:
        own = about if len(roots) == 1 and one is roots[0] else {}
        parent = text(one, "parentObservationId") if one not in roots else f"trace {id}"
        _observation(one, id, "" if own else parent, own, service, found)


def _observation(
    one: dict[str, Any], trace: str, parent: str, about: dict[str, Any], service: str, found: Converted
) -> None:
    kind, name = text(one, "type").upper(), text(one, "name")
    failed = text(one, "level").upper() == "ERROR"
    attributes = {
        **about,
        "langfuse.observation.type": kind.lower(),
        "langfuse.observation.level": one.get("level"),
        "langfuse.observation.prompt.name": one.get("promptName"),
        "langfuse.observation.prompt.version": one.get("promptVersion"),
        "langfuse.observation.version": one.get("version"),
    }
    sent, received = decoded(one.get("input")), decoded(one.get("output"))
    operation = _CALLS.get(kind, "")
    if operation:
        attributes |= call_attributes(sent, received, operation=operation) | _call(one)
    elif kind == "TOOL":
        attributes |= tool_attributes(name, sent, received)
    else:
        attributes |= {"langfuse.observation.input": sent, "langfuse.observation.output": received}
        if kind in _OTHERS:
            attributes[a.GEN_AI_OPERATION_NAME] = _OTHERS[kind]
    attributes |= _metadata("langfuse.observation.metadata", one.get("metadata"))
    started = ns_of(one.get("startTime"))
    found.span(
        trace=text(one, "traceId") or trace,
        id=text(one, "id"),
        parent=parent,
        name=name or kind.lower(),
        started_ns=started,
        ended_ns=ns_of(one.get("endTime")) or started,
        attributes=attributes,
        kind=CLIENT if operation else INTERNAL,
        error=text(one, "statusMessage") if failed else None,
        service=service,
    )


def _call(one: dict[str, Any]) -> dict[str, Any]:
    usage = object_in(one, "usageDetails") or object_in(one, "usage")
    usage = {name: count for name, count in usage.items() if name != "unit" and count}
    parameters = object_in(one, "modelParameters")
    return {
        a.GEN_AI_REQUEST_MODEL: one.get("model"),
        a.GEN_AI_REQUEST_TEMPERATURE: _number(parameters.get("temperature")),
        a.GEN_AI_REQUEST_MAX_TOKENS: _number(parameters.get("max_tokens")),
        USAGE_DETAILS: json_text(usage) if usage else None,
        **counts_of(json_text(usage)),
    }


def _number(value: Any) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _metadata(prefix: str, value: Any) -> dict[str, Any]:
    value = decoded(value)
    if isinstance(value, dict):
        return {f"{prefix}.{name}": one for name, one in cast("dict[str, Any]", value).items()}
    return {prefix: value}
