"""Traces of MLflow in the form of ``Trace.to_json`` and of its artifacts (spans of version 2 and 3)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, cast

from playhead_genai.other_tools.conversations import call_attributes, tool_attributes
from playhead_genai.other_tools.values import decoded, object_in, objects_in
from playhead_receiver.importers.documents import items_of, ns_of, text
from playhead_receiver.importers.spans import CLIENT, INTERNAL, Converted, ImportedEvent
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName as Operation

_CALLS = {"CHAT_MODEL": Operation.CHAT, "LLM": Operation.CHAT, "EMBEDDING": Operation.EMBEDDINGS}
_OTHERS = {"AGENT": Operation.INVOKE_AGENT, "RETRIEVER": Operation.RETRIEVAL}
_INPUTS, _OUTPUTS = "mlflow.spanInputs", "mlflow.spanOutputs"


def is_mlflow(item: dict[str, Any]) -> bool:
    """Whether an object is a trace of MLflow."""
    spans = objects_in(object_in(item, "data") or item, "spans")
    return bool(spans) and ("info" in item or _INPUTS in object_in(spans[0], "attributes"))


def convert(document: Any, found: Converted) -> None:
    """Add the traces of a document to ``found``."""
    for item in items_of(document, "traces"):
        spans = objects_in(object_in(item, "data") or item, "spans")
        if not spans:
            found.not_understood("traces without spans")
        for span in spans:
            _span(span, object_in(item, "info"), found)


def _span(span: dict[str, Any], info: dict[str, Any], found: Converted) -> None:
    around = object_in(span, "context")  # version 2
    raw = {name: decoded(value) for name, value in object_in(span, "attributes").items()}
    kind = text(raw, "mlflow.spanType")
    name, parent = text(span, "name"), _id(text(span, "parent_span_id", "parent_id"))
    sent, received = raw.pop(_INPUTS, None), raw.pop(_OUTPUTS, None)
    operation = _CALLS.get(kind, "")
    if operation:
        tools = raw.pop("mlflow.chat.tools", None)
        raw |= call_attributes(sent, received, operation=operation, tools=tools)
        raw |= _call(raw, sent)
    elif kind == "TOOL":
        raw |= tool_attributes(name, sent, received)
    else:
        raw |= {"input.value": sent, "output.value": received}
        if kind in _OTHERS:
            raw[a.GEN_AI_OPERATION_NAME] = _OTHERS[kind]
    about = object_in(info, "trace_metadata") or object_in(info, "request_metadata")
    if not parent:
        raw |= {
            a.GEN_AI_CONVERSATION_ID: about.get("mlflow.trace.session"),
            "user.id": about.get("mlflow.trace.user"),
        }
    events = [
        ImportedEvent(
            text(one, "name"),
            ns_of(one.get("time_unix_nano", one.get("timestamp"))),
            object_in(one, "attributes"),
        )
        for one in objects_in(span, "events")
    ]
    status = object_in(span, "status") or {"code": span.get("status_code"), "message": ""}
    failed = "ERROR" in text(status, "code").upper()
    tags = object_in(info, "tags")
    started = ns_of(span.get("start_time_unix_nano", span.get("start_time")))
    found.span(
        trace=_id(text({**info, **around, **span}, "trace_id", "request_id")),
        id=_id(text(span, "span_id") or text(around, "span_id")),
        parent=parent,
        name=name,
        started_ns=started,
        ended_ns=ns_of(span.get("end_time_unix_nano", span.get("end_time"))) or started,
        attributes=raw,
        kind=CLIENT if operation else INTERNAL,
        error=(text(status, "message") or text(span, "status_message")) if failed else None,
        events=events,
        service=text(tags, "mlflow.traceName") or "mlflow",
    )


def _call(raw: Mapping[str, Any], sent: Any) -> dict[str, Any]:
    usage = object_in(dict(raw), "mlflow.chat.tokenUsage")
    asked = cast("dict[str, Any]", sent) if isinstance(sent, dict) else {}
    return {
        a.GEN_AI_REQUEST_MODEL: raw.get("mlflow.llm.model") or text(asked, "model"),
        a.GEN_AI_PROVIDER_NAME: raw.get("mlflow.llm.provider"),
        a.GEN_AI_USAGE_INPUT_TOKENS: usage.get("input_tokens"),
        a.GEN_AI_USAGE_OUTPUT_TOKENS: usage.get("output_tokens"),
        a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: usage.get("cache_read_input_tokens"),
        a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: usage.get("cache_creation_input_tokens"),
    }


def _id(id: str) -> str:
    """An id in hexadecimal; version 3 writes base64, version 2 writes ``0x…`` and ``tr-…``.

    >>> _id("AAAAAAAAAAE="), _id("0x00ab"), _id("tr-00ab")
    ('0000000000000001', '00ab', '00ab')
    """
    if len(id) in (12, 24) and id.endswith("="):
        try:
            return base64.b64decode(id, validate=True).hex()
        except binascii.Error:
            return id
    return id.removeprefix("0x").removeprefix("tr-")
