"""A receiver in a recorded process is not part of the program."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from support.tapes.sessions import record

from playhead_core.settings import Settings
from playhead_instrumentation.patching import lanes
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver

ANY = Configuration(Addresses(http_port=0, grpc_port=None, query_port=0))
PROTOBUF = {"content-type": "application/x-protobuf"}


@pytest.mark.parametrize("level", ["exchanges", "causal", "strict"])
def test_what_it_serves_is_not_recorded(tmp_path: Path, level: str):
    def asks(receiver: Receiver) -> None:
        with lanes.Shadow():
            runs = httpx.get(f"{receiver.query_endpoint}/v1/runs").raise_for_status()
            sent = httpx.post(f"{receiver.http_endpoint}/v1/traces", content=b"", headers=PROTOBUF)
        assert (runs.json()["runs"], sent.status_code) == ([], 200)

    def program() -> None:
        asks(before)
        with lanes.Shadow(), Receiver(tmp_path / "inside", ANY) as inside:
            asks(inside)

    with Receiver(tmp_path / "before", ANY) as before:
        _, tape = record(program, settings=Settings(quiet=True, level=level))
    assert [fact.exchange.kind for fact in tape.facts() if fact.exchange is not None] == []
