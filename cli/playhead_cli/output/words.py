"""Short texts for several views: times, sizes, tokens, one-line summaries of steps."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from playhead_genai.readable_text import arguments_of, text_of
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName as Operation

if TYPE_CHECKING:
    from playhead_receiver.storage.values.run_summaries import RunSummary
    from playhead_replay import Span, Step, TokenUsage
    from playhead_replay.timeline.tool_calls import ToolCallStep


ASCII = str.maketrans("→←–×·…✗✓⚠⋮↻─●▸", "><-x-~x+!:r-o>")
"""Replacements for output that supports only ASCII."""

FOLD, AGAIN = "⋮", "↻"
"""Signs for folded steps and for repeated attempts."""

NS = 1_000_000_000


def seconds(ns: int) -> str:
    """``41.2s``, ``3m05s``, ``2h07m``."""
    if ns < 60 * NS:
        return f"{ns / NS:.1f}s"
    minutes, rest = divmod(ns // NS, 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    return f"{minutes // 60}h{minutes % 60:02d}m"


def offset(ns: int) -> str:
    """Return a time since the start of a run: ``+41.2s``."""
    return f"+{seconds(max(ns, 0))}"


def took(ns: int) -> str:
    """Return a duration: ``12ms`` below a second, else as in `seconds`."""
    return f"{ns // 1_000_000}ms" if ns < NS else seconds(ns)


def age(ns: int) -> str:
    """``5s``, ``4m``, ``3h``, ``2d``: one unit, rounded down."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if ns >= size * NS:
            return f"{ns // (size * NS)}{unit}"
    return f"{max(ns, 0) // NS}s"


def clock(time_ns: int) -> str:
    """Local wall clock, ``12:01:07``."""
    return datetime.fromtimestamp(time_ns / NS).strftime("%H:%M:%S")


def size(count_bytes: int) -> str:
    """``812 B``, ``3.2 kB``, ``1.4 MB``."""
    if count_bytes < 1000:
        return f"{count_bytes} B"
    if count_bytes < 1_000_000:
        return f"{count_bytes / 1000:.1f} kB"
    return f"{count_bytes / 1_000_000:.1f} MB"


def cost(run: RunSummary) -> str:
    """``$0.09``; ``$0.09+`` if some prices are unknown; empty if all are."""
    from playhead_genai.prices import Cost

    if run.cost_usd is None:
        return ""
    return str(Cost(Decimal(str(run.cost_usd)), tuple(run.unpriced)))


def count(number: int, noun: str, plural: str = "") -> str:
    """``1 step``, ``2 steps``. ``plural``: of the noun, if it is irregular."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def tokens(usage: TokenUsage) -> str:
    """``812→64``; empty if unknown."""
    if not usage.input_tokens and not usage.output_tokens:
        return ""
    return f"{usage.input_tokens}→{usage.output_tokens}"


def one_line(value: Any, limit: int = 60) -> str:
    """Return a value as one line of at most ``limit`` characters."""
    text = " ".join((value if isinstance(value, str) else text_of(value)).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def gist(step: Step, hosts: bool = True) -> str:
    """Return the summary of a step: error, tokens, arguments of a tool, query, messages, status.

    ``hosts``: requests with the host that answered.
    """
    span = step.span
    if span.failed:
        return span.error
    at = span.attributes
    sent, received = at.get(a.GEN_AI_USAGE_INPUT_TOKENS), at.get(a.GEN_AI_USAGE_OUTPUT_TOKENS)
    if sent is not None or received is not None:
        return f"{sent or 0}→{received or 0} tok"
    if a.GEN_AI_TOOL_CALL_ARGUMENTS in at:
        return one_line(arguments_of(at[a.GEN_AI_TOOL_CALL_ARGUMENTS]))
    if a.GEN_AI_RETRIEVAL_QUERY_TEXT in at:
        return one_line(str(at[a.GEN_AI_RETRIEVAL_QUERY_TEXT]))
    if a.PLAYHEAD_MESSAGES_SENT in at:
        sent, received = at[a.PLAYHEAD_MESSAGES_SENT], at.get(a.PLAYHEAD_MESSAGES_RECEIVED, 0)
        place = f"{at.get(a.SERVER_ADDRESS, '')}:{at.get(a.SERVER_PORT) or ''}".strip(":")
        return f"{sent} sent, {received} received {place}".strip()
    if a.HTTP_RESPONSE_STATUS_CODE in at:
        host = span.url.netloc if hosts else ""
        return f"{at[a.HTTP_RESPONSE_STATUS_CODE]} {host}".strip()
    return ""


def label(span: Span) -> str:
    """Return the label of a step: its span's name; for a plain HTTP request, method and path."""
    if span.operation:
        return span.name
    url = span.url
    if not url.path:
        return span.name
    asked = f"{url.path}?{url.query}" if url.query else url.path
    return f"{span.name} {one_line(asked, 40)}"


def tool_label(call: ToolCallStep) -> str:
    """Return the label of a tool call, as a span of it would be named."""
    return f"{Operation.EXECUTE_TOOL} {one_line(call.name, 40)}"


def web_address(url: str, run: str = "", point: str = "", token: str = "") -> str:
    """Return the page of a run, or of all runs. ``url``: of the query API. ``point``: a step's number.

    The token is in the fragment, which a browser does not send; the page removes it from the
    address.

    >>> web_address("http://127.0.0.1:4319", "refund-7", "3")
    'http://127.0.0.1:4319/?run=refund-7&step=3'
    """
    place = {name: value for name, value in (("run", run), ("step", point)) if value}
    query = f"?{urlencode(place)}" if place else ""
    fragment = f"#token={quote(token, safe='')}" if token else ""
    return f"{url.rstrip('/')}/{query}{fragment}"
