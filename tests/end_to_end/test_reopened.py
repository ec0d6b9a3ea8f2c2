"""A run that keeps something open is forked, or dies and is resumed: what becomes of that."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.long import long
from support.servers.grpc_server import GrpcServer
from support.servers.mcp_programs import SERVER, over_http
from support.servers.scripted import Request, ScriptedServer, json_reply, openai_chat
from support.servers.websocket_server import WebSocketServer
from support.starting.branching import environment, playhead, stored
from support.starting.running import PATIENCE_S, start_agent

AGENT = Path(__file__).parent / "agents" / "connected.py"
STEPS = 4


@dataclass
class Stage:
    """An agent that may run, its provider, and the command line."""

    folder: Path
    provider: ScriptedServer
    environ: dict[str, str]
    agent: subprocess.Popen[bytes] | None = None
    dies_at: int = 0
    """At which request of a model it is killed."""

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def playhead(self, *words: str) -> subprocess.CompletedProcess[str]:
        return playhead(*words, environ=self.environ, cwd=self.work)

    def record(self, *words: str) -> list[str]:
        """What the agent printed, line by line."""
        done = self.playhead("record", AGENT.name, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def point(self, number: int) -> str:
        """The step that is a request of a model, by its number among those."""
        with stored(self.folder, "last") as [run]:
            chats = [step.number for step in run.steps if step.span.name.startswith("chat")]
            return f"{run.name}:{chats[number]}"

    def kill(self, request: Request) -> bool:
        if self.agent is not None and len(self.provider.requests) > self.dies_at:
            self.agent.send_signal(signal.SIGKILL)
        return False

    def traced(self) -> list[str]:
        """What servers on stdio have done since this was last asked."""
        trace = self.folder / "trace"
        found = trace.read_text().splitlines() if trace.exists() else []
        trace.write_text("")
        return found

    def require_identical(self) -> None:
        """The last run is as good a record as any."""
        done = self.playhead("replay", "last")
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with ScriptedServer() as provider:
        reply = json_reply(openai_chat.completion("well"))
        environ = environment(tmp_path, provider.url, TRACE=str(tmp_path / "trace"))
        for name in ("PLAYHEAD_ENDPOINT", "PLAYHEAD_QUIET"):
            del environ[name]
        made = Stage(tmp_path, provider, environ)
        provider.on(made.kill, lambda request: reply, repeat=True)
        provider.on("/v1/chat/completions", lambda request: reply, repeat=True)
        made.work.mkdir()
        shutil.copy(AGENT, made.work)
        yield made


LOOKS = [f"look {number}" for number in range(STEPS + 1)]


def counts(lines: list[str]) -> list[str]:
    """The numbers of the calls, as the server has counted them."""
    return [line.partition("call ")[2].partition(",")[0] for line in lines if "call " in line]


def test_a_server_that_only_reads_is_started_and_told_what_it_was_told(stage):
    printed = stage.record("stdio", str(SERVER), "look")
    assert stage.traced() == ["started", *LOOKS]
    done = stage.playhead("fork", stage.point(2), "--edit", "request.model=other")
    assert done.returncode == 0, done.stderr
    assert stage.provider.requests[STEPS].json["model"] == "other"
    assert stage.traced() == ["started", *LOOKS]
    lines = done.stdout.splitlines()
    assert lines[0] == printed[3]  # what a look gave that is on the tape, told at the edited step
    assert counts(lines) == ["3", "4", "5"]
    assert lines[1:] != printed[4:]
    stage.require_identical()


def test_a_server_that_may_have_written_is_told_nothing_unless_the_user_says_so(stage):
    stage.record("stdio", str(SERVER), "order")
    point = stage.point(1)
    assert stage.traced() == ["started"]
    refused = stage.playhead("fork", point)
    assert refused.returncode == 2
    assert "tools/call order may not be repeated, and its server python" in refused.stderr
    assert f"playhead fork {point} --reopen again" in refused.stderr
    assert stage.traced() == []
    assert len(stage.provider.requests) == STEPS
    fresh = stage.playhead("fork", point, "--reopen", "fresh")
    assert fresh.returncode == 0, fresh.stderr
    assert counts(fresh.stdout.splitlines()) == ["2", "1", "2", "3"]
    again = stage.playhead("fork", point, "--reopen", "again")
    assert counts(again.stdout.splitlines()) == ["2", "3", "4", "5"]
    assert stage.traced() == ["started"] * 2


@pytest.mark.acceptance
def test_a_call_of_a_server_is_edited(stage):
    stage.record("stdio", str(SERVER), "look")
    with stored(stage.folder, "last") as [run]:
        look = [step.number for step in run.steps if step.span.name == "tools/call look"][1]
    done = stage.playhead("fork", f"last:{look}", "--edit", "request.params.arguments.number=77")
    assert done.returncode == 0, done.stderr
    assert "order 77, call 2" in done.stdout


@pytest.mark.acceptance
def test_a_dead_run_goes_on_with_its_server(stage):
    stage.dies_at = 2
    words = (AGENT.name, "stdio", str(SERVER), "look")
    stage.agent = start_agent(*words, environ=stage.environ, cwd=stage.work)
    assert stage.agent.wait(PATIENCE_S) == -signal.SIGKILL
    stage.agent = None
    assert stage.traced() == ["started", *LOOKS[:3]]
    done = stage.playhead("resume")
    assert done.returncode == 0, done.stderr
    assert stage.traced() == ["started", *LOOKS]
    assert counts(done.stdout.splitlines())[-2:] == ["4", "5"]


@pytest.mark.acceptance
def test_a_session_over_http_is_begun_anew(stage):
    with over_http() as url:
        stage.record("http", url, "order")
        done = stage.playhead("fork", stage.point(1))
    assert done.returncode == 0, done.stderr
    # The server is no child of the program: what it was told is not told again.
    assert counts(done.stdout.splitlines())[-3:] == ["6", "7", "8"]
    stage.require_identical()


@pytest.mark.parametrize("kind", [long("grpc"), "grpc.aio"])
def test_a_channel_that_was_played_goes_live(stage, kind):
    with GrpcServer() as server:
        printed = stage.record(kind, server.target, "order")
        assert printed == [*(f"{n} {n + 1}:order {n} well" for n in range(STEPS)), "5:order 4"]
        done = stage.playhead("fork", stage.point(2))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["2 3:order 2 well", "3 6:order 3 well", "7:order 4"]
    stage.require_identical()


STREAMS = {
    "websocket": (WebSocketServer, lambda server: server.url("/chat"), lambda n: f"order {n}"[::-1]),
    "grpc": (GrpcServer, lambda server: server.target, lambda n: f"order {n}"),
}


@pytest.mark.parametrize(
    "kind",
    [
        "websocket",
        pytest.param("websocket.sync", marks=pytest.mark.acceptance),
        pytest.param("grpc.stream", marks=pytest.mark.acceptance),
        pytest.param("grpc.aio.stream", marks=pytest.mark.acceptance),
    ],
)
def test_a_connection_is_begun_anew_only_where_the_user_says_so(stage, kind):
    serve, where_of, said = STREAMS[kind.partition(".")[0]]
    with serve() as server:
        where = where_of(server)
        printed = stage.record(kind, where, "order")
        assert printed == [*(f"{n} {said(n)} well" for n in range(STEPS)), said(STEPS)]
        point = stage.point(2)
        refused = stage.playhead("fork", point)
        assert refused.returncode == 2
        assert f"{where} is still open there" in refused.stderr.replace("/test.Service/List", "")
        assert "hint: send it again: --on-unknown resend" in refused.stderr
        skipped = stage.playhead("fork", point, "--on-unknown", "skip")
        assert skipped.returncode != 0
        assert "was open where the tape ends\nhint: it was not begun anew" in skipped.stderr
        assert len(stage.provider.requests) == STEPS
        done = stage.playhead("fork", point, "--on-unknown", "resend")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == printed[2:]
    assert len(stage.provider.requests) == STEPS + 2


@pytest.mark.acceptance
@pytest.mark.parametrize("kind", ["websocket", "grpc.aio.stream"])
def test_a_dead_run_begins_its_connection_anew(stage, kind):
    serve, where_of, said = STREAMS[kind.partition(".")[0]]
    stage.dies_at = 2
    with serve() as server:
        words = (AGENT.name, kind, where_of(server), "order")
        stage.agent = start_agent(*words, environ=stage.environ, cwd=stage.work)
        assert stage.agent.wait(PATIENCE_S) == -signal.SIGKILL
        stage.agent = None
        refused = stage.playhead("resume")
        assert "is still open there: to go on, it is begun anew and told all again" in refused.stderr
        done = stage.playhead("resume", "--on-unknown", "resend")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [*(f"{n} {said(n)} well" for n in (2, 3)), said(STEPS)]


@pytest.mark.acceptance
def test_a_child_is_started_anew_only_where_the_user_says_so(stage):
    stage.record("child", "-", "order")
    point = stage.point(2)
    refused = stage.playhead("fork", point)
    assert refused.returncode == 2
    assert "sh is still open there: to go on, it is begun anew and told all again" in refused.stderr
    assert len(stage.provider.requests) == STEPS
    done = stage.playhead("fork", point, "--on-unknown", "resend")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["2 3:order 2 well", "3 4:order 3 well", "5:order 4"]
    assert len(stage.provider.requests) == STEPS + 2
