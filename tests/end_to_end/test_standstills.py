"""A silent stream, a hung tool, a dead process and a waiting person are told apart."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.servers.scripted import (
    Gate,
    Reply,
    Request,
    ScriptedServer,
    anthropic_messages,
    json_reply,
    openai_chat,
    openai_responses,
    sse,
    sse_reply,
)
from support.starting.running import AGENTS, agent_environment, start_agent, until

from playhead_receiver.config.configuration import Addresses, Configuration, Watching
from playhead_receiver.queries.activity import activity_of
from playhead_receiver.queries.language import read_language
from playhead_receiver.queries.matching_runs import ask_runs
from playhead_receiver.server import Receiver

NAMES = [
    line.removeprefix("def ").partition("(")[0]
    for line in (AGENTS / "standstills.py").read_text("utf-8").splitlines()
    if line.startswith(("def stream_", "def tool_", "def person_", "def dead_"))
]
ASKED = [
    line.removeprefix("def ").partition("(")[0]
    for line in (AGENTS / "standstills.py").read_text("utf-8").splitlines()
    if line.startswith("def asked_")
]
KILLED = [
    "killed_stream_chat",
    "killed_stream_claude_async",
    "killed_tool_function",
    "killed_tool_marked",
    "killed_tool_process",
    "killed_person_input",
]
WANTED = {
    "stream": ("running", "stream", "silent_stream"),
    "tool": ("running", "tool", "hung_tool"),
    "person": ("running", "person", ""),
    "asked": ("running", "person", ""),
    "dead": ("interrupted", "", ""),
    "killed": ("interrupted", "", ""),
}
RULES = {
    "person_before_a_tool": "pause tool=pay",
    "person_before_a_model": "pause model=o9",
    "person_before_a_model_async": "pause model=*",
}
DYING = {"dead_in_code": "code", "dead_in_a_model": "model"}
"""What these do when they are killed."""
AT_A_TIME = 4


def provider(server: ScriptedServer, never: Gate) -> None:
    """Streams fall silent, tools are called once, and whoever says hello twice is not answered."""

    def answer(request: Request) -> Reply:
        body = request.json
        is_claude = request.path == "/v1/messages"
        if body.get("stream"):
            whole = openai_chat.completion("a b c d")
            events = sse.chat(openai_chat.chunks(whole))
            if is_claude:
                events = sse.events(anthropic_messages.events(anthropic_messages.message("a b c d")))
            if request.path == "/v1/responses":
                said = openai_responses.response([openai_responses.message("a b c d")])
                events = sse.events(openai_responses.events(said))
            return sse_reply([*list(events)[:3], never])
        if len(body["messages"]) == 2:
            return Reply(before=never)
        if len(body["messages"]) == 3:
            return json_reply(openai_chat.completion("I do not know."))
        if is_claude:
            return json_reply(
                anthropic_messages.message([anthropic_messages.tool_use("c", "search_docs", {})])
            )
        call = openai_chat.tool_call("c", "search_docs", {})
        return json_reply(openai_chat.completion(tool_calls=[call]))

    server.on("/held", Reply(before=never), repeat=True)
    server.on(lambda _: True, answer, repeat=True)


def told(names: Sequence[str], folder: Path, level: str) -> list[str]:
    """Start these agents together and return those that are not told as they should be."""
    never = Gate()
    addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
    watching = Watching(stuck_s=1.0, stream_s=1.0)
    with ScriptedServer() as server:
        provider(server, never)
        with Receiver(folder / "data", Configuration(addresses, watching=watching)) as receiver:
            environ = agent_environment(receiver.http_endpoint, folder / "spool", server.url)
            environ |= {"PLAYHEAD_LEVEL": level, "PLAYHEAD_HEARTBEAT_MS": "1000"}
            agents = {
                name: start_agent(
                    "standstills.py",
                    name,
                    environ=environ | {"PLAYHEAD_AGENT": name, "PLAYHEAD_CONTROL": RULES.get(name, "")},
                    cwd=folder,
                    stdin=subprocess.PIPE,
                )
                for name in names
            }

            def stands(name: str) -> tuple[str, str, str]:
                run = next(ask_runs(receiver.store, read_language(f"agent:{name}")), None)
                now = None if run is None else activity_of(receiver.store, run)
                if run is None:
                    return "", "", ""
                return run.status, "" if now is None else now.what, run.stuck

            def becomes(name: str, wanted: tuple[str, str, str]) -> bool:
                try:
                    return until(lambda: stands(name) == wanted, name)
                except AssertionError:
                    return False

            try:
                if line := agents.get("person_after_another_line"):
                    assert line.stdin is not None
                    line.stdin.write(b"yes\n")
                    line.stdin.flush()
                for name in names:
                    if name.startswith("killed_") or name in DYING:
                        kind = name.removeprefix("killed_").partition("_")[0]
                        doing = DYING.get(name) or WANTED[kind][1]
                        until(
                            lambda name=name, doing=doing: stands(name)[1] == doing, f"{name}: {doing}"
                        )
                        is_asked = name == "killed_stream_claude_async"
                        agents[name].send_signal(signal.SIGTERM if is_asked else signal.SIGKILL)
                return [
                    f"{level} {name}: {stands(name)}"
                    for name in names
                    if not becomes(name, WANTED[name.partition("_")[0]])
                ]
            finally:
                for agent in agents.values():
                    agent.kill()
                    agent.wait()
                never.open()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("level", ["causal", "strict"])
def test_a_person_who_is_asked_inside_a_marked_tool_is_waited_for(level: str, tmp_path: Path):
    assert told(ASKED, tmp_path, level) == []


@pytest.mark.timeout(600)
def test_a_person_is_waited_for_where_input_is_not_recorded(tmp_path: Path):
    waiting = ["person_input", "person_in_a_thread", "person_after_another_line", "asked_by_input"]
    assert told(waiting, tmp_path, "exchanges") == []


@pytest.mark.acceptance
@pytest.mark.timeout(1800)
def test_forty_standstills_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    names, wrong = [*NAMES, *KILLED], list[str]()
    for number, first in enumerate(range(0, len(names), AT_A_TIME)):
        folder = tmp_path / str(number)
        folder.mkdir()
        level = ("causal", "strict")[number % 2]
        wrong += told(names[first : first + AT_A_TIME], folder, level)
    with capsys.disabled():
        print(
            f"\n{len(names) - len(wrong)} of {len(names)} standstills are told apart", *wrong, sep="\n"
        )
    assert len(names) == 40 and not wrong
