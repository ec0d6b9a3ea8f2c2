"""The alert of a loop is at the webhook within a second of the request that closes its third round."""

from __future__ import annotations

import itertools
import subprocess
import time
from collections import defaultdict
from pathlib import Path

import pytest
from support.servers.scripted import Gate, Reply, Request, ScriptedServer, json_reply, openai_chat
from support.starting.running import agent_environment, start_agent, until

from playhead_receiver.config.configuration import Addresses, Configuration, Watching
from playhead_receiver.server import Receiver

AGENTS = 3
LOOPS_EACH = 20
"""A rule sends at most so many alerts a minute."""
ROUNDS = 4
BEFORE = 3
"""Calls before a loop begins."""


class Model:
    """Names the next tool of a loop. After the third round it thinks until the alert is there."""

    def __init__(self) -> None:
        self.closed_s: dict[str, float] = {}
        self.gates: defaultdict[str, Gate] = defaultdict(Gate)
        self._ids = itertools.count()

    def __call__(self, request: Request) -> Reply:
        messages = request.json["messages"]
        run = messages[0]["content"]
        period = int(run.rpartition("-")[2]) % 6 + 1
        results = sum(one["role"] == "tool" for one in messages)
        if results == BEFORE + 3 * period:
            self.closed_s[run] = time.monotonic()
        if results == BEFORE + ROUNDS * period:
            return json_reply(openai_chat.completion("I do not know."))
        inside = results - BEFORE
        name = f"tool_{inside % period}" if inside >= 0 else f"look_{results}"
        call = openai_chat.tool_call(f"c{next(self._ids)}", name, {"q": "refund"})
        reply = json_reply(openai_chat.completion(f"Attempt {results}.", tool_calls=[call]))
        return reply.but(before=self.gates[run]) if results == BEFORE + 3 * period else reply


@pytest.mark.acceptance
@pytest.mark.timeout(900)
@pytest.mark.parametrize("at_once", [False, True], ids=["one after the other", "at once"])
def test_alerts_arrive_within_a_second_of_the_fact(
    at_once: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    model, alerted_s = Model(), dict[str, float]()

    def hook(request: Request) -> Reply:
        run = request.json["run"]["name"]
        alerted_s.setdefault(run, time.monotonic())
        model.gates[run].open()
        return Reply()

    with ScriptedServer() as provider, ScriptedServer() as hooks:
        provider.on("/v1/chat/completions", model, repeat=True)
        hooks.on("/hook", hook, repeat=True)
        names = [f"loops{number}" for number in range(AGENTS)]
        rules = "; ".join(f"agent:{name} loop -> {hooks.url}/hook" for name in names)
        addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
        configuration = Configuration(addresses, watching=Watching(alerts=rules))
        with Receiver(tmp_path / "data", configuration) as receiver:
            environ = agent_environment(receiver.http_endpoint, tmp_path / "spool", provider.url)
            agents: list[subprocess.Popen[bytes]] = []
            for name in names:
                own = environ | {"PLAYHEAD_AGENT": name}
                agents += [start_agent("loops.py", name, str(LOOPS_EACH), environ=own, cwd=tmp_path)]
                if not at_once:
                    agents[-1].wait(300)
            assert [agent.wait(300) for agent in agents] == [0] * AGENTS
            until(lambda: len(alerted_s) == AGENTS * LOOPS_EACH, "every loop is reported")
    late_s = sorted(alerted_s[name] - closed for name, closed in model.closed_s.items())
    count = len(late_s)
    with capsys.disabled():
        marks = ", ".join(f"p{one} {late_s[count * one // 100]:.2f} s" for one in (50, 90, 95))
        print(f"\n{count} alerts: {marks}, max {late_s[-1]:.2f} s after the fact")
    assert count == AGENTS * LOOPS_EACH and late_s[count * 95 // 100] < 1.0
