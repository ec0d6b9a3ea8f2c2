"""Translates spans of OpenInference, OpenLLMetry, Langfuse, LangSmith and the Vercel AI SDK.

They become spans of the GenAI conventions. The original attributes stay unchanged; the translation is
for readers. Of a span that names an operation of the conventions only two things are translated. Many
writers of such spans have names of their own for cached tokens, without which a call seems to cost
several times as much; and some have the messages as they were given to the SDK.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from playhead_genai.other_tools.span_content import HOLDERS, content_in
from playhead_genai.usage_details import USAGE_DETAILS, counts_of
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName as Operation

T = TypeVar("T")

_OPERATIONS: dict[str, dict[str, str]] = {
    "openinference.span.kind": {
        "LLM": Operation.CHAT,
        "EMBEDDING": Operation.EMBEDDINGS,
        "RETRIEVER": Operation.RETRIEVAL,
        "TOOL": Operation.EXECUTE_TOOL,
        "AGENT": Operation.INVOKE_AGENT,
    },
    "llm.request.type": {
        "chat": Operation.CHAT,
        "completion": Operation.TEXT_COMPLETION,
        "embedding": Operation.EMBEDDINGS,
    },
    "traceloop.span.kind": {
        "tool": Operation.EXECUTE_TOOL,
        "agent": Operation.INVOKE_AGENT,
        "workflow": Operation.INVOKE_WORKFLOW,
    },
    "langfuse.observation.type": {
        "generation": Operation.CHAT,
        "embedding": Operation.EMBEDDINGS,
        "retriever": Operation.RETRIEVAL,
        "tool": Operation.EXECUTE_TOOL,
        "agent": Operation.INVOKE_AGENT,
    },
    "ai.operationId": {
        **{f"ai.{kind}.doGenerate": Operation.CHAT for kind in ("generateText", "generateObject")},
        **{f"ai.{kind}.doStream": Operation.CHAT for kind in ("streamText", "streamObject")},
        "ai.toolCall": Operation.EXECUTE_TOOL,
    },
}
"""Attributes that identify a dialect: their values → the operation in the conventions."""

SESSIONS: Final = (
    "session.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
    *(f"langsmith.metadata.{name}" for name in ("session_id", "thread_id", "conversation_id")),
)
"""Attributes with the id of a session, which is a conversation. Also used beside our conventions."""

_NAMES: dict[str, tuple[str, ...]] = {
    a.GEN_AI_REQUEST_MODEL: (
        "llm.model_name",
        "embedding.model_name",
        "langfuse.observation.model.name",
        "ai.model.id",
    ),
    a.GEN_AI_PROVIDER_NAME: ("llm.provider", "llm.system"),
    a.GEN_AI_TOOL_NAME: ("tool.name", "ai.toolCall.name"),
    a.GEN_AI_AGENT_NAME: ("agent.name", a.GEN_AI_WORKFLOW_NAME),
    a.GEN_AI_CONVERSATION_ID: SESSIONS,
    a.GEN_AI_USAGE_INPUT_TOKENS: (
        "llm.token_count.prompt",
        "gen_ai.usage.prompt_tokens",
        "ai.usage.inputTokens",
        "ai.usage.promptTokens",
    ),
    a.GEN_AI_USAGE_OUTPUT_TOKENS: (
        "llm.token_count.completion",
        "gen_ai.usage.completion_tokens",
        "ai.usage.outputTokens",
        "ai.usage.completionTokens",
    ),
    a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: (
        "llm.token_count.prompt_details.cache_read",
        "gen_ai.usage.cache_read_input_tokens",  # OpenLLMetry
        "gen_ai.usage.details.cache_read_tokens",  # pydantic-ai, logfire
        "gen_ai.usage.details.cache_read_input_tokens",
        "gen_ai.usage.details.cached_tokens",
        "gen_ai.usage.cache_read_tokens",
        "gen_ai.usage.cached_input_tokens",
        "gen_ai.usage.cached_tokens",
        "gen_ai.usage.input_tokens.cached",  # Sentry
        "gen_ai.usage.input_tokens_details.cached_tokens",
        "gen_ai.usage.prompt_tokens_details.cached_tokens",
        "ai.usage.inputTokenDetails.cacheReadTokens",  # Vercel
        "ai.usage.cachedInputTokens",
    ),
    a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: (
        "llm.token_count.prompt_details.cache_write",
        "gen_ai.usage.cache_creation_input_tokens",
        "gen_ai.usage.details.cache_write_tokens",
        "gen_ai.usage.details.cache_creation_input_tokens",
        "gen_ai.usage.cache_write_input_tokens",
        "gen_ai.usage.cache_write_tokens",
        "gen_ai.usage.cache_creation_tokens",
        "gen_ai.usage.input_tokens.cache_write",
        "ai.usage.inputTokenDetails.cacheWriteTokens",
    ),
    a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: (
        "llm.token_count.completion_details.reasoning",
        "gen_ai.usage.reasoning_tokens",
        "gen_ai.usage.details.reasoning_tokens",
        "gen_ai.usage.output_tokens.reasoning",
        "ai.usage.outputTokenDetails.reasoningTokens",
        "ai.usage.reasoningTokens",
    ),
}
"""Attribute name in the conventions → names in the dialects."""

_ENTITY = "traceloop.entity.name"
_ENTITIES = {
    Operation.EXECUTE_TOOL: a.GEN_AI_TOOL_NAME,
    Operation.INVOKE_AGENT: a.GEN_AI_AGENT_NAME,
}
"""Operation → attribute that an OpenLLMetry entity name becomes."""

_MESSAGES = (a.GEN_AI_INPUT_MESSAGES, a.GEN_AI_OUTPUT_MESSAGES)
"""Attributes that dialects spread over many attributes."""
_SAID = re.compile(
    r"(?:llm\.(input|output)_messages|gen_ai\.(prompt|completion))\.(\d{1,6})\.(?:message\.)?(.+)"
)
_PART = re.compile(r"contents\.(\d{1,6})\.message_content\.text")
_CALL = re.compile(r"tool_calls\.(\d{1,6})\.(?:tool_call\.)?(?:function\.)?(id|name|arguments)")


def in_our_words(
    at: Mapping[str, T], text: Callable[[T], str], make: Callable[[str | int], T]
) -> dict[str, T]:
    """Return those attributes of a span that the conventions call otherwise, under their names.

    Empty for a span of no dialect. ``text``: returns a value's text, empty if it is not text;
    ``make``: makes a value from text or a count.
    """
    for name, operations in _OPERATIONS.items():
        value = at.get(name)
        if value is not None:
            return _details(at, text, make) | _translated(at, operations.get(text(value), ""), make)
    return {}


def counts_in_our_words(
    at: Mapping[str, T], text: Callable[[T], str], make: Callable[[str | int], T]
) -> dict[str, T]:
    """As `in_our_words` for counts of tokens; only those that ``at`` lacks."""
    if _OTHER_COUNTS.isdisjoint(at):  # as of most spans
        return {}
    found = {name: count for name, count in _details(at, text, make).items() if name not in at}
    for ours, theirs in _COUNTS.items():
        if not any(name in at for name in (ours, *_SAME.get(ours, ()))):
            value = next((at[name] for name in theirs if name in at), None)
            if value is not None:
                found[ours] = value
    return found


def _details(
    at: Mapping[str, T], text: Callable[[T], str], make: Callable[[str | int], T]
) -> dict[str, T]:
    value = at.get(USAGE_DETAILS)
    return {} if value is None else {name: make(count) for name, count in counts_of(text(value)).items()}


_COUNTS = {ours: theirs for ours, theirs in _NAMES.items() if ours.startswith("gen_ai.usage.")}
_OTHER_COUNTS = frozenset((USAGE_DETAILS, *(name for theirs in _COUNTS.values() for name in theirs)))
_FOREIGN = frozenset((*_OTHER_COUNTS, *_OPERATIONS, *HOLDERS, a.GEN_AI_WORKFLOW_NAME))
"""Attributes without which nothing is translated."""
_SAME = {a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: (a.GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS,)}
"""Names of the conventions that say the same."""


def elsewhere(name: str, text: str | None = None) -> Iterator[tuple[str, str | None]]:
    """Yield names and values under which spans of dialects may have what the conventions call ``name``.

    ``text``: its value in the conventions; None: any value. A yielded value of None matches any value.
    """
    if name == a.GEN_AI_OPERATION_NAME:
        for mark, operations in _OPERATIONS.items():
            if text is None:
                yield mark, None
            else:
                yield from ((mark, theirs) for theirs, ours in operations.items() if ours == text)
    elif name in _MESSAGES:
        yield from ((mark, None) for mark in _OPERATIONS)
    else:
        for theirs in _NAMES.get(name, ()):
            yield theirs, text
        if name in _ENTITIES.values():
            yield _ENTITY, text


def says_messages(names: Iterable[str]) -> bool:
    """Whether attributes with these names are messages of a dialect."""
    return any(name in HOLDERS or _SAID.fullmatch(name) for name in names)


def attributes_in_our_words(at: Mapping[str, Any]) -> dict[str, Any]:
    """As `in_our_words` for attributes as Python values, with messages; only what ``at`` lacks."""
    if _FOREIGN.isdisjoint(at):  # as of most spans
        return {}
    if a.GEN_AI_OPERATION_NAME in at:
        found = counts_in_our_words(at, _string, _same)
        if a.GEN_AI_WORKFLOW_NAME in at and a.GEN_AI_AGENT_NAME not in at:
            found[a.GEN_AI_AGENT_NAME] = at[a.GEN_AI_WORKFLOW_NAME]
        found |= content_in(at, _string(at[a.GEN_AI_OPERATION_NAME]))
    else:
        found = in_our_words(at, _string, _same)
        if found:
            found |= {name: said for name, said in _messages(at).items() if said}
            found = content_in(at, found.get(a.GEN_AI_OPERATION_NAME, "")) | found
    return {name: value for name, value in found.items() if name not in at}


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _same(value: Any) -> Any:
    return value


def _translated(at: Mapping[str, T], operation: str, make: Callable[[str | int], T]) -> dict[str, T]:
    found: dict[str, T] = {a.GEN_AI_OPERATION_NAME: make(operation)} if operation else {}
    for ours, theirs in _NAMES.items():
        for name in theirs:
            value = at.get(name)
            if value is not None:
                found[ours] = value
                break
    entity = at.get(_ENTITY)
    if entity is not None and operation in _ENTITIES:
        found.setdefault(_ENTITIES[operation], entity)
    return found


def _messages(at: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in _MESSAGES}
    for name, value in at.items():
        found = _SAID.fullmatch(name)
        if found is not None:
            to_model = (found[1] or found[2]) in ("input", "prompt")
            place = a.GEN_AI_INPUT_MESSAGES if to_model else a.GEN_AI_OUTPUT_MESSAGES
            rows[place].setdefault(int(found[3]), {})[found[4]] = value
    return {
        place: [_message(fields) for _, fields in sorted(messages.items())]
        for place, messages in rows.items()
    }


def _message(fields: Mapping[str, Any]) -> dict[str, Any]:
    texts: dict[int, Any] = {}
    calls: dict[int, dict[str, Any]] = {}
    for name, value in fields.items():
        if found := _PART.fullmatch(name):
            texts[int(found[1])] = value
        elif found := _CALL.fullmatch(name):
            calls.setdefault(int(found[1]), {})[found[2]] = value
    said = [value for _, value in sorted(texts.items())]
    if fields.get("content"):
        said.insert(0, fields["content"])
    role, answered = str(fields.get("role", "")), fields.get("tool_call_id")
    parts: list[dict[str, Any]]
    if role == "tool" or answered is not None:
        parts = [
            {"type": "tool_call_response", "id": _text(answered), "response": value} for value in said
        ]
    else:
        parts = [{"type": "text", "content": str(value)} for value in said]
    for _, call in sorted(calls.items()):
        parts.append(
            {
                "type": "tool_call",
                "id": _text(call.get("id")),
                "name": str(call.get("name", "")),
                "arguments": _arguments(call.get("arguments")),
            }
        )
    return {"role": role, "parts": parts}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _arguments(value: Any) -> Any:
    try:
        return msgspec.json.decode(value) if isinstance(value, str) else value
    except (msgspec.DecodeError, RecursionError):
        return value
