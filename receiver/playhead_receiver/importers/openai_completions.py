"""Stored chat completions and responses of OpenAI, as its API lists them: a run for each.

The API lists the messages of a completion separately; ``messages`` of an object are read if it has them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from playhead_genai.other_tools.values import list_in, object_in
from playhead_genai.providers import WireResponse, derive
from playhead_receiver.importers.documents import items_of, ns_of, text
from playhead_receiver.importers.spans import CLIENT, Converted
from playhead_semconv import attributes as a

_WIRES = {"chat.completion": "openai.chat", "response": "openai.responses"}
_JSON = (("content-type", "application/json"),)


def is_openai(item: dict[str, Any]) -> bool:
    """Whether an object is a completion or a response."""
    return text(item, "object") in _WIRES and "id" in item


def convert(document: Any, found: Converted) -> None:
    """Add the completions of a document to ``found``."""
    for item in items_of(document):
        if not is_openai(item):
            found.not_understood("objects that are neither completions nor responses")
            continue
        names = ("model", "tools", "temperature", "top_p", "input", "instructions")
        asked = {name: item[name] for name in names if item.get(name) is not None}
        asked["messages"] = list_in(item, "messages") or list_in(item, "input_messages")
        wire = _WIRES[item["object"]]
        response = WireResponse(200, _JSON, [msgspec.json.encode(item)], True)
        derived = derive(wire, msgspec.json.encode(asked), response)
        started = ns_of(item.get("created", item.get("created_at")))
        metadata = object_in(item, "metadata")
        failed = bool(derived.error_type)
        found.span(
            trace=f"openai {text(item, 'id')}",
            id=text(item, "id"),
            name=f"{derived.operation} {text(item, 'model')}",
            started_ns=started,
            ended_ns=ns_of(item.get("completed_at")) or started,
            attributes={
                a.GEN_AI_REQUEST_MODEL: text(item, "model"),
                a.GEN_AI_PROVIDER_NAME: derived.provider or "openai",
                a.ERROR_TYPE: derived.error_type,
                **derived.attributes,
                **{f"metadata.{name}": value for name, value in metadata.items()},
            },
            kind=CLIENT,
            error=derived.error_message if failed else None,
            service="openai",
        )
