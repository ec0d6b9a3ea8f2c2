"""Programs that instrumentations of others recorded run again without a tape, and print the same."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from replay.semantic.instrumentations.programs import PROGRAMS
from support.servers.scripted import (
    Reply,
    Request,
    ScriptedServer,
    anthropic_messages,
    anthropic_sse,
    chat_sse,
    json_reply,
    openai_chat,
    openai_embeddings,
    openai_error,
    openai_responses,
    responses_sse,
)
from support.starting.home import PATIENCE_S, Home

from playhead_core.errors import TapeMissing
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_replay import Environment, ReplayConfiguration, Run
from playhead_replay.semantic import SemanticResult, command_of, replay_spans

pytestmark = pytest.mark.acceptance
INSTRUMENTED = Path(__file__).parent / "instrumentations" / "instrumented.py"
APART = [Path(sys.prefix, f"apart-{name}") for name in ("spans", "langgraph", "frameworks")]
CITIES = ("Oslo", "Rome")
OPENAI = [name for name in PROGRAMS if not name.startswith(("messages", "agent"))]
KNOWN = {
    **dict.fromkeys(("opentelemetry", "openllmetry", "openinference"), [*PROGRAMS][:-1]),
    **dict.fromkeys(("langfuse", "langsmith"), OPENAI),
    "pydantic_ai": ["agent"],
}
"""Instrumentations, and the programs whose SDKs they know."""
WITHOUT_TOOLS, WITHOUT_MODEL = {"openinference"}, {("openinference", "failed")}
LACKING = {
    "openinference": {"finish reason", "response id"},
    "langfuse": {"finish reason", "response id"},
    "langsmith": {"finish reason"},
}
"""What spans of an instrumentation may lack."""


def chat(request: Request) -> Reply:
    asked, last = request.json, request.json["messages"][-1]
    if "fail" in str(last["content"]):
        return openai_error(400)
    calls: list[Any] = []
    if asked.get("tools") and last["role"] == "user":
        calls = [
            openai_chat.tool_call(f"c{at}", "weather", {"city": city}) for at, city in enumerate(CITIES)
        ]
    said = None if calls else f"said {last['content']}"
    whole = openai_chat.completion(said, tool_calls=calls, id=f"chatcmpl-{len(request.body)}")
    if asked.get("stream"):
        return chat_sse(whole, include_usage=bool(asked.get("stream_options")))
    return json_reply(whole)


def responses(request: Request) -> Reply:
    asked = request.json
    items = [openai_responses.message("said it")]
    if asked.get("tools") and len(asked["input"]) == 1:
        items = [
            openai_responses.function_call(f"c{at}", "weather", {"city": city}, id=f"fc_{at}")
            for at, city in enumerate(CITIES)
        ]
    whole = openai_responses.response(items, id=f"resp_{len(request.body)}")
    return responses_sse(whole) if asked.get("stream") else json_reply(whole)


def embeddings(request: Request) -> Reply:
    as_base64 = request.json.get("encoding_format") == "base64"
    return json_reply(openai_embeddings.embeddings([[0.5, 0.25], [1.0, -1.0]], as_base64=as_base64))


def messages(request: Request) -> Reply:
    asked = request.json
    blocks: Any = f"said {len(asked['messages'])}"
    if asked.get("tools") and len(asked["messages"]) == 1:
        blocks = [
            anthropic_messages.tool_use(f"toolu_{at}", "weather", {"city": city})
            for at, city in enumerate(CITIES)
        ]
    whole = anthropic_messages.message(blocks, id=f"msg_{len(request.body)}")
    return anthropic_sse(whole) if asked.get("stream") else json_reply(whole)


class Recordings:
    """A receiver, and programs that send their spans to it."""

    def __init__(self, folder: Path, provider: ScriptedServer, receiver: Receiver) -> None:
        self._folder, self._receiver = folder, receiver
        for name, text in PROGRAMS.items():
            (folder / f"{name}.py").write_text(text)
        self._environ = {
            **Home(folder, {}).bare,
            "PYTHONPATH": ":".join(map(str, APART)),
            "OPENAI_BASE_URL": provider.openai_url,
            "ANTHROPIC_BASE_URL": provider.url,
            "OPENAI_API_KEY": "k",
            "ANTHROPIC_API_KEY": "k",
        }

    def record(self, instrumentation: str, program: str) -> tuple[str, Run]:
        """What the program printed, and its run."""
        service = f"{instrumentation}-{program}"
        environ = {
            **self._environ,
            "PLAYHEAD_DISABLED": "1",
            "OTEL_SERVICE_NAME": service,
            "OTEL_EXPORTER_OTLP_ENDPOINT": self._receiver.http_endpoint,
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
            "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
            "LANGSMITH_OTEL_ENABLED": "true",
            "LANGSMITH_OTEL_ONLY": "true",
            "LANGSMITH_TRACING": "true",
            "LANGSMITH_ENDPOINT": "http://127.0.0.1:9",
            "LANGSMITH_API_KEY": "k",
        }
        done = subprocess.run(
            [sys.executable, INSTRUMENTED, instrumentation, f"{program}.py"],
            env=environ,
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        run = Run.load(self._receiver.store, f"{service}-1")
        assert not any(map(len, run.tapes))
        return done.stdout, run

    def replay(self, run: Run, program: str) -> SemanticResult:
        around = Environment(python=sys.executable, folder=str(self._folder), environ=self._environ)
        command = command_of(f"{program}.py", str(self._folder))
        return replay_spans(run, command, ReplayConfiguration(around))


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recordings]:
    folder = tmp_path_factory.mktemp("instrumented")
    with (
        ScriptedServer() as provider,
        Receiver(folder / "data", Configuration(Addresses(http_port=0, grpc_port=0))) as receiver,
    ):
        for path, answer in (
            ("/v1/chat/completions", chat),
            ("/v1/responses", responses),
            ("/v1/embeddings", embeddings),
            ("/v1/messages", messages),
        ):
            provider.on(path, answer, repeat=True)
        yield Recordings(folder, provider, receiver)


@pytest.mark.parametrize(
    ("instrumentation", "program"), [(one, program) for one in KNOWN for program in KNOWN[one]]
)
def test_a_program_prints_the_same(recordings: Recordings, instrumentation: str, program: str):
    printed, run = recordings.record(instrumentation, program)
    if program == "embeddings" and instrumentation != "openinference":  # only its spans have vectors
        with pytest.raises(TapeMissing):
            recordings.replay(run, program)
        return
    done = recordings.replay(run, program)
    report = done.report
    assert done.stdout.decode() == printed, "\n".join([*report.lines(), done.stderr.decode()])
    assert (report.verdict, report.exit_code) == ("semantic", 0), list(report.lines())
    assert not (report.refused or report.unused or report.not_rebuilt)
    ways = {one.matched_by for one in report.answered}
    allowed = {"messages, model and tools"}
    if instrumentation in WITHOUT_TOOLS:
        allowed.add("messages and model")
    if (instrumentation, program) in WITHOUT_MODEL:
        allowed.add("messages")
    assert ways <= allowed
    made_up = {what for one in report.answered for what in one.made_up}
    assert made_up <= {"spelling of arguments", *LACKING.get(instrumentation, ())}
    assert not any(one.left_out for one in report.answered)
