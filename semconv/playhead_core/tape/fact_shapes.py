"""What a fact must contain so that every reader can fold it.

This is checked once, on entry: by whatever takes facts from a socket, and by whatever reads a file of
them.
"""

from __future__ import annotations

import re

from playhead_core.errors import MalformedOtlp
from playhead_core.facts import Fact, Fidelity
from playhead_core.tape.span_starts import check_starts
from playhead_semconv import attributes as a
from playhead_semconv import events as e

INT64_MAX = (1 << 63) - 1

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")

_EXCHANGES = frozenset(
    (
        e.PLAYHEAD_EXCHANGE_REQUEST,
        e.PLAYHEAD_EXCHANGE_RESPONSE,
        e.PLAYHEAD_EXCHANGE_DATA,
        e.PLAYHEAD_EXCHANGE_END,
        e.PLAYHEAD_CONTROL_CHECKPOINT,
        e.PLAYHEAD_CONTROL_HALT,
        e.PLAYHEAD_CONTROL_EDIT,
        e.PLAYHEAD_CONTROL_RELEASE,
    )
)

_TYPES: dict[str, type] = {
    a.HTTP_RESPONSE_STATUS_CODE: int,
    a.PLAYHEAD_BLOCKED_DIFFERENCE: list,
    a.PLAYHEAD_CHECK_NAME: str,
    a.PLAYHEAD_CONTROL_ACTION: str,
    a.PLAYHEAD_CONTROL_BY: str,
    a.PLAYHEAD_CONTROL_REASON: str,
    a.PLAYHEAD_CONTROL_RULES: list,
    a.PLAYHEAD_ERROR_ARGS: list,
    a.PLAYHEAD_FILE_CONTENT: int,
    a.PLAYHEAD_FILE_ERROR: int,
    a.PLAYHEAD_FILE_OFFSET: int,
    a.PLAYHEAD_GAP_FIRST: int,
    a.PLAYHEAD_HTTP_HEADERS: list,
    a.PLAYHEAD_GRPC_METADATA: list,
    a.PLAYHEAD_GRPC_TRAILERS: list,
    a.PLAYHEAD_LANE_NAME: str,
    a.PLAYHEAD_ORIGIN_SEQ: int,
    a.PLAYHEAD_PROCESS_EXIT_CODE: int,
    a.PLAYHEAD_PROCESS_IDENTITY: str,
    a.PLAYHEAD_PROCESS_LAST_SEQ: int,
    a.PLAYHEAD_PROCESS_PID: int,
    a.PLAYHEAD_REDACTED_COUNT: int,
    a.PLAYHEAD_REDACTED_LATE: list,
    a.PLAYHEAD_REDACTED_LOG: list,
    a.PLAYHEAD_RUN_ARGV: list,
    a.PLAYHEAD_RUN_BOUNDARIES: list,
    a.PLAYHEAD_RUN_ENVIRONMENT: list,
    a.PLAYHEAD_RUN_FOLDERS: list,
    a.PLAYHEAD_RUN_IMPORTED: list,
    a.PLAYHEAD_RUN_INSTRUMENTORS: list,
    a.PLAYHEAD_RUN_MODULES: list,
    a.PLAYHEAD_RUN_PACKAGES: list,
    a.PLAYHEAD_RUN_PATCHED: list,
    a.PLAYHEAD_RUN_UNPATCHED: list,
    a.PLAYHEAD_INTERRUPT_SIGNAL: str,
    a.PLAYHEAD_INTERRUPT_PLACE: str,
    a.PLAYHEAD_SPAN_KIND: int,
    a.PLAYHEAD_SPAN_NAME: str,
    a.PLAYHEAD_SPAN_PARENT: str,
    a.PLAYHEAD_STANDSTILL_THREADS: list,
    a.PLAYHEAD_ARTIFACT_MEDIA_TYPE: str,
    a.PLAYHEAD_ARTIFACT_NAME: str,
    a.PLAYHEAD_ARTIFACT_SIZE_BYTES: int,
    a.PLAYHEAD_ARTIFACT_UNKEPT: str,
    a.PLAYHEAD_WORKSPACE_BEGUN_NS: int,
    a.PLAYHEAD_WORKSPACE_FILES: int,
    a.PLAYHEAD_WORKSPACE_LABEL: str,
    a.PLAYHEAD_WORKSPACE_LEFT_OUT: list,
    a.PLAYHEAD_WORKSPACE_SIZE_BYTES: int,
}
"""Types of optional attributes."""

_NEEDED: dict[str, tuple[str, ...]] = {
    e.PLAYHEAD_GAP: (a.PLAYHEAD_GAP_FIRST,),
    e.PLAYHEAD_INTERRUPT: (a.PLAYHEAD_INTERRUPT_SIGNAL,),
    e.PLAYHEAD_STANDSTILL: (a.PLAYHEAD_STANDSTILL_THREADS,),
    e.PLAYHEAD_TURN_LOST: (a.PLAYHEAD_TURN_THREAD, a.PLAYHEAD_TURN_HOW),
}
"""Required attributes, by name of the fact."""

_FIDELITIES = frozenset(Fidelity)


def check_shape(fact: Fact) -> None:
    """Raises `MalformedOtlp` that names what is missing, of the wrong type, or out of range."""
    if not 0 <= fact.time_ns <= INT64_MAX:
        raise MalformedOtlp("a time of the fact lies beyond the year 2262")
    if not -1 <= fact.seq <= INT64_MAX:
        raise MalformedOtlp(f"{a.PLAYHEAD_SEQ} is larger than any number given")
    if fact.exchange is not None and not 0 <= fact.exchange.ordinal <= INT64_MAX:
        raise MalformedOtlp(f"{a.PLAYHEAD_EXCHANGE_ID} has an ordinal larger than any given")
    at = fact.attributes
    if fact.name in _EXCHANGES and fact.exchange is None:
        raise MalformedOtlp(f"{a.PLAYHEAD_EXCHANGE_ID} is missing")
    if fact.name == e.PLAYHEAD_EXCHANGE_REQUEST and not isinstance(at.get(a.PLAYHEAD_ASK_KEY), str):
        raise MalformedOtlp(f"{a.PLAYHEAD_ASK_KEY} is missing")
    if a.PLAYHEAD_ASK_SPANS in at:
        check_starts(at[a.PLAYHEAD_ASK_SPANS])
    if fact.name == e.PLAYHEAD_BLOB:
        digest, offset = at.get(a.PLAYHEAD_BLOB_DIGEST), at.get(a.PLAYHEAD_BLOB_OFFSET)
        if not isinstance(digest, str) or not _DIGEST.match(digest):
            raise MalformedOtlp(f"{a.PLAYHEAD_BLOB_DIGEST} is no digest")
        if type(offset) is not int or offset < 0:
            raise MalformedOtlp(f"{a.PLAYHEAD_BLOB_OFFSET} is no offset")
    for name in _NEEDED.get(fact.name, ()):
        if name not in at:
            raise MalformedOtlp(f"{name} is missing")
    if a.PLAYHEAD_FIDELITY in at:
        said = at[a.PLAYHEAD_FIDELITY]
        if not isinstance(said, str) or said not in _FIDELITIES:
            raise MalformedOtlp(f"{a.PLAYHEAD_FIDELITY} is no fidelity")
    for name, value in at.items():
        kind = _TYPES.get(name)
        if kind is not None and type(value) is not kind:
            raise MalformedOtlp(f"{name} is of the wrong type")
        if kind is int and not -INT64_MAX <= value <= INT64_MAX:
            raise MalformedOtlp(f"{name} is out of range")
