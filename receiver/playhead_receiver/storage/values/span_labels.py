"""What lists and sums need of a span: its label, its tokens, its place in the tree."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

AWAITED = -1
"""`Label.derived` of a request whose bytes had not arrived when it was examined."""


class Label(msgspec.Struct, frozen=True, array_like=True):
    """Properties that many spans share, stored once for all of them. Add fields at the end only."""

    attempt: bool = False
    """Whether it is an HTTP or RPC attempt, which belongs to a logical call if one encloses it."""
    step: bool = False
    model: str = ""
    """Model of the response, else of the request."""
    asked_model: str = ""
    """Model of the request, if the response names another."""
    provider: str = ""
    tool: str = ""
    """The tool that was executed."""
    error_type: str = ""
    """``error.type`` of a failed span, ``_OTHER`` if it has none; empty for other spans."""
    version: str = ""
    """Version of the agent."""
    played: bool = False
    """Whether a tape answered it, in a fork or a resume: no request was made, no tokens were used."""
    wire: str = ""
    """For a request without a GenAI instrumentation: the wire that its bytes follow."""
    derived: int = 0
    """Version of the deriver that has examined the bytes for ``wire``; 0: none has, or `AWAITED`."""
    called: tuple[str, ...] = ()
    """The tools that a model's answer calls."""
    resent: bool = False
    """Whether the call was sent again in a later span: this one is an attempt of that call."""
    grpc: bool = False
    """Whether it is a request over gRPC, which no logical call describes, even one that encloses it."""
    call: bool = False
    """Whether its operation calls a model, whether or not it names one."""
    own: bool = False
    """Whether we derived it from the bytes of the call."""
    served: bool = False
    """Whether it is a request or message that a service received."""
    ok: bool = False
    """Whether its status is OK, which only the program sets."""
    inner: bool = False
    """Whether its parent is known to be in the same process."""
    fetched: str = ""
    """Id of a response with usage that may be fetched, or is: it counts once (`counted_key`)."""
    sources: tuple[str, ...] = ()
    """What reports the call of the tool (`playhead_genai.tool_reports`)."""


class Usage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Token counts that a span reports."""

    input: int = 0
    """Includes ``cached`` and ``cache_write``."""
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    """Includes ``reasoning``."""
    reasoning: int = 0

    def __bool__(self) -> bool:
        return bool(self.input or self.output)


@dataclass(frozen=True, slots=True)
class DerivedCall:
    """The label and the usage of a stored call, derived from its bytes."""

    label: Label
    usage: Usage


class SpanRow(msgspec.Struct, frozen=True, gc=False):
    """A span without its content; ``end_ns`` None: it has started and not arrived."""

    span_id: bytes
    parent: bytes
    start_ns: int
    end_ns: int | None
    failed: bool = False
    local_root: bool = False
    label: Label = Label()
    usage: Usage = Usage()
    resource: int = 0
    """Row of its resource; 0 if it is not known yet."""
