"""Describe Redis commands as a statement: JSON without credentials, and attributes of the span."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any, Final, cast

from playhead_core.rerun.headers import PLACEHOLDER
from playhead_instrumentation.libraries.database.exchange import Statement
from playhead_instrumentation.redaction import Redactor
from playhead_semconv import attributes as a

READS: Final = frozenset(
    (
        b"BITCOUNT BITPOS DBSIZE DUMP ECHO EXISTS EXPIRETIME GEODIST GEOHASH GEOPOS GEOSEARCH "
        b"GET GETBIT GETRANGE HEXISTS HGET HGETALL HKEYS HLEN HMGET HRANDFIELD HSCAN HSTRLEN "
        b"HVALS INFO KEYS LCS LINDEX LLEN LPOS LRANGE MGET OBJECT PFCOUNT PING PSUBSCRIBE "
        b"PTTL PUNSUBSCRIBE RANDOMKEY SCAN SCARD SDIFF SINTER SINTERCARD SISMEMBER SMEMBERS "
        b"SMISMEMBER SRANDMEMBER SSCAN SSUBSCRIBE STRLEN SUBSCRIBE SUNION SUNSUBSCRIBE TIME "
        b"TTL TYPE UNSUBSCRIBE WATCH XINFO XLEN XPENDING XRANGE XREAD XREVRANGE ZCARD ZCOUNT "
        b"ZDIFF ZINTER ZLEXCOUNT ZMSCORE ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK "
        b"ZREVRANGE ZREVRANK ZSCAN ZSCORE ZUNION "
    ).split()
)
"""Commands that change nothing."""

LISTENS: Final = frozenset(
    b"MONITOR PSUBSCRIBE PUNSUBSCRIBE SSUBSCRIBE SUBSCRIBE SUNSUBSCRIBE UNSUBSCRIBE".split()
)
"""Commands after which the server sends messages on its own initiative."""


def statement_of(words: Sequence[Sequence[bytes]], redactor: Redactor) -> Statement:
    """Describe commands that go out together. ``words``: of each command."""
    names = [command[0].upper() if command else b"" for command in words]
    operation = names[0].decode("utf-8", "replace") if len(names) == 1 else _together(names)
    attributes: dict[str, Any] = {}
    if len(names) == 1:
        key = [_text(words[0][1])] if len(words[0]) > 1 and names[0] not in (b"AUTH", b"HELLO") else []
        text = " ".join([operation, *map(str, key), *(["?"] if len(words[0]) > 2 else [])])
        attributes[a.DB_QUERY_TEXT] = redactor.text(text) if redactor.content else operation
    else:
        attributes[a.DB_OPERATION_BATCH_SIZE] = len(names)
    asked = [_without_secrets(command, redactor) for command in words]
    body = json.dumps(asked, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return Statement(operation, body, "read" if READS.issuperset(names) else "write", attributes)


def _together(names: Sequence[bytes]) -> str:
    return "MULTI" if names and names[0] == b"MULTI" else "PIPELINE"


def _without_secrets(words: Sequence[bytes], redactor: Redactor) -> list[Any]:
    secret = set(_secrets([word.upper() for word in words[:3]], words))
    for place in secret:
        redactor.learn(words[place].decode("utf-8", "replace").lstrip("><"))
    return [PLACEHOLDER if place in secret else _text(word) for place, word in enumerate(words)]


def _secrets(begins: Sequence[bytes], words: Sequence[bytes]) -> list[int]:
    """Places of the words that are credentials."""
    command = begins[0] if begins else b""
    if command == b"AUTH":
        return [len(words) - 1]
    if command in (b"HELLO", b"MIGRATE"):
        upper = [word.upper() for word in words]
        return [
            upper.index(name) + behind
            for name, behind in ((b"AUTH", 2 if command == b"HELLO" else 1), (b"AUTH2", 2))
            if name in upper and upper.index(name) + behind < len(words)
        ]
    if begins[:2] == [b"CONFIG", b"SET"]:
        named = range(2, len(words) - 1, 2)
        return [at + 1 for at in named if words[at].lower() in (b"requirepass", b"masterauth")]
    if begins[:2] == [b"ACL", b"SETUSER"]:
        return [at for at in range(3, len(words)) if words[at][:1] in (b">", b"<", b"#", b"!")]
    return []


def _text(word: bytes) -> Any:
    try:
        return word.decode()
    except UnicodeDecodeError:
        return {"$type": "bytes", "value": base64.b64encode(word).decode()}


def joined(command: Any) -> bytes:
    """Return the bytes of one or several commands, in whichever form they are sent."""
    if isinstance(command, str):
        return command.encode()
    if isinstance(command, bytes | bytearray | memoryview):
        return bytes(cast("bytes", command))
    return b"".join(command)
