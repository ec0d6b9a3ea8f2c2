"""OpenTelemetry's own exporters lose nothing: what was made is what is stored, span by span."""

from pathlib import Path
from typing import Any

import pytest
from support.long import long
from support.outside.interop import (
    SPANS_PER_TRACE,
    ClosedDoor,
    Relay,
    Sender,
    javascript_sender,
    python_sender,
    stored_spans,
)
from support.servers import ports
from support.starting.running import until

from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver

TRACES = 40
START = {"python": python_sender, "javascript": javascript_sender}
QUICK = [("python", "grpc"), ("python", "http")]
LONG = [
    *(
        ("python", transport)
        for transport in ("grpc+gzip", "http+gzip", "http+deflate", "json", "json+gzip")
    ),
    *(
        ("javascript", transport + packed)
        for transport in ("grpc", "proto", "json")
        for packed in ("", "+gzip")
    ),
]
RETRYING = [one for one in [*QUICK, *LONG] if "+" not in one[1] and one != ("javascript", "grpc")]
"""The exporter for JavaScript over gRPC gives a batch up with the first refusal."""


def endpoint_of(receiver: Receiver, transport: str) -> str:
    return receiver.grpc_endpoint if transport.startswith("grpc") else receiver.http_endpoint


def port_of(endpoint: str) -> int:
    return int(endpoint.rpartition(":")[2])


def differences(left: Any, right: Any, where: str = "") -> list[tuple[str, Any, Any]]:
    """Where two spans differ."""
    if not isinstance(left, dict) or not isinstance(right, dict):
        return [] if left == right else [(where, left, right)]
    pairs = [(key, left.get(key, "-"), right.get(key, "-")) for key in {**left, **right}]
    return [one for key, *both in pairs for one in differences(*both, f"{where}/{key}")]


def check(receiver: Receiver, sender: Sender, traces: int) -> None:
    """All that was made is there, as it was made."""
    made, stored = sender.made(), stored_spans(receiver.store)
    assert len(made) == traces * SPANS_PER_TRACE
    assert set(stored) == set(made)
    for ids, span in made.items():
        assert differences(stored[ids], span) == []


def deliver(folder: Path, language: str, transport: str) -> None:
    with (
        Receiver(folder / "data", Configuration(Addresses(http_port=0, grpc_port=0))) as receiver,
        START[language](transport, endpoint_of(receiver, transport), folder) as sender,
    ):
        sender.send(TRACES)
        check(receiver, sender, TRACES)


def restart(folder: Path, language: str, transport: str, *, missed: bool) -> None:
    """Stop the receiver between two exports, and start it again at the same place.

    ``missed``: the second one begins while nobody is there.
    """
    data = folder / "data"
    same = Configuration(Addresses(ports.free(), ports.free()))
    with Receiver(data, same) as receiver:
        endpoint = endpoint_of(receiver, transport)
    with START[language](transport, endpoint, folder) as sender:
        with Receiver(data, same):
            sender.send(5)
        if missed:
            with ClosedDoor(port_of(endpoint)):
                sender.begin(5)
        with Receiver(data, same) as receiver:
            if not missed:
                sender.begin(5)
            sender.sent()
            check(receiver, sender, 10)


@pytest.mark.parametrize(("language", "transport"), [("python", "grpc"), long("python", "http")])
def test_every_span_is_stored_as_it_was_made(tmp_path: Path, language: str, transport: str):
    deliver(tmp_path, language, transport)


def test_what_is_sent_while_the_receiver_restarts_is_sent_again(tmp_path: Path):
    restart(tmp_path, "python", "http", missed=True)


@pytest.mark.acceptance
@pytest.mark.parametrize(("language", "transport"), LONG)
def test_every_span_is_stored_by_whatever_way(tmp_path: Path, language: str, transport: str):
    deliver(tmp_path, language, transport)


@pytest.mark.acceptance
@pytest.mark.parametrize(("language", "transport"), RETRYING)
def test_nothing_is_lost_by_a_restart(tmp_path: Path, language: str, transport: str):
    restart(tmp_path, language, transport, missed=True)


@pytest.mark.acceptance
@pytest.mark.parametrize(("language", "transport"), [*QUICK, *LONG])
def test_a_connection_of_before_a_restart_is_no_obstacle(tmp_path: Path, language: str, transport: str):
    restart(tmp_path, language, transport, missed=False)


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("language", "transport"), [*QUICK, ("javascript", "grpc"), ("javascript", "proto")]
)
@pytest.mark.parametrize("onwards", ["grpc", "http"])
def test_a_relay_in_between_changes_nothing(tmp_path: Path, language: str, transport: str, onwards: str):
    with Receiver(tmp_path / "data", Configuration(Addresses(http_port=0, grpc_port=0))) as receiver:
        endpoint = f"http://{receiver.grpc_endpoint}" if onwards == "grpc" else receiver.http_endpoint
        with Relay(endpoint, onwards, tmp_path) as relay:
            entrance = relay.grpc_endpoint if transport == "grpc" else relay.http_endpoint
            with START[language](transport, entrance, tmp_path) as sender:
                sender.send(TRACES)
        check(receiver, sender, TRACES)


@pytest.mark.acceptance
@pytest.mark.parametrize("onwards", ["grpc", "http"])
def test_a_relay_keeps_what_comes_while_the_receiver_restarts(tmp_path: Path, onwards: str):
    data = tmp_path / "data"
    same = Configuration(Addresses(ports.free(), ports.free()))
    with Receiver(data, same) as receiver:
        endpoint = f"http://{receiver.grpc_endpoint}" if onwards == "grpc" else receiver.http_endpoint
    with Relay(endpoint, onwards, tmp_path) as relay:
        with python_sender("http", relay.http_endpoint, tmp_path) as sender:
            sender.send(5)
            until(lambda: "will retry" in relay.log(), "the relay has tried")
            with Receiver(data, same) as receiver:
                sender.send(5)
                all_spans = 10 * SPANS_PER_TRACE
                until(lambda: receiver.intake.counted.spans >= all_spans, "the relay is late", 60)
                check(receiver, sender, 10)
