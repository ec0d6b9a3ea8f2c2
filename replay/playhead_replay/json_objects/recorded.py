"""JSON objects of what was recorded: the API and ``--json`` have the same. Ids are hexadecimal."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict


class SpanEventItem(TypedDict):
    """An event of a span."""

    name: str
    time_ns: int
    attributes: dict[str, Any]


class Body(TypedDict):
    """Bytes, as text if they are text, otherwise as base64."""

    text: NotRequired[str | None]
    base64: NotRequired[str | None]


class BodyChunk(Body):
    """A chunk of a response, as received."""

    time_ns: int


class ExchangeItem(TypedDict):
    """One attempt: request and response, verbatim."""

    name: str
    id: str
    instance: str
    """The process that sent the request."""
    key: str
    """Method and URL for HTTP; the name of a tool."""
    started_ns: int
    request_headers: list[tuple[str, str]]
    request: Body | None
    """Null if content was not recorded."""
    status_code: int | None
    response_headers: list[tuple[str, str]]
    response: Body | None
    """Decoded (without content encoding)."""
    chunks: list[BodyChunk]
    """As on the wire."""
    end: str | None
    """Null if the recording ends before the response."""
    error: str | None


class ArtifactItem(TypedDict):
    """An artifact that a run produced, or received in a message."""

    name: str
    made: Literal["named", "file", "message"]
    """`named`: by `playhead.artifact`; `file`: written below the run's folder; `message`: in one."""
    media_type: str
    """Media type as reported by the program or provider; may be empty."""
    size_bytes: int
    digest: str
    """BLAKE3 of the content, in hex; empty if it was not recorded."""
    span_id: str
    """Span that produced it; empty if unknown."""
    step: int | None
    time_ns: int
    inexact: str | None
    """Why the content is missing or differs; null if exact."""


class NamedState(TypedDict):
    """A state that the program reported."""

    name: str
    step: int
    value: Any
    """Null if its content is not recorded or unreadable."""
    unkept: list[str]
    """Parts that could not be recorded: path and class."""


class TableItem(TypedDict):
    """A database table at a step."""

    name: str
    columns: list[str]
    rows: list[list[Any]]
    """The first rows. Bytes are `{"base64": …}`; a value is cut at 4,096 characters or bytes."""
    row_count: int | None
    """Total number of rows; null if not counted."""
    left_out: str | None
    """Omitted parts, each with the reason."""


class DatabaseItem(TypedDict):
    """A SQLite database as committed when the next step began."""

    path: str
    tables: list[TableItem]
    inexact: str | None
    """Why its rows are missing or differ; null if exact."""


class StoredCheckpoint(TypedDict):
    """A checkpoint in the receiver's store, without its state."""

    id: str
    run: str
    """Trace id; empty if it belongs to no run."""
    span: str
    """Empty: the sender named none."""
    kind: Literal["auto", "manual", "framework", "workspace"]
    parent: str
    """Id of its parent checkpoint, which may be missing; or empty."""
    time_ns: int
    labels: list[str]
    thread: str
    """Framework thread it belongs to, or empty."""
    name: str
    """Name within its thread, which orders it."""
    size_bytes: int
    """Size of the packed state."""
    digest: str
    """Equal for equal states."""
