"""Agents → the real Collector → playhead: tape and spans whole, in order, once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from neighbours.agents import arrived, home_for, record, shape
from neighbours.running import Collector
from support.servers import ports
from support.servers.scripted import Request, ScriptedServer, json_reply, openai_chat
from support.starting.running import (
    agent_environment,
    ended,
    instances,
    only_run,
    receiver,
    run_agent,
    until,
    whole_tape,
)

from playhead_cli.demo.provider import Provider
from playhead_core.settings import resolve
from playhead_exporter.push import push
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver

STEPS = 30


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A provider of its own for each recording: its first answers are refusals."""
    with Provider(pace_s=0.002) as running:
        yield running


@pytest.fixture(scope="module")
def direct(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the agents record without a Collector."""
    folder = tmp_path_factory.mktemp("direct")
    with Provider(pace_s=0.002) as provider, receiver(folder / "data") as running:
        record(home_for(folder, provider, running.http_endpoint))
        found = until(lambda: len(shape(running.store)) == 3 and shape(running.store), "three runs")
    return found


def test_agents_record_by_sidecar_and_gateway(
    provider: Provider, direct: dict[str, Any], tmp_path: Path
):
    with (
        receiver(tmp_path / "data") as running,
        Collector(tmp_path / "gateway", "gateway", receiver=running.http_endpoint) as gateway,
        Collector(tmp_path / "sidecar", "sidecar", receiver=gateway.http) as sidecar,
    ):
        home = home_for(tmp_path, provider, sidecar.http)
        record(home)
        arrived(running.store, direct)
    for run in ("weather_agent-1", "research_agent-1", "refund_agent-1"):
        code, report = home.report(run)
        assert code == 0, report


def test_tokens_are_wanted_and_presented(provider: Provider, direct: dict[str, Any], tmp_path: Path):
    """A Collector with tokens.yaml: an agent without a token is refused, and delivers with one."""
    with (
        receiver(tmp_path / "data") as running,
        Collector(
            tmp_path / "gateway",
            "gateway",
            "tokens",
            receiver=running.http_endpoint,
            AGENTS_TOKEN="of-agents",
            PLAYHEAD_TOKEN="of-the-receiver",
        ) as gateway,
    ):
        home = home_for(tmp_path, provider, gateway.http)
        record(home)
        assert shape(running.store) == {}
        allowed = {**home.environ, "PLAYHEAD_TOKEN": "of-agents"}
        assert home.playhead("spool", "push", env=allowed).returncode == 0
        arrived(running.store, direct)


def test_nothing_is_lost_by_kills_in_the_middle(tmp_path: Path):
    """The receiver is away, the Collector is killed and started again while the agent works."""
    address = Addresses(ports.free(), None)
    endpoint = f"http://127.0.0.1:{address.http_port}"
    asked = 0
    collector = Collector(tmp_path / "otelcol", "gateway", receiver=endpoint)

    def answer(_: Request) -> Any:
        nonlocal asked
        asked += 1
        if asked == 8:
            collector.kill()
        if asked == 18:
            collector.start()
        return json_reply(openai_chat.completion(f"answer {asked}"))

    with ScriptedServer() as model, collector:
        model.on("/v1/chat/completions", answer, repeat=True)
        environ = agent_environment(collector.http, tmp_path / "spool", model.url)
        run_agent("thirty.py", str(STEPS), environ=environ, cwd=tmp_path)
        push(resolve(environ).settings, everything=True)
        collector.kill()
        with Receiver(tmp_path / "data", Configuration(address)) as running:
            collector.start()
            store = running.store
            until(
                lambda: instances(store) and ended(store, instances(store)[0]),
                "the run has arrived",
                120,
            )
            (instance,) = instances(store)
            whole_tape(store, instance)
            trace = only_run(store).trace_id

            def chats() -> int:
                return sum(row.label.call for row in store.outline(bytes.fromhex(trace)))

            until(lambda: chats() == STEPS, "all calls have arrived", 120)
            ids = [row.span_id for row in store.outline(bytes.fromhex(trace))]
            assert len(set(ids)) == len(ids)


def test_a_dead_backend_does_not_hold_the_agents_back(
    provider: Provider, direct: dict[str, Any], tmp_path: Path
):
    """Its queue is full at once: playhead gets everything, once, and no agent sends again."""
    full = {"sending_queue": {"queue_size": 1, "batch": {"min_size": 0, "max_size": 1}}}
    with (
        receiver(tmp_path / "data") as running,
        Collector(
            tmp_path / "otelcol",
            "gateway",
            "backends",
            receiver=running.http_endpoint,
            backends=("otlp_http/other",),
            more={"exporters": {"otlp_http/other": full}},
            OTHER_ENDPOINT=ports.nobody(),
        ) as collector,
    ):
        home = home_for(tmp_path, provider, collector.http)
        record(home)
        arrived(running.store, direct)
        until(lambda: "Sender failed" in collector.log(), "the queue of the backend was full")
        assert json.loads(home.playhead("spool", "ls", "--json").stdout)["pending"] == []
