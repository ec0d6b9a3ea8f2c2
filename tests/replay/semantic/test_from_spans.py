"""A real program with a real SDK runs again, and its calls are answered from spans alone."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan
from support.servers.scripted import ScriptedServer

from playhead_cli.json_output.runs import PrintedSemanticReport
from playhead_core.errors import TapeMissing, UsageError
from playhead_replay import Environment, ReplayConfiguration, Run
from playhead_replay.semantic import SemanticResult, command_of, named_program, replay_spans

SYSTEM = "Be brief."
USER = "Weather in Oslo?"
ARGUMENTS = '{"city":"Oslo"}'
PROGRAM = """
import openai
client = openai.OpenAI(base_url="http://127.0.0.1:9/v1", max_retries=0)
tools = [{"type": "function", "function": {"name": "weather", "parameters": {}}}]
said = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather in Oslo?"}]
asked = {"model": "gpt-4o", "messages": said, "tools": tools}
answer = client.chat.completions.create(**asked).choices[0].message
call = answer.tool_calls[0]
print(call.function.name, call.function.arguments)
said += [answer, {"role": "tool", "tool_call_id": call.id, "content": "rain"}]
wanted = {"stream": True, "stream_options": {"include_usage": True}}
for chunk in client.chat.completions.create(**asked, **wanted):
    if chunk.choices and chunk.choices[0].delta.content:
        print(chunk.choices[0].delta.content)
    if chunk.usage:
        print(chunk.usage.total_tokens)
"""
PRINTED = f"weather {ARGUMENTS}\nIt rains.\n23\n"

OURS: list[dict[str, Any]] = [
    {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": SYSTEM}]),
        "gen_ai.input.messages": json.dumps(
            [{"role": "user", "parts": [{"type": "text", "content": USER}]}, *more]
        ),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [part]}]),
        "gen_ai.response.finish_reasons": [reason],
        "gen_ai.usage.input_tokens": 20,
        "gen_ai.usage.output_tokens": 3,
    }
    for more, part, reason in (
        (
            [],
            {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Oslo"}},
            "tool_call",
        ),
        (
            [
                {
                    "role": "assistant",
                    "parts": [
                        {
                            "type": "tool_call",
                            "id": "c1",
                            "name": "weather",
                            "arguments": {"city": "Oslo"},
                        }
                    ],
                },
                {
                    "role": "tool",
                    "parts": [{"type": "tool_call_response", "id": "c1", "response": "rain"}],
                },
            ],
            {"type": "text", "content": "It rains."},
            "stop",
        ),
    )
]


def flat(prefix: str, infix: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, message in enumerate(messages):
        for name, value in message.items():
            if name != "call":
                found[f"{prefix}.{number}.{infix}{name}"] = value
                continue
            call = "tool_calls.0."
            inner = "tool_call.function." if infix else ""
            found[f"{prefix}.{number}.{infix}{call}{inner}name"] = "weather"
            found[f"{prefix}.{number}.{infix}{call}{inner}arguments"] = value
    return found


ASKED = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}]
CALLED = [{"role": "assistant", "call": ARGUMENTS}]
DONE = [{"role": "tool", "content": "rain", "tool_call_id": "c1"}]
SAID = [{"role": "assistant", "content": "It rains."}]

INFERENCE: list[dict[str, Any]] = [
    {
        "openinference.span.kind": "LLM",
        "llm.model_name": "gpt-4o",
        "llm.token_count.prompt": 20,
        "llm.token_count.completion": 3,
        **flat("llm.input_messages", "message.", asked),
        **flat("llm.output_messages", "message.", said),
    }
    for asked, said in ((ASKED, CALLED), (ASKED + CALLED + DONE, SAID))
]
LLMETRY: list[dict[str, Any]] = [
    {
        "llm.request.type": "chat",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.usage.prompt_tokens": 20,
        "gen_ai.usage.completion_tokens": 3,
        "gen_ai.completion.0.finish_reason": reason,
        **flat("gen_ai.prompt", "", asked),
        **flat("gen_ai.completion", "", said),
    }
    for asked, said, reason in (
        (ASKED, CALLED, "tool_calls"),
        (ASKED + CALLED + DONE, SAID, "stop"),
    )
]


def value(of: Any) -> AnyValue:
    if isinstance(of, list):
        return AnyValue(array_value=ArrayValue(values=[value(one) for one in of]))
    return AnyValue(int_value=of) if isinstance(of, int) else AnyValue(string_value=of)


def run_of(*spans: dict[str, Any]) -> Run:
    made: list[bytes] = []
    for number, attributes in enumerate(spans, 1):
        span = OtlpSpan(
            trace_id=bytes(15) + b"\x07",
            span_id=number.to_bytes(8, "big"),
            name="chat",
            kind=OtlpSpan.SPAN_KIND_CLIENT,
            start_time_unix_nano=1_760_000_000_000_000_000 + number * 1000,
            end_time_unix_nano=1_760_000_000_000_000_500 + number * 1000,
            attributes=[KeyValue(key=name, value=value(one)) for name, one in attributes.items()],
        )
        made.append(ResourceSpans(scope_spans=[ScopeSpans(spans=[span])]).SerializeToString())
    return Run.of_tapes([], made, "agent-1")


def replay(folder: Path, run: Run, program: str = PROGRAM) -> SemanticResult:
    (folder / "agent.py").write_text(program)
    environ = {name: one for name, one in os.environ.items() if not name.startswith("OPENAI_")}
    around = Environment(python=sys.executable, folder=str(folder), environ=environ)
    command = command_of("agent.py", str(folder))
    return replay_spans(run, command, ReplayConfiguration(around))


@pytest.mark.parametrize("spans", [OURS, INFERENCE, LLMETRY], ids=["ours", "inference", "llmetry"])
def test_a_program_prints_the_same(tmp_path: Path, spans: list[dict[str, Any]]):
    done = replay(tmp_path, run_of(*spans))
    assert done.stdout.decode() == PRINTED, done.stderr.decode()
    report = done.report
    assert (report.verdict, report.exit_code) == ("semantic", 0)
    assert [one.step for one in report.answered] == [1, 2]
    assert {one.matched_by for one in report.answered} == {"messages and model"}  # tools are unsaid
    assert ("finish reason" in report.answered[0].made_up) == (spans is INFERENCE)
    assert "spelling of arguments" in report.answered[0].made_up  # their values are known alone
    printed = report.to_json()
    assert msgspec.convert(printed, PrintedSemanticReport) == printed
    text = "\n".join(report.lines())
    assert "exact" not in text
    assert "identical" not in text


def test_other_messages_are_answered_in_order_and_diverge(tmp_path: Path):
    done = replay(tmp_path, run_of(*OURS), PROGRAM.replace("in Oslo", "in Bergen"))
    assert done.stdout.decode() == PRINTED
    assert done.report.verdict == "diverged"
    assert all(one.differs and one.matched_by == "order only" for one in done.report.answered)


def test_a_request_without_an_answer_is_refused(tmp_path: Path):
    done = replay(tmp_path, run_of(OURS[0]))
    assert done.report.verdict == "blocked"
    assert done.returncode == 1
    [refused] = done.report.refused
    assert "no span answers POST http://127.0.0.1:9/v1/chat/completions" in refused


def test_what_is_no_call_of_a_model_is_refused(tmp_path: Path):
    program = 'import httpx\nhttpx.get("http://127.0.0.1:9/other")\n'
    done = replay(tmp_path, run_of(*OURS), program)
    assert done.report.verdict == "blocked"
    assert "only model calls and tools are answered from spans" in done.report.refused[0]
    assert len(done.report.unused) == 2


def test_a_request_with_a_span_of_another_instrumentation_is_not_made(tmp_path: Path):
    """Its span says neither what was sent nor what was answered."""
    with ScriptedServer() as server:
        told = {
            "http.request.method": "POST",
            "url.full": f"{server.url}/orders",
            "http.response.status_code": 201,
        }
        program = f"import httpx\nhttpx.post({server.url!r} + '/orders', json=dict(order=81))\n"
        done = replay(tmp_path, run_of(*OURS, told), PROGRAM + program)
        assert not server.requests
    assert done.report.verdict == "blocked"
    [refused] = done.report.refused
    assert f"no span answers POST {told['url.full']}" in refused
    assert "those of other requests (http) have no bodies" in refused


def test_a_call_of_which_two_instrumentations_have_spans_answers_once(tmp_path: Path):
    """As of Anthropic's SDK, which has spans of its own, beside those of an instrumentation."""
    named = [{**one, "gen_ai.response.id": f"r{number}"} for number, one in enumerate(OURS)]
    bare = [
        {name: value for name, value in one.items() if not name.endswith("messages")} for one in named
    ]
    run = run_of(named[0], bare[0], named[1], bare[1])
    for span in run.spans[1::2]:
        span.name = "anthropic.messages.create"
        span.started_ns -= 900  # within the other one
    done = replay(tmp_path, run)
    assert done.report.verdict == "semantic"
    assert [one.step for one in done.report.answered] == [1, 3]
    assert not done.report.not_rebuilt


