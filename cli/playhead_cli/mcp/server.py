"""The tools of the MCP server.

Each makes one or two requests to the query API; none changes anything.
"""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

import msgspec
import urllib3
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from playhead_cli.mcp.compact import (
    LONGEST_CHARS,
    blame_lines,
    difference_lines,
    exchange_lines,
    finding_lines,
    group_lines,
    hit_lines,
    joined,
    message_lines,
    run_line,
    span_lines,
    time_lines,
    tree_lines,
)
from playhead_core.untrusted.shown_text import visible
from playhead_exporter.delivery import Trust

TIMEOUT_S = 60.0
READING = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
INSTRUCTIONS = """\
Recorded runs of LLM agents: messages, tool calls, requests and cost. Begin with list_runs or search,
open a run with show_run and one of its spans with show_messages, show_bodies or show_span.
A query has search words and fields: agent:NAME model:NAME tool:NAME error:TYPE status:failure
errors:yes since:2d until:2026-11-21 duration>=30s cost>=0.5 tokens>=1000 steps>=10 user:ID session:ID
tag:NAME prompt:NAME release:VERSION env:NAME customer.tier:gold (any attribute with a dot) "a phrase"
level:error (a log record) score.relevance>=0.5 (an evaluation).
"""

Query = Annotated[str, Field(description='e.g. agent:refund errors:yes since:2d "order 81"')]
RunName = Annotated[str, Field(description="A name such as refund-7, last, failed, or a trace id")]
SpanId = Annotated[str, Field(description="16 hexadecimal digits, as show_run prints them")]
Chars = Annotated[int, Field(ge=100, le=100_000, description="Longest text that is shown whole")]


class QueryApi:
    """A client of the query API of a receiver."""

    def __init__(self, url: str, token: str = "", trust: Trust = Trust()) -> None:  # noqa: B008, frozen
        self._url = url.rstrip("/")
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        self._pool = urllib3.PoolManager(
            retries=False,
            ca_certs=trust.ca or None,
            cert_file=trust.certificate or None,
            key_file=trust.key or None,
        )

    def get(self, *path: str, **wanted: Any) -> dict[str, Any]:
        """Return the answer to a request. `ToolError` with the receiver's reason."""
        asked = urlencode({name: value for name, value in wanted.items() if value not in (None, "")})
        url = f"{self._url}/v1/{'/'.join(quote(part, safe='') for part in path)}?{asked}"
        try:
            answer = self._pool.request("GET", url, headers=self._headers, timeout=TIMEOUT_S)
            found: Any = msgspec.json.decode(answer.data)
        except (urllib3.exceptions.HTTPError, msgspec.DecodeError) as problem:
            raise ToolError(f"the receiver does not answer: {problem}") from None
        if answer.status != 200:
            words = (found.get("detail"), found.get("cause"), found.get("hint"))
            raise ToolError(visible("; ".join(str(word) for word in words if word)))
        return found


