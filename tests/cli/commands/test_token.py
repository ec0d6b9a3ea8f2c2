"""What `playhead token create` prints works as it is printed, and it says whom it shuts out."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from support.starting.cli import CommandLine, Done

from playhead_cli.running.agent import delivering_to, recorded_environment
from playhead_core.settings import resolve
from playhead_exporter.shipping.endpoint_answers import Accepted, Unwelcome
from playhead_exporter.shipping.transports import probe
from playhead_receiver.config.configuration import Access, Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.system.writer_lock import running


@pytest.fixture
def receiver(playhead: CommandLine) -> Iterator[Receiver]:
    addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
    guarded = Configuration(addresses, Access(guarded=True))
    with Receiver(playhead.data_dir, guarded) as receiver:
        yield receiver


def exported(done: Done) -> dict[str, str]:
    """The variables that a shell has after what was printed."""
    lines = [shlex.split(line) for line in done.err.splitlines() if line.startswith("export ")]
    return dict(word.split("=", 1) for _, word in lines)


def typed(done: Done, program: str) -> list[str]:
    """The words of the printed command of a program."""
    return next(shlex.split(line) for line in done.err.splitlines() if line.startswith(f"{program} "))


def test_an_agent_delivers_with_the_variables_that_are_printed(
    playhead: CommandLine, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    made = playhead("token", "create", "agents")
    assert made.out.startswith("ph_") and len(made.lines) == 1
    variables = exported(made)
    settings = resolve(variables).settings
    assert settings.endpoint == receiver.http_endpoint
    assert isinstance(probe(settings), Accepted)
    without = resolve({"PLAYHEAD_ENDPOINT": settings.endpoint}).settings
    assert isinstance(probe(without), Unwelcome)
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"):
        monkeypatch.setenv(name, variables[name])
    with TracerProvider().get_tracer("other").start_as_current_span("work") as span:
        pass
    exporter = OTLPSpanExporter()
    assert exporter.export([span]) is SpanExportResult.SUCCESS  # type: ignore[list-item]
    exporter.shutdown()


def test_a_reader_reads_with_what_is_printed(playhead: CommandLine, receiver: Receiver):
    made = playhead("token", "create", "viewers", "--scope", "read")
    token = exported(made)["PLAYHEAD_TOKEN"]
    _, _, header, url = typed(made, "curl")
    name, _, value = header.replace("$PLAYHEAD_TOKEN", token).partition(": ")
    assert httpx.get(url, headers={name: value}, timeout=60).status_code == 200
    assert httpx.get(url, timeout=60).status_code == 401
    assert typed(made, "playhead") == ["playhead", "mcp", "--url", receiver.query_endpoint]
    said = json.loads(playhead("token", "create", "more", "--scope", "read", "--json").out)
    assert said["variables"] == {"PLAYHEAD_TOKEN": said["token"]}
    assert said["query"] == receiver.query_endpoint


def test_a_token_for_reading_in_the_shell_does_not_shut_out_what_is_recorded_there(
    playhead: CommandLine, receiver: Receiver
):
    reads = exported(playhead("token", "create", "viewers", "--scope", "read"))
    sends = exported(playhead("token", "create", "agents"))
    here = {"PLAYHEAD_DATA_DIR": str(playhead.data_dir)}
    found = running(playhead.data_dir)
    assert found is not None
    for token in (reads["PLAYHEAD_TOKEN"], sends["PLAYHEAD_TOKEN"], "unknown", ""):
        resolved = resolve({**here, "PLAYHEAD_TOKEN": token})
        settings = delivering_to(resolved.settings, found)
        assert isinstance(probe(settings), Accepted)
        wanted = sends["PLAYHEAD_TOKEN"] if token == sends["PLAYHEAD_TOKEN"] else found.key
        assert settings.token == wanted
        assert (
            recorded_environment({"PLAYHEAD_TOKEN": token}, resolved, found)["PLAYHEAD_TOKEN"] == wanted
        )


def test_the_first_token_says_whom_it_shuts_out(playhead: CommandLine, receiver: Receiver):
    made = playhead("token", "create", "viewers", "--scope", "read")
    found = running(playhead.data_dir)
    assert found is not None
    assert f"process {found.pid} asks for a token from now on: agents, viewers, Collectors" in made.err
    assert "what agents record without one waits in their spool" in made.err
    assert "agents need a token: playhead token create agents --scope ingest" in made.err
    assert "asks for a token" not in playhead("token", "create", "agents").err


def test_where_nothing_runs_the_recipe_is_that_of_the_next_receiver(
    playhead: CommandLine, tmp_path: Path
):
    made = playhead("token", "create", "agents", "--scope", "ingest", "--scope", "read")
    assert exported(made)["PLAYHEAD_ENDPOINT"] == "http://127.0.0.1:4318"
    assert typed(made, "curl")[-1] == "http://127.0.0.1:4319/v1/runs"
    assert "the next playhead up requires a token" in made.err
