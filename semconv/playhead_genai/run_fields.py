"""Attributes that describe a whole run, such as its user and tags, under the names that senders use."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from playhead_genai.other_conventions import SESSIONS
from playhead_semconv import attributes as a

CONVERSATION: Final = "conversation"

FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    CONVERSATION: (a.GEN_AI_CONVERSATION_ID, *SESSIONS),
    "user": (
        "user.id",
        "enduser.id",
        "langfuse.user.id",
        "langsmith.metadata.user_id",
        "traceloop.association.properties.user_id",
        "llm.user",
    ),
    "tag": ("tag.tags", "langfuse.trace.tags", "langfuse.tags", "langsmith.span.tags"),
    "prompt": (
        a.GEN_AI_PROMPT_NAME,
        "langfuse.observation.prompt.name",
        "prompt.id",
        "traceloop.prompt.key",
    ),
    "prompt_version": (
        a.GEN_AI_PROMPT_VERSION,
        "langfuse.observation.prompt.version",
        "llm.prompt_template.version",
        "traceloop.prompt.version",
    ),
    "release": (a.SERVICE_VERSION, "langfuse.release"),
    "agent_type": (a.PLAYHEAD_AGENT_TYPE, "gen_ai.agent.type"),
}
"""Fields of a run, and the attributes of spans and resources that hold their values.

Not ``langsmith.trace.session_id``: its senders put the id of a project there.
"""

FIELD_OF: Final = {name: field for field, names in FIELDS.items() for name in names}
"""Attribute → field."""

METADATA: Final = "metadata."
"""Prefix of names of metadata entries, under which the entries of every sender are found."""
_METADATA_PREFIXES = (
    METADATA,
    "langfuse.trace.metadata.",
    "langfuse.observation.metadata.",
    "langsmith.metadata.",
    "traceloop.association.properties.",
)
METADATA_OBJECTS: Final = ("metadata", "langfuse.trace.metadata", "langfuse.observation.metadata")
"""Attributes that hold all metadata as a JSON object."""


def values_in(field: str, value: Any) -> Iterator[str]:
    """The values of a field that the value of an attribute holds; tags may be one text.

    >>> [list(values_in("tag", text)) for text in ("beta, vip", '["a,b"]')], list(values_in("user", 7))
    ([['beta', 'vip'], ['a,b']], ['7'])
    """
    if field == "tag" and isinstance(value, str):
        listed = decoded(value)
        value = value.split(",") if listed is value else listed
    for one in cast("list[Any]", value) if isinstance(value, list) else [value]:
        if isinstance(one, str | int | float):
            text = str(one).lower() if isinstance(one, bool) else str(one).strip()
            if text:
                yield text


def decoded(value: str) -> Any:
    """A text that is a JSON array or object, decoded; any other unchanged."""
    if value[:1] not in ("[", "{"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def names_of(attribute: str) -> tuple[str, ...]:
    """The names under which an attribute may occur: several for an entry of the metadata.

    >>> names_of("metadata.plan")[:2], names_of("customer.tier")
    (('metadata.plan', 'langfuse.trace.metadata.plan'), ('customer.tier',))
    """
    key = attribute.removeprefix(METADATA)
    return tuple(one + key for one in _METADATA_PREFIXES) if key != attribute else (attribute,)
