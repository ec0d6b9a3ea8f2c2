"""A model call as a span tells it, without the form of any provider: what was asked and answered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from playhead_genai.messages import (
    Blob,
    File,
    Generic,
    InputMessage,
    OutputMessage,
    Part,
    Reasoning,
    ServerToolCall,
    ServerToolCallResponse,
    Text,
    ToolCall,
    ToolCallResponse,
    ToolDefinition,
    Uri,
    plain,
    read_input_messages,
    read_output_messages,
    read_parts,
    read_tool_definitions,
)
from playhead_genai.providers import WireResponse, derive, recognised
from playhead_genai.providers.reading import mapping, sequence
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName as Operation

CONTENT = (
    a.GEN_AI_SYSTEM_INSTRUCTIONS,
    a.GEN_AI_INPUT_MESSAGES,
    a.GEN_AI_TOOL_DEFINITIONS,
    a.GEN_AI_OUTPUT_MESSAGES,
)


KIND = "semantic"
"""Kind of the exchanges of a tape that was made from spans; the body of each is a `RebuildableCall`."""


class Asked(msgspec.Struct, frozen=True):
    """A request in the form in which requests of all conventions are compared."""

    embeds: bool
    """Whether it asks for vectors; otherwise for a message."""
    model: str
    messages: str
    """Canonical text of instructions and messages; empty: the span does not say them."""
    tools: str
    """Names of the tools, sorted; empty: none, or the span does not say them."""


class ModelAnswer(msgspec.Struct, frozen=True):
    """What the model answered."""

    messages: list[OutputMessage] = []
    finish_reasons: list[str] = []
    attributes: dict[str, Any] = {}
    """Attributes of the span about the response: id, model, tokens."""
    created_s: int = 0
    vectors: list[list[float]] = []
    error_type: str = ""
    """``error.type`` of a call that failed; empty: it succeeded."""
    error_message: str = ""
    error_status: int = 0
    """HTTP status of a call that failed; 0: the spans do not say it."""

    @property
    def model(self) -> str:
        """Model that answered, else the requested one."""
        at = self.attributes
        return str(at.get(a.GEN_AI_RESPONSE_MODEL) or at.get(a.GEN_AI_REQUEST_MODEL) or "")

    @property
    def id(self) -> str:
        """Id of the response; empty if the span does not say it."""
        return str(self.attributes.get(a.GEN_AI_RESPONSE_ID) or "")

    def count(self, name: str) -> int | None:
        """Return a count of tokens; None if the span does not say it."""
        value = self.attributes.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @property
    def is_empty(self) -> bool:
        """Whether the span says nothing that could be answered again."""
        return not (self.messages or self.vectors or self.error_type)


class _Written(msgspec.Struct):
    """A call as JSON; the fields of its answer have the same names as there."""

    asked: Asked
    messages: list[dict[str, Any]] = []
    finish_reasons: list[str] = []
    attributes: dict[str, Any] = {}
    created_s: int = 0
    vectors: list[list[float]] = []
    error_type: str = ""
    error_message: str = ""
    error_status: int = 0


class RebuildableCall(msgspec.Struct, frozen=True):
    """A call of a model: what was asked, and what was answered."""

    asked: Asked
    answer: ModelAnswer

    def encoded(self) -> bytes:
        """Return it as JSON, for `decoded`."""
        messages = [plain(one) for one in self.answer.messages]
        fields: dict[str, Any] = msgspec.structs.asdict(self.answer) | {"messages": messages}
        return msgspec.json.encode(_Written(self.asked, **fields))

    @classmethod
    def decoded(cls, data: bytes) -> RebuildableCall:
        """Return the inverse of `encoded`. ValueError if ``data`` is something else."""
        written = msgspec.json.decode(data, type=_Written)
        fields: dict[str, Any] = msgspec.structs.asdict(written)
        del fields["asked"]
        fields["messages"] = read_output_messages(written.messages)
        return cls(written.asked, ModelAnswer(**fields))


def asked_of(operation: str, model: str, attributes: Mapping[str, Any]) -> Asked:
    """Return the request that content attributes describe, JSON text or structured."""
    system = _read(read_parts, attributes.get(a.GEN_AI_SYSTEM_INSTRUCTIONS))
    messages = _read(read_input_messages, attributes.get(a.GEN_AI_INPUT_MESSAGES))
    tools = _read(read_tool_definitions, attributes.get(a.GEN_AI_TOOL_DEFINITIONS))
    return asked(operation, model, system, messages, tools)


def asked(
    operation: str,
    model: str,
    system: Sequence[Part],
    messages: Sequence[InputMessage | OutputMessage],
    tools: Sequence[ToolDefinition],
) -> Asked:
    """Return a request in comparable form.

    Conventions differ in where instructions are, in which roles answers of tools have, in whether a
    turn is one message, and in whether arguments are text. None of this counts here; nor do ids of
    calls and reasoning, which not all of them record.
    """
    turns: list[tuple[str, list[Any]]] = []
    for role, parts in [("system", system), *((one.role, one.parts) for one in messages)]:
        for part in parts:
            said = _comparable(part)
            if said is None:
                continue
            own = "tool" if isinstance(part, ToolCallResponse) else _ROLES.get(role, role)
            if turns and turns[-1][0] == own:
                turns[-1][1].append(said)
            else:
                turns.append((own, [said]))
    text = json.dumps(turns, sort_keys=True, ensure_ascii=False) if turns else ""
    names = sorted(one.name for one in tools)
    embeds = operation == Operation.EMBEDDINGS
    return Asked(embeds, model, text, ",".join(names))


_ROLES = {"developer": "system", "model": "assistant", "ai": "assistant", "human": "user"}


def _comparable(part: Part) -> Any:
    if isinstance(part, Text):
        return part.content.strip() or None
    if isinstance(part, Reasoning):
        return None
    if isinstance(part, ToolCall):
        return {"call": part.name, "arguments": _parsed(part.arguments) or None}
    if isinstance(part, ToolCallResponse):
        return {"response": _response(part.response)}
    if isinstance(part, Blob | File | Uri):
        return {"modality": part.modality}
    if isinstance(part, ServerToolCall | ServerToolCallResponse):
        return None
    if isinstance(part, Generic):
        return {"type": part.type}
    return None


def _response(value: Any) -> Any:
    """Return the result of a tool without the wrappings of providers: text blocks, ``{"result": …}``."""
    value = _parsed(value)
    blocks = sequence(value)
    texts = [text for one in blocks if isinstance(text := mapping(one).get("text"), str)]
    if texts and len(texts) == len(blocks):
        return _response("".join(texts))
    fields = mapping(value)
    if len(fields) == 1 and "result" in fields:
        return _response(fields["result"])
    return value if not isinstance(value, int | float) or isinstance(value, bool) else str(value)


def _parsed(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value) if value[:1] in ("{", "[", '"') else value.strip()
    except (ValueError, RecursionError):
        return value.strip()


def _read(read: Any, value: Any) -> list[Any]:
    try:
        return [] if value is None else read(value)
    except (ValueError, RecursionError):
        return []


def answer_of(
    attributes: Mapping[str, Any], *, created_s: int = 0, error_message: str = ""
) -> ModelAnswer:
    """Return the answer that the attributes of a span describe, in the conventions' words."""
    reasons: Any = attributes.get(a.GEN_AI_RESPONSE_FINISH_REASONS)
    messages = _read(read_output_messages, attributes.get(a.GEN_AI_OUTPUT_MESSAGES))
    said = list(map(str, cast("list[Any]", reasons))) if isinstance(reasons, list | tuple) else []
    if not said:  # older telemetry has them in the messages
        said = [one.finish_reason for one in messages if one.finish_reason]
    kept = {
        name: value
        for name, value in attributes.items()
        if name.startswith(_KEPT) and isinstance(value, str | int | float)
    }
    return ModelAnswer(
        messages,
        [_FINISH.get(one.lower(), one) for one in said],
        kept,
        created_s,
        error_type=str(attributes.get(a.ERROR_TYPE) or ""),
        error_message=error_message,
    )


_KEPT = (
    "gen_ai.response.",
    "gen_ai.usage.",
    "openai.response.",
    a.GEN_AI_REQUEST_MODEL,
)
_FINISH = {
    "tool_calls": "tool_call",
    "tool_use": "tool_call",
    "function_call": "tool_call",
    "tool-calls": "tool_call",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "content-filter": "content_filter",
    "safety": "content_filter",
}
"""Words that spans of other conventions have, of the providers' wires."""


def asked_in(key: str, body: bytes) -> tuple[str, Asked] | None:
    """Return the wire of a request and what it asks; None if it is no call of a model.

    ``key``: method and URL.
    """
    method, _, url = key.partition(" ")
    wire = recognised(method, url, body)
    if wire is None:
        return None
    derived = derive(wire, body, WireResponse(), url=url)
    return wire, asked_of(derived.operation, derived.request_model, derived.attributes)
