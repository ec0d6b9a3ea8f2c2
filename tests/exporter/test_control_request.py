"""A command of the same user asks a recording process, through its spool, to accept commands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.servers.endpoints import http_endpoint
from support.starting.running import PATIENCE_S, until
from support.tapes.spools import chunk, tape_exporter_for

from playhead_exporter.spool import SpoolFolders
from playhead_exporter.spool.control_request import MOST_BYTES, ControlRequest


@pytest.fixture
def request_to(settings, tape_exporter):
    """The request to a process that has recorded a fact, and the names that it was asked by."""
    asked: list[str] = []

    def on_control_request(by: str) -> str:
        asked.append(by)
        return f"not for {by}" if by == "eve" else ""

    tape_exporter.on_control_request = on_control_request
    tape_exporter.sink.append(chunk())
    return ControlRequest(SpoolFolders.of(settings), tape_exporter.sink.instance), asked


def path_of(settings, tape_exporter) -> Path:
    home = SpoolFolders.of(settings).active_home(tape_exporter.sink.instance)
    return home.with_name(f"{home.name}.control")


def test_a_process_hears_who_asks_with_its_next_fact(request_to, tape_exporter):
    request, asked = request_to
    assert request.make("anna@desk")
    tape_exporter.sink.append(chunk())
    until(lambda: asked == ["anna@desk"], "it hears")
    assert request.taken() is None
    assert request.refusal() == ""


def test_a_process_says_why_it_refuses(request_to, tape_exporter):
    request, _ = request_to
    request.make("eve")
    tape_exporter.sink.append(chunk())
    assert until(request.refusal, "it refuses") == "not for eve"
    request.make("anna")
    assert request.refusal() == ""


def test_what_is_raised_is_a_refusal(request_to, tape_exporter):
    request, _ = request_to

    def fails(by: str) -> str:
        raise ValueError("broken")

    tape_exporter.on_control_request = fails
    request.make("anna")
    tape_exporter.sink.append(chunk())
    assert until(request.refusal, "it refuses") == "ValueError('broken')"


def test_eventlet_needs_control_from_the_start(request_to, tape_exporter):
    request, asked = request_to
    tape_exporter.prepare_for_eventlet()
    request.make("anna")
    tape_exporter.sink.append(chunk())
    assert "eventlet" in until(request.refusal, "it refuses")
    assert asked == []


def test_a_process_that_has_ended_is_not_asked(settings):
    with tape_exporter_for(settings) as tape_exporter:
        tape_exporter.sink.append(chunk())
        instance = tape_exporter.sink.instance
    request = ControlRequest(SpoolFolders.of(settings), instance)
    assert not request.make("anna")
    assert not path_of(settings, tape_exporter).exists()


def test_nothing_of_a_request_outlives_a_process_whose_tape_is_delivered(settings):
    with http_endpoint() as endpoint:
        delivers = replace(settings, endpoint=endpoint.url)
        with tape_exporter_for(delivers) as tape_exporter:
            tape_exporter.sink.append(chunk())
            request = ControlRequest(SpoolFolders.of(settings), tape_exporter.sink.instance)
            request.refuse("not now")
            assert request.refusal() == "not now"
            tape_exporter.close(PATIENCE_S)
            assert request.refusal() == ""


def write(path: Path, mode: int = 0o600, text: str = "eve") -> None:
    path.write_text(text)
    path.chmod(mode)


def link(path: Path) -> None:
    write(path.with_suffix(".target"))
    path.symlink_to(path.with_suffix(".target"))


def of_another_user(path: Path) -> None:
    write(path)
    if os.getuid() == 0:  # nobody else can give a file away
        os.chown(path, 1, 1)
    else:
        path.chmod(0o622)


@pytest.mark.parametrize(
    "hostile",
    [
        link,
        of_another_user,
        pytest.param(os.mkfifo, id="pipe"),
        pytest.param(lambda path: write(path, 0o602), id="others may write"),
        pytest.param(lambda path: write(path, text="x" * (MOST_BYTES + 1)), id="too large"),
        pytest.param(lambda path: path.mkdir(), id="folder"),
    ],
)
def test_what_is_no_request_of_the_user_is_none(hostile, settings, request_to, tape_exporter):
    request, asked = request_to
    path = path_of(settings, tape_exporter)
    hostile(path)
    tape_exporter.sink.append(chunk())
    until(lambda: path.is_dir() or not path.exists(), "it is looked at")
    if path.is_dir():
        assert request.taken() is None
        path.rmdir()
    request.make("anna")
    tape_exporter.sink.append(chunk())
    until(lambda: asked, "it hears")
    assert asked == ["anna"]
