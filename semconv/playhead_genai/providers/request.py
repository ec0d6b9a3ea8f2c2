"""Converts a request body to attributes of the span."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

import msgspec

from playhead_core.facts import Value
from playhead_genai.messages import encode, encode_one
from playhead_genai.providers.dialect import Dialect
from playhead_genai.providers.prefix import SENTINEL, Known, PrefixCache, array_start
from playhead_genai.providers.reading import Object, parse
from playhead_semconv import attributes as a


class Request(msgspec.Struct):
    """The contents of a request body."""

    attributes: dict[str, Value] = {}
    fields: Object = {}
    """Its fields without messages, instructions and tools."""
    problems: list[str] = []


_Fields = dict[str, msgspec.Raw]
_fields = msgspec.json.Decoder(_Fields)
_items = msgspec.json.Decoder(list[msgspec.Raw])


def read_request(dialect: Dialect, body: bytes, cache: PrefixCache | None) -> Request:
    """Return attributes for ``body``, from any bytes. The result does not depend on ``cache``."""
    try:
        fields, items, known = _split(dialect, body, cache)
    except (ValueError, RecursionError) as error:
        return Request(problems=[f"request body: {error}"])
    problems: list[str] = []

    def value(name: str, source: bytes) -> Any:
        try:
            return parse(source)
        except (ValueError, RecursionError) as error:
            problems.append(f"{name} of the request: {error}")
            return source.decode("utf-8", "replace")

    special = (dialect.messages_field, dialect.instructions_field, *dialect.tools_fields)
    request = {name: value(name, bytes(raw)) for name, raw in fields.items() if name not in special}
    found = dialect.parameters(request)

    texts = [encode_one(dialect.message(value(dialect.messages_field, item))) for item in items]
    if known or len(texts) > 1:
        first = 0 if known else 1
        texts[first:] = [b"," + text for text in texts[first:]]
    before = known.texts if known else []
    found[a.GEN_AI_INPUT_MESSAGES] = b"".join((b"[", *before, *texts, b"]")).decode()
    if cache and texts and not problems:
        cache.add(dialect.wire, known, _runs(dialect, body, known, items, texts))

    try:
        if raw := fields.get(dialect.instructions_field):
            found[a.GEN_AI_SYSTEM_INSTRUCTIONS] = _instructions(dialect, bytes(raw), cache)
        tools = [bytes(fields[name]) for name in dialect.tools_fields if name in fields]
        found[a.GEN_AI_TOOL_DEFINITIONS] = _tools(dialect, tools, cache)
    except (ValueError, RecursionError) as error:
        problems.append(f"instructions or tools of the request: {error}")
    return Request({name: item for name, item in found.items() if item != "[]"}, request, problems)


def _split(
    dialect: Dialect, body: bytes, cache: PrefixCache | None
) -> tuple[_Fields, list[bytes], Known | None]:
    """Return the fields of ``body``, the messages that must be converted, and the known ones.

    Known messages are replaced by a sentinel before the body is parsed. If the sentinel is the first
    item of the array, the known bytes were there: at that place, and as complete items.
    """
    field = dialect.messages_field
    known = cache.find(dialect.wire, field, body) if cache else None
    if known:
        try:
            fields = _fields.decode(body[: known.start] + SENTINEL + body[known.end :])
            items = _array(fields.get(field))
            if items[:1] == [SENTINEL]:
                return fields, items[1:], known
        except (ValueError, RecursionError):
            pass  # the complete body is parsed below, and its problems reported there
    try:
        fields = _fields.decode(body)
    except ValueError:
        value = parse(body)
        if not isinstance(value, dict):
            raise
        fields = _fields.decode(msgspec.json.encode(cast(Object, value)))
    return fields, _array(fields.get(field)), None


def _array(raw: msgspec.Raw | None) -> list[bytes]:
    """Return the items of an array; anything else, or an array of numbers, is a single item."""
    source = b"null" if raw is None else bytes(raw)
    if source == b"null":
        return []
    if not source.startswith(b"["):
        return [source]
    items = [bytes(item) for item in _items.decode(source)]
    return [source] if items and items[0][:1] in b"-0123456789" else items


def _runs(
    dialect: Dialect, body: bytes, known: Known | None, items: list[bytes], texts: list[bytes]
) -> list[tuple[bytes, bytes]]:
    """Return the runs for the cache: the first message of a body and its last one are separate runs.

    The first is often a system prompt that many conversations share. The last may carry a mark (of a
    provider's cache) that the next body has on another message. Empty if the items do not occur in
    ``body``.
    """
    ends = [known.end if known else array_start(dialect.messages_field, body)]
    for item in items:
        at = body.find(item, ends[-1]) if item[:1] in b'{"' else -1
        if ends[0] < 0 or at < 0 or body[ends[-1] : at].strip(b" \t\r\n,"):
            return []
        ends.append(at + len(item))
    last = len(items)
    cuts = sorted({0, last - 1, last} if known else {0, 1, last - 1, last})
    return [(body[ends[low] : ends[high]], b"".join(texts[low:high])) for low, high in pairwise(cuts)]


def _instructions(dialect: Dialect, source: bytes, cache: PrefixCache | None) -> str:
    def convert() -> bytes:
        return encode(dialect.instructions(parse(source)))

    return (cache.memo(f"{dialect.wire} instructions", source, convert) if cache else convert()).decode()


def _tools(dialect: Dialect, sources: list[bytes], cache: PrefixCache | None) -> str:
    def convert() -> bytes:
        return encode([tool for source in sources for tool in dialect.tools(parse(source))])

    source = b",".join(sources)
    return (cache.memo(f"{dialect.wire} tools", source, convert) if cache else convert()).decode()
