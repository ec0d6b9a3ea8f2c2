"""OTLP traffic of synthetic agent runs: the same arguments give the same bytes.

A run is a trace of ``2 * steps + 1`` spans in the order in which an SDK ends them, root last. In the
``payload`` profile a chat span carries the whole history so far, about 2.3 KB more with every step. The
``light`` profile has the same tree and some twenty small attributes per span. The text is real English,
cut out of the topics of `pydoc_data` at random places; tool results are JSON rows with random ids.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from pydoc_data.topics import topics
from typing import Any, TypeVar

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

T = TypeVar("T")
TEXT = " ".join(" ".join(topics[name].split()) for name in sorted(topics))
AGENTS = ("refund", "triage", "review", "travel")
MODELS = ("gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro", "qwen3-coder")
TOOLS = ("search", "read_file", "run_query", "get_order", "http_get")
BEGIN_NS = 1_790_000_000_000_000_000
SYSTEM_CHARS, USER_CHARS, ARGUMENT_CHARS, RESULT_CHARS = 2000, 500, 220, 2200


@dataclass(frozen=True)
class Load:
    """Parameters of the traffic."""

    runs: int
    steps: int = 20
    profile: str = "payload"
    batch: int = 64
    """Spans per request."""
    interleave: int = 4
    """Number of concurrent runs."""
    seed: int = 1
    turns: bool = False
    """Whether every step is a trace of its own."""


@dataclass(frozen=True)
class Request:
    """One export request."""

    body: bytes
    spans: int


def requests(load: Load) -> Iterator[Request]:
    """All requests of a load, in order."""
    for group in _batched(_spans(load), load.batch):
        yield Request(_request(group), len(group))


def _batched(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    rest = iter(items)
    while group := tuple(islice(rest, size)):
        yield group


def _spans(load: Load) -> Iterator[Span]:
    for numbers in _batched(range(load.runs), load.interleave):
        for row in zip_longest(*(_run(load, number) for number in numbers)):
            yield from (span for span in row if span is not None)


def _run(load: Load, number: int) -> Iterator[Span]:
    rng = random.Random(f"{load.seed}/{number}")
    agent, model = AGENTS[number % 4], MODELS[number % 4]
    begin = now = BEGIN_NS + number * 2_000_000_000
    trace, root = rng.randbytes(16), rng.randbytes(8)
    whole = load.profile == "payload"
    shared = {
        "gen_ai.agent.id": f"agent-{number % 4}",
        "gen_ai.agent.name": agent,
        "gen_ai.agent.version": "2.1.0",
    }
    if not load.turns:
        shared["gen_ai.conversation.id"] = f"conv_{rng.getrandbits(64):016x}"
    system = _json([{"type": "text", "content": _prose(random.Random(agent), SYSTEM_CHARS)}])
    history = [_message("user", {"type": "text", "content": _prose(rng, USER_CHARS)})]
    used = 600
    for step in range(load.steps):
        if load.turns:
            trace = rng.randbytes(16)
        call, tool = f"call_{rng.getrandbits(96):024x}", rng.choice(TOOLS)
        arguments = {
            "query": _prose(rng, ARGUMENT_CHARS),
            "limit": rng.randrange(50),
            "region": "eu-west",
        }
        result = {"next": f"cur_{rng.getrandbits(64):016x}", "rows": _rows(rng)}
        end = now + rng.randrange(400_000_000, 4_000_000_000)
        asked: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": model,
            "gen_ai.response.model": model,
            "gen_ai.response.id": f"resp_{rng.getrandbits(96):024x}",
            "gen_ai.request.temperature": 0.2,
            "gen_ai.request.top_p": 0.95,
            "gen_ai.request.max_tokens": 4096,
            "gen_ai.response.finish_reasons": ["tool_calls"],
            "gen_ai.usage.input_tokens": used,
            "gen_ai.usage.output_tokens": rng.randrange(60, 240),
            "gen_ai.output.type": "text",
            "server.address": "api.example.test",
            "server.port": 443,
            **shared,
        }
        said = {"type": "tool_call", "id": call, "name": tool, "arguments": arguments}
        if whole:
            asked["gen_ai.system_instructions"] = system
            asked["gen_ai.input.messages"] = "[" + ",".join(history) + "]"
            output = {"role": "assistant", "parts": [said], "finish_reason": "tool_call"}
            asked["gen_ai.output.messages"] = _json([output])
        yield _span(trace, rng.randbytes(8), root, f"chat {model}", 3, now, end, asked)
        history.append(_message("assistant", said))
        response = {"type": "tool_call_response", "id": call, "response": result}
        history.append(_message("tool", response))
        now, used = end, used + 550
        end = now + rng.randrange(5_000_000, 900_000_000)
        done: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.id": call,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.description": f"Calls {tool} and returns its rows",
            "app.step": step,
            "app.attempt": 1,
            "app.cache_hit": rng.random() < 0.3,
            "app.duration_ms": (end - now) / 1e6,
            "app.tenant": f"tenant-{number % 17}",
            "app.region": "eu-west-1",
            "code.function.name": f"tools.{tool}.run",
            "code.file.path": f"/srv/agent/tools/{tool}.py",
            "code.line.number": rng.randrange(400),
            "thread.id": 139_000_000 + number % 8,
            **shared,
        }
        if whole:
            done["gen_ai.tool.call.arguments"] = _json(arguments)
            done["gen_ai.tool.call.result"] = _json(result)
        failed = rng.random() < 0.03
        yield _span(trace, rng.randbytes(8), root, f"execute_tool {tool}", 1, now, end, done, failed)
        now = end
    last = {"gen_ai.operation.name": "invoke_agent", "gen_ai.request.model": model, **shared}
    yield _span(trace, root, b"", f"invoke_agent {agent}", 1, begin, now, last)


def _prose(rng: random.Random, size: int) -> str:
    at = rng.randrange(len(TEXT) - size)
    return TEXT[at : at + size]


def _rows(rng: random.Random) -> list[dict[str, Any]]:
    return [
        {
            "id": rng.randrange(10**8),
            "title": _prose(rng, 40),
            "status": rng.choice(("open", "closed", "pending")),
            "score": round(rng.random(), 4),
            "text": _prose(rng, 160),
        }
        for _ in range(RESULT_CHARS // 280)
    ]


def _message(role: str, *parts: dict[str, Any]) -> str:
    return _json({"role": role, "parts": parts})


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _span(
    trace: bytes,
    span: bytes,
    parent: bytes,
    name: str,
    kind: int,
    begin_ns: int,
    end_ns: int,
    attributes: dict[str, Any],
    failed: bool = False,
) -> Span:
    made = Span(trace_id=trace, span_id=span, parent_span_id=parent, name=name, kind=kind)  # type: ignore[arg-type]
    made.start_time_unix_nano, made.end_time_unix_nano = begin_ns, end_ns
    made.attributes.extend(attribute(key, value) for key, value in attributes.items())
    if failed:
        made.status.code, made.status.message = 2, "upstream timeout"  # type: ignore[assignment]
    return made


def attribute(key: str, value: Any) -> KeyValue:
    """Return an attribute as OTLP has it."""
    found = KeyValue(key=key)
    if isinstance(value, bool):
        found.value.bool_value = value
    elif isinstance(value, int):
        found.value.int_value = value
    elif isinstance(value, float):
        found.value.double_value = value
    elif isinstance(value, list):
        found.value.array_value.values.extend(AnyValue(string_value=one) for one in value)
    else:
        found.value.string_value = value
    return found


def _request(spans: tuple[Span, ...]) -> bytes:
    request = ExportTraceServiceRequest()
    entry = request.resource_spans.add()
    entry.resource.attributes.extend(
        attribute(key, value)
        for key, value in {
            "service.name": "bench",
            "service.version": "2.1.0",
            "deployment.environment.name": "bench",
            "telemetry.sdk.language": "python",
            "telemetry.sdk.name": "opentelemetry",
            "host.name": "bench-host",
            "process.pid": 4242,
        }.items()
    )
    scope = entry.scope_spans.add()
    scope.scope.name, scope.scope.version = "bench", "0.1.0"
    scope.spans.extend(spans)
    return request.SerializeToString()
