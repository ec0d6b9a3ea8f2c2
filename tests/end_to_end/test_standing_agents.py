"""Loops and standstills of running agents: lists, what they do now, alerts, the rule that stops one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.servers.scripted import Gate, Reply, Request, ScriptedServer, json_reply, openai_chat, sse
from support.servers.scripted import sse_reply as streamed
from support.starting.running import agent_environment, start_agent, until

from playhead_receiver.config.configuration import Addresses, Configuration, Watching
from playhead_receiver.queries.activity import activity_of
from playhead_receiver.queries.language import read_language
from playhead_receiver.queries.matching_runs import ask_runs
from playhead_receiver.server import Receiver

SECRET = "a key of the test"
SEARCHES = 20
PATIENCE_S = 180.0
"""Several agents start at once."""


def searching(
    until_round: int, hold_at: int = 0, gate: Gate | None = None
) -> Callable[[Request], Reply]:
    """A model that calls the same search in each answer, until a round. ``gate``: before one of them."""
    ids = itertools.count()

    def answer(request: Request) -> Reply:
        rounds = sum(one["role"] == "tool" for one in request.json["messages"])
        if rounds >= until_round:
            return json_reply(openai_chat.completion("I do not know."))
        call = {"name": "search_docs", "arguments": '{"q": "refund policy"}'}
        tools = [{"id": f"c{next(ids)}", "type": "function", "function": call}]
        reply = json_reply(openai_chat.completion(None, tool_calls=tools))
        return reply.but(before=gate) if gate is not None and rounds == hold_at else reply

    return answer


def receiving(folder: Path, **watching: Any) -> Receiver:
    addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
    return Receiver(folder, Configuration(addresses, watching=Watching(**watching)))


def names(receiver: Receiver, query: str) -> list[str]:
    return [run.name for run in ask_runs(receiver.store, read_language(query))]


def becomes(value: Callable[[], Any], wanted: Any) -> None:
    """Wait for a value; the receiver in this process needs most of the time itself."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := value()) != wanted:
        assert time.monotonic() < deadline, (found, wanted)
        time.sleep(0.2)


