"""`opentelemetry-instrument python agent.py` with the agent distributions and nothing else of ours.

The environment is made anew from the package registry, so this takes a minute.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.servers.otlp_server import OtlpServer, attributes
from support.servers.scripted import (
    Request,
    ScriptedServer,
    json_reply,
    openai_chat,
    openai_error,
    sse,
    sse_reply,
)
from support.starting.running import (
    AGENTS,
    agent_environment,
    exit_codes,
    instances,
    only_run,
    push_leftovers,
    receiver,
    until,
    whole_tape,
)

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]
ROOT = Path(__file__).parent.parent.parent
ROOMS = ("semconv", "instrumentation", "exporter", "checkpoint", "agent")


def install(folder: Path, *more: str) -> Path:
    """A virtual environment with what goes into an agent's image and ``more``; its ``bin``."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    rooms = [str(ROOT / room) for room in ROOMS]
    words = ["-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), *rooms, *more]
    subprocess.run([str(folder / "bin" / "python"), *words], check=True)
    return folder / "bin"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("bare") / "venv", "openai", "httpx")


@pytest.fixture(scope="module")
def with_otlp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    more = ("openai", "httpx", "opentelemetry-exporter-otlp-proto-http")
    return install(tmp_path_factory.mktemp("otlp") / "venv", *more)


def script(provider: ScriptedServer) -> None:
    def chat(request: Request):
        body = request.json
        whole = openai_chat.completion(f"answer {len(body['messages'])}", model=body["model"])
        if body.get("stream"):
            return sse_reply(sse.chat(openai_chat.chunks(whole)))
        return json_reply(whole)

    provider.on("/v1/chat/completions", chat, openai_error(429), chat, repeat=True)
    provider.on("/tool", json_reply({"weather": "sunny"}), repeat=True)


def environment(bin: Path, endpoint: str, folder: Path, provider: str, **more: str) -> dict[str, str]:
    environ = agent_environment(endpoint, folder / "spool", provider, **more)
    return {**environ, "PATH": f"{bin}{os.pathsep}{environ['PATH']}", "VIRTUAL_ENV": str(bin.parent)}


def instrument(bin: Path, environ: dict[str, str], folder: Path, *words: str) -> None:
    done = subprocess.run(
        [str(bin / "opentelemetry-instrument"), *words],
        env=environ,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "answer" in done.stdout
    push_leftovers(environ)


def test_nothing_of_a_server_is_installed(bare: Path):
    listed = subprocess.run(
        [str(bare / "python"), "-m", "pip", "list", "--format=json"], capture_output=True, check=True
    )
    names = {one["name"].lower() for one in json.loads(listed.stdout)}
    assert names >= {"playhead-agent", "playhead-instrumentation", "playhead-exporter"}
    servers = {
        "playhead",
        "playhead-receiver",
        "playhead-replay",
        "playhead-analysis",
        "starlette",
        "uvicorn",
        "apsw",
        "grpcio",
    }
    assert not names & servers


@pytest.mark.parametrize("how", ["python", "shebang"])
def test_spans_and_tape_reach_the_receiver(bare: Path, tmp_path: Path, how: str):
    agent = tmp_path / "agent.py"
    agent.write_text(f"#!{bare / 'python'}\n" + (AGENTS / "chatty.py").read_text())
    agent.chmod(0o755)
    words = ["python", "agent.py"] if how == "python" else ["./agent.py"]
    with ScriptedServer() as provider, receiver(tmp_path / "data") as running:
        script(provider)
        environ = environment(bare, running.http_endpoint, tmp_path, provider.url)
        instrument(bare, environ, tmp_path, *words)
        run = only_run(running.store)
        assert (run.status, run.agent, run.errors, run.missing) == ("success", "agent", 0, [])
        assert run.models == ["gpt-5.5"]
        (instance,) = instances(running.store)
        exchanges = list(whole_tape(running.store, instance).exchanges().values())
        assert len(exchanges) == len(provider.requests) == 6
        assert exit_codes(running.store) == [0]
        # A root, four chats, six attempts.
        assert len(list(running.store.spans(bytes.fromhex(run.trace_id)))) == 11


def by_id(server: OtlpServer) -> dict[bytes, dict[str, Any]]:
    return {
        span.span_id: {
            "name": span.name,
            "kind": span.kind,
            "parent": span.parent_span_id,
            "start": span.start_time_unix_nano,
            "end": span.end_time_unix_nano,
            "status": (span.status.code, span.status.message),
            "attributes": attributes(span),
        }
        for span in server.spans()
    }


def test_a_second_endpoint_and_what_is_forwarded_are_equal(with_otlp: Path, tmp_path: Path):
    agent = AGENTS / "chatty.py"
    with (
        ScriptedServer() as provider,
        OtlpServer() as second,
        OtlpServer() as third,
        receiver(tmp_path / "data", forward=(third.url,)) as running,
    ):
        script(provider)
        more = {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
        environ = environment(
            with_otlp,
            running.http_endpoint,
            tmp_path,
            provider.url,
            OTEL_EXPORTER_OTLP_ENDPOINT=second.url,
            **more,
        )
        instrument(with_otlp, environ, tmp_path, "python", str(agent))
        stored = len(list(running.store.spans(bytes.fromhex(only_run(running.store).trace_id))))
        assert stored == 11
        until(lambda: len(by_id(third)) == stored, "all spans are forwarded")
        assert by_id(third) == by_id(second)
        chats = [one for one in by_id(second).values() if one["name"] == "chat gpt-5.5"]
        assert len(chats) == 4
        for chat in chats:
            assert {"gen_ai.input.messages", "gen_ai.output.messages"} <= set(chat["attributes"])
        assert second.largest_bytes <= 4 * 1024 * 1024
        assert third.largest_bytes <= 4 * 1024 * 1024


def test_at_zero_percent_others_get_nothing_and_the_recorder_everything(with_otlp: Path, tmp_path: Path):
    with ScriptedServer() as provider, OtlpServer() as second, receiver(tmp_path / "data") as running:
        script(provider)
        environ = environment(
            with_otlp,
            running.http_endpoint,
            tmp_path,
            provider.url,
            OTEL_TRACES_EXPORTER="otlp",
            OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
            OTEL_EXPORTER_OTLP_ENDPOINT=second.url,
            OTEL_TRACES_SAMPLER="traceidratio",
            OTEL_TRACES_SAMPLER_ARG="0",
        )
        instrument(with_otlp, environ, tmp_path, "python", str(AGENTS / "chatty.py"))
        run = only_run(running.store)
        assert len(list(running.store.spans(bytes.fromhex(run.trace_id)))) == 11
        assert second.spans() == []