def test_an_error_that_only_a_text_tells_of(tmp_path: Path):
    run = run_of({name: one for name, one in OURS[0].items() if name != "gen_ai.output.messages"})
    run.spans[0].status, run.spans[0].status_message = "error", "Error code: 418 - {}"
    done = replay(tmp_path, run)
    assert "Error code: 418" in done.stderr.decode()


def test_spans_without_content_answer_nothing(tmp_path: Path):
    bare = {name: one for name, one in OURS[0].items() if not name.endswith("messages")}
    with pytest.raises(TapeMissing, match="no span of it has an answer of a model"):
        replay(tmp_path, run_of(bare))
    done = replay(tmp_path, run_of(*OURS, bare))
    assert done.report.not_rebuilt == ["step 3 chat: its spans have no answer"]


def test_the_answer_of_another_call_with_the_same_messages_is_not_given(tmp_path: Path):
    unsaid = {name: one for name, one in OURS[0].items() if name != "gen_ai.output.messages"}
    done = replay(tmp_path, run_of(unsaid, *OURS))
    assert done.report.verdict == "blocked"
    assert "cause: the span of this call has no answer" in done.report.refused[0]
    assert [one[:6] for one in done.report.unused] == ["step 2", "step 3"]
    run = run_of(unsaid, *OURS)
    run.spans[0].ended_ns = run.spans[1].ended_ns  # both tell of one call
    assert replay(tmp_path, run).report.verdict == "semantic"


@pytest.mark.parametrize("program", ["", "rm -rf x", "'", "-m", "python -m"])
def test_a_command_that_is_no_python_program(program: str):
    with pytest.raises(UsageError, match="--program"):
        command_of(program, "")


def test_a_command_is_read_as_in_a_shell():
    assert command_of("/usr/bin/python3.12 agent.py 'a b'", "").words() == ["agent.py", "a b"]
    assert command_of("python -c 'print(1)' x", "").words() == ["-c", "print(1)", "x"]


def test_a_suggested_program_is_harmless_to_read():
    run = run_of({**OURS[0], "process.command_args": ["python", "a\x1b[2J.py"]})
    assert "\x1b" not in named_program(run)