def mcp_server(api: QueryApi, version: str = "") -> MCPServer[Any]:
    """Return the server, which can run on any transport."""
    server: MCPServer[Any] = MCPServer(
        "playhead", instructions=INSTRUCTIONS, version=version, log_level="ERROR"
    )

    @server.tool(annotations=READING, structured_output=False)
    def list_runs(
        query: Query = "",
        sort: Literal["started", "duration", "cost", "tokens", "steps", "errors"] = "started",
        limit: Annotated[int, Field(ge=1, le=100)] = 20,
    ) -> str:
        """List runs, newest (or most) first: name, status, age, steps, errors, tokens, models, cost."""
        found = api.get("runs", q=query, sort=sort, limit=limit)
        now = time.time_ns()
        return joined((run_line(run, now) for run in found["runs"]), "no run")

    @server.tool(annotations=READING, structured_output=False)
    def show_run(
        run: RunName,
        under: Annotated[str, Field(description="Only the part of the tree below this span")] = "",
        depth: Annotated[int | None, Field(ge=0, description="Levels below the top")] = None,
        offset: Annotated[int, Field(ge=0)] = 0,
        limit: Annotated[int, Field(ge=1, le=500)] = 100,
    ) -> str:
        """Show a run as a tree of spans, a line each: span id, name, URL, duration, tokens, error."""
        found = api.get("runs", run, under=under, depth=depth, offset=offset, limit=limit)
        head = run_line(found["run"], time.time_ns())
        return joined((head, *tree_lines(found)), "no span")

    @server.tool(annotations=READING, structured_output=False)
    def show_messages(run: RunName, span_id: SpanId, longest: Chars = LONGEST_CHARS) -> str:
        """Show the messages of a model call: system, input, tool calls, output."""
        trace_id = api.get("runs", run, "summary")["trace_id"]
        found = api.get("spans", trace_id, span_id, "messages")
        return joined(message_lines(found, longest), "this span has no messages; see show_span")

    @server.tool(annotations=READING, structured_output=False)
    def show_span(run: RunName, span_id: SpanId, longest: Chars = LONGEST_CHARS) -> str:
        """Show a span whole: status, attributes (arguments and results of tools), events."""
        trace_id = api.get("runs", run, "summary")["trace_id"]
        return joined(span_lines(api.get("spans", trace_id, span_id), longest), "nothing")

    @server.tool(annotations=READING, structured_output=False)
    def show_bodies(
        run: RunName,
        span_id: SpanId,
        part: Literal["both", "request", "response"] = "both",
        longest: Chars = LONGEST_CHARS,
    ) -> str:
        """Show requests and answers on the wire, of a span and below: URL, status, headers, bodies."""
        trace_id = api.get("runs", run, "summary")["trace_id"]
        found = api.get("spans", trace_id, span_id, "exchanges")
        return joined(exchange_lines(found, part, longest), "nothing was recorded of it; see show_span")

    @server.tool(annotations=READING, structured_output=False)
    def search(query: Query, limit: Annotated[int, Field(ge=1, le=100)] = 20) -> str:
        """Find texts that contain all words, newest first: run, span id, surrounding text."""
        return joined(hit_lines(api.get("search", q=query, limit=limit)), "nothing is found")

    @server.tool(annotations=READING, structured_output=False)
    def sum_up(
        query: Query = "",
        by: Literal[
            "none",
            "agent",
            "version",
            "environment",
            "status",
            "model",
            "provider",
            "tool",
            "error",
            "day",
        ] = "none",
    ) -> str:
        """Aggregate runs: number, statuses, steps, errors, tokens, cost; optionally by group."""
        return joined(group_lines(api.get("stats", q=query, by=by)), "no run")

    @server.tool(annotations=READING, structured_output=False)
    def compare_runs(
        left: RunName,
        right: RunName,
        offset: Annotated[int, Field(ge=0)] = 0,
        limit: Annotated[int, Field(ge=1, le=500)] = 50,
    ) -> str:
        """Compare two runs: which steps are the same, and every difference with both sides."""
        found = api.get("diff", left=left, right=right)
        return joined(difference_lines(found, offset, limit), "nothing")

    @server.tool(annotations=READING, structured_output=False)
    def show_findings(run: RunName, longest: Chars = LONGEST_CHARS) -> str:
        """Show what a run means: goal, status, failures, loops, decisions, states and their times."""
        return joined(finding_lines(api.get("runs", run, "findings"), longest), "nothing")

    @server.tool(annotations=READING, structured_output=False)
    def split_time(run: RunName) -> str:
        """Split the time and cost of a run: models, tools, retries, waiting, own code; longest steps."""
        return joined(time_lines(api.get("runs", run, "time")), "nothing")

    @server.tool(annotations=READING, structured_output=False)
    def blame(
        run: RunName,
        step: Annotated[int, Field(ge=1)],
        argument: Annotated[str, Field(description="Only this argument: to, items.0.id")] = "",
        value: Annotated[str, Field(description="Look for this text instead of arguments")] = "",
        other_runs: Annotated[bool, Field(description="Also name other runs that hold it")] = False,
        longest: Chars = LONGEST_CHARS,
    ) -> str:
        """Show where the arguments of the calls at a step come from: the earliest source first."""
        wanted = {"argument": argument, "value": value, "runs": "true" if other_runs else ""}
        found = api.get("runs", run, "steps", str(step), "blame", **wanted)
        return joined(blame_lines(found, longest), "nothing")

    return server