def verified(alert: Request) -> dict[str, Any]:
    """The payload of an alert, whose signature is right."""
    head = alert.headers
    content = f"{head['webhook-id']}.{head['webhook-timestamp']}.".encode() + alert.body
    digest = hmac.new(SECRET.encode(), content, hashlib.sha256).digest()
    assert head["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"
    return alert.json


def test_a_loop_is_found_while_it_runs_and_reported_once(tmp_path: Path):
    held, told = Gate(), tmp_path / "told.json"
    with ScriptedServer() as provider, ScriptedServer() as hooks:
        provider.on("/v1/chat/completions", searching(SEARCHES, 6, held), repeat=True)
        hooks.on("/hook", Reply(), repeat=True)
        alerts = (
            f"agent:standing loop -> {hooks.url}/hook; agent:other loop -> {hooks.url}/other;"
            f" failure:retrieval/no_results -> tee {told}"
        )
        with receiving(tmp_path / "data", alerts=alerts, secret=SECRET) as receiver:
            environ = agent_environment(receiver.http_endpoint, tmp_path / "spool", provider.url)
            agent = start_agent("standing.py", "loop", environ=environ, cwd=tmp_path)
            held.wait_reached()
            (alert,) = until(lambda: hooks.requests, "the alert")
            said = verified(alert)
            assert (said["kind"], said["rule"], said["run"]["name"]) == (
                "loop",
                "agent:standing loop",
                "standing-1",
            )
            assert (said["found"]["names"], said["found"]["period"]) == (["search_docs"], 1)
            assert b"refund" not in alert.body, "no content of the run"
            until(lambda: names(receiver, "stuck:loop") == ["standing-1"], "it is stuck")
            held.open()
            assert agent.wait(60) == 0
            until(lambda: names(receiver, "loop:yes status:success") == ["standing-1"], "it is found")
            until(lambda: "×20" in receiver.store.resolve("last").loop_names[0], "all rounds")
            assert names(receiver, "stuck:yes") == names(receiver, "loop:no") == []
            assert names(receiver, "failure:tool") == names(receiver, "failure:timeout") == []
            for query in ("failure:no_results", "failure:retrieval/no_results failure:any"):
                assert names(receiver, query) == ["standing-1"], query
            url = f"{receiver.query_endpoint}/v1/runs"
            (run,) = httpx.get(url, params={"q": "loop:yes"}).json()["runs"]
            assert (run["loop_names"], run["now"], run["stuck"]) == (["search_docs ×20"], None, "")
            assert run["failure_codes"] == ["retrieval/no_results"]
            (loop,) = httpx.get(f"{url}/standing-1/failures").json()["loops"]
            assert (loop["times"], loop["first"], loop["last"]) == (20, "1.1", "20.1")
            metrics = httpx.get(f"{receiver.query_endpoint}/metrics").text
            assert "playhead_loops_found_total 1.0" in metrics
            assert 'playhead_alerts_sent_total{rule="1"} 1.0' in metrics
            assert len(hooks.requests) == 1
            until(told.exists, "the command")
    assert json.loads(told.read_bytes())["found"]["code"] == "no_results"


@pytest.mark.parametrize("level", [pytest.param("strict", marks=pytest.mark.acceptance), "exchanges"])
def test_the_rule_loop_stops_at_the_third_search(tmp_path: Path, level: str):
    with ScriptedServer() as provider, receiving(tmp_path / "data") as receiver:
        provider.on("/v1/chat/completions", searching(SEARCHES), repeat=True)
        environ = agent_environment(receiver.http_endpoint, tmp_path / "spool", provider.url)
        environ |= {"PLAYHEAD_CONTROL": "stop loop", "PLAYHEAD_LEVEL": level}
        agent = start_agent("standing.py", "loop", environ=environ, cwd=tmp_path, stdout=subprocess.PIPE)
        out, _ = agent.communicate(timeout=60)
        assert (agent.returncode, out.split()) == (1, [b"searched"] * 3)
        assert len(provider.requests) == 3


def test_standstills_are_told_apart(tmp_path: Path):
    never = Gate()
    chunks = sse.chat(openai_chat.chunks(openai_chat.completion("a b c d")))
    with ScriptedServer() as provider:
        provider.on(
            lambda one: b'"stream": ' in one.body or b'"stream":t' in one.body,
            streamed([*list(chunks)[:2], never]),
        )
        provider.on(lambda one: b"tool: what" in one.body, searching(1), repeat=True)
        provider.on(lambda one: b"person: what" in one.body, searching(0), repeat=True)
        provider.on(lambda one: b"dead: what" in one.body, Reply(before=never))
        with receiving(tmp_path / "data", stuck_s=0.5, stream_s=0.5) as receiver:
            environ = agent_environment(receiver.http_endpoint, tmp_path / "spool", provider.url)
            agents = {
                how: start_agent(
                    "standing.py",
                    how,
                    environ=environ | {"PLAYHEAD_AGENT": how},
                    cwd=tmp_path,
                    stdin=subprocess.PIPE,
                )
                for how in ("person", "stream", "tool", "dead")
            }
            try:

                def stands(how: str) -> tuple[str, str, str, str]:
                    run = next(ask_runs(receiver.store, read_language(f"agent:{how}")), None)
                    if run is None:
                        return "", "", "", ""
                    now = activity_of(receiver.store, run)
                    doing = ("", "") if now is None else (now.what, now.name)
                    return run.status, *doing, run.stuck

                becomes(lambda: stands("dead")[1], "model")
                agents["dead"].send_signal(signal.SIGKILL)
                for how, wanted in (
                    ("stream", ("running", "stream", "gpt-4o", "silent_stream")),
                    ("tool", ("running", "tool", "search_docs", "hung_tool")),
                    ("person", ("running", "person", "input", "")),
                    ("dead", ("interrupted", "", "", "")),
                ):
                    becomes(lambda: stands(how), wanted)  # noqa: B023
                assert sorted(names(receiver, "stuck:yes")) == ["stream-1", "tool-1"]
                assert names(receiver, "stuck:hung_tool") == ["tool-1"]
                metrics = httpx.get(f"{receiver.query_endpoint}/metrics").text
                assert 'playhead_runs_stuck{reason="hung_tool"} 1.0' in metrics
            finally:
                for agent in agents.values():
                    agent.kill()
                    agent.wait()
                never.open()
