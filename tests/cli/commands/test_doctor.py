"""`playhead doctor`: the table of boundaries at the level in force, the endpoint, the spool."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import grpc
import pytest
from support.servers.endpoints import GrpcReply, Reply, grpc_endpoint, http_endpoint
from support.starting.cli import CommandLine, refund, store_run

from playhead_cli.doctor import delivery
from playhead_core.boundaries import BOUNDARIES, LEVELS, names, selected
from playhead_core.settings import Settings
from playhead_exporter import open_tape_exporter
from playhead_exporter.shipping.endpoint_answers import TryLater
from playhead_receiver.config.configuration import Access, Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.system.writer_lock import WriterLock

NOBODY = "http://127.0.0.1:9"
"""Where nobody listens."""


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEVEL", "BOUNDARIES"):
        monkeypatch.delenv(f"PLAYHEAD_{name}", raising=False)


def boundaries(playhead: CommandLine) -> tuple[str, dict[str, tuple[str, str]]]:
    """The line of the level, and by name the mark of a boundary and what is said of it."""
    done = playhead("doctor", "--json")
    findings = json.loads(done.out)["findings"]
    (head,) = [one["text"] for one in findings if one["text"].startswith("level ")]
    table = findings[[one["text"] for one in findings].index(head) + 1 :]
    rows = [(one["mark"], *one["text"].split(maxsplit=1)) for one in table]
    known = {row.name for row in BOUNDARIES}
    return head, {name: (mark, said) for mark, name, said in rows if name in known}


@pytest.mark.parametrize("level", LEVELS)
def test_the_table_is_listed_with_what_is_on(
    playhead: CommandLine, monkeypatch: pytest.MonkeyPatch, level: str
):
    monkeypatch.setenv("PLAYHEAD_LEVEL", level)
    head, rows = boundaries(playhead)
    on = selected(level)  # pyright: ignore[reportArgumentType]
    of = f"{len(on)} of {len(BOUNDARIES)} boundaries"
    assert head == f"level {level} (environment (PLAYHEAD_LEVEL)): {of}"
    assert list(rows) == names(BOUNDARIES)
    assert {name for name, (mark, _) in rows.items() if mark == "good"} == set(names(on))
    for row in on:
        assert rows[row.name] == ("good", row.facts)


def test_what_is_off_says_how_it_is_had(playhead: CommandLine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PLAYHEAD_BOUNDARIES", "+clock,-grpc")
    head, rows = boundaries(playhead)
    assert head.startswith("level exchanges (default; playhead record has strict): ")
    assert rows["clock"][0] == "good"
    assert rows["grpc"] == ("off", "off: left out by the setting boundaries")
    assert rows["entropy"] == ("off", "off: level causal or boundaries +entropy")
    assert rows["locks"] == ("off", "off: level strict")
    assert rows["secrets"] == ("off", "off: boundaries +secrets")


def test_a_boundary_that_is_none_is_said(playhead: CommandLine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PLAYHEAD_BOUNDARIES", "+clok")
    done = playhead("doctor")
    assert (done.status, done.out) == (2, "")
    assert done.err == (
        "error[configuration]: boundaries: unknown name 'clok'\nhint: did you mean clock?\n"
    )


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "spool"
    monkeypatch.setenv("PLAYHEAD_SPOOL_DIR", str(folder))
    for name in ("ENDPOINT", "TOKEN"):
        monkeypatch.delenv(f"PLAYHEAD_{name}", raising=False)
    return folder


def said(playhead: CommandLine, beginning: str) -> list[tuple[str, str, str | None]]:
    """Mark, text and hint of what the doctor says that begins so."""
    findings = json.loads(playhead("doctor", "--json").out)["findings"]
    return [
        (one["mark"], one["text"], one["hint"]) for one in findings if one["text"].startswith(beginning)
    ]


def test_an_endpoint_that_wants_another_token_is_no_good_one(
    playhead: CommandLine, spool: Path, monkeypatch: pytest.MonkeyPatch
):
    with http_endpoint() as endpoint:
        endpoint.rule = lambda path, body: Reply(401)
        monkeypatch.setenv("PLAYHEAD_ENDPOINT", endpoint.url)
        monkeypatch.setenv("PLAYHEAD_TOKEN", "wrong")
        [(mark, text, hint)] = said(playhead, endpoint.url)
        endpoint.wait(lambda: endpoint.requests)
        assert endpoint.requests[0].headers["authorization"] == "Bearer wrong"
    assert mark == "bad"
    assert text == (
        f"{endpoint.url} answered 401 at /v1/logs (asked with PLAYHEAD_TOKEN);"
        " agents keep their records in the spool meanwhile"
    )
    assert hint == "the endpoint wants another PLAYHEAD_TOKEN: playhead token create NAME --scope ingest"


@pytest.mark.parametrize("refused", ["/v1/logs", "/v1/traces"])
def test_an_address_where_nothing_takes_records_is_no_good_one(
    playhead: CommandLine, spool: Path, monkeypatch: pytest.MonkeyPatch, refused: str
):
    with http_endpoint() as endpoint:
        endpoint.rule = lambda path, body: Reply(404) if path == refused else None
        monkeypatch.setenv("PLAYHEAD_ENDPOINT", endpoint.url)
        [(mark, text, hint)] = said(playhead, endpoint.url)
        assert endpoint.facts() == [] and endpoint.spans() == []
    assert (mark, hint) == ("bad", "PLAYHEAD_ENDPOINT is the base address of an OTLP endpoint")
    assert text.startswith(f"{endpoint.url} answered 404 at {refused} (asked without a token); ")


def test_an_endpoint_that_takes_records_is_a_good_one(
    playhead: CommandLine, spool: Path, monkeypatch: pytest.MonkeyPatch
):
    with http_endpoint() as endpoint:
        monkeypatch.setenv("PLAYHEAD_ENDPOINT", endpoint.url)
        assert said(playhead, endpoint.url) == [
            (
                "good",
                f"{endpoint.url} takes records without a token (environment (PLAYHEAD_ENDPOINT))",
                None,
            )
        ]
    monkeypatch.setenv("PLAYHEAD_PROTOCOL", "grpc")
    with grpc_endpoint() as endpoint:
        monkeypatch.setenv("PLAYHEAD_ENDPOINT", endpoint.url)
        assert said(playhead, endpoint.url)[0][0] == "good"
        endpoint.rule = lambda path, body: GrpcReply(grpc.StatusCode.UNAUTHENTICATED, "no")
        assert said(playhead, endpoint.url)[0][0] == "bad"


def test_an_endpoint_that_does_not_answer_is_no_good_one(
    playhead: CommandLine, spool: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PLAYHEAD_ENDPOINT", NOBODY)
    [(mark, text, hint)] = said(playhead, NOBODY)
    assert (mark, hint) == ("bad", "is it the right address? PLAYHEAD_ENDPOINT")
    assert "refused" in text and text.endswith("; agents keep their records in the spool meanwhile")
    assert playhead("doctor").status == 1


def test_where_nobody_listens_by_default_only_record_has_a_receiver(
    playhead: CommandLine, spool: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(delivery, "probe", lambda settings: TryLater("connection refused"))
    [(mark, text, hint)] = said(playhead, "http://127.0.0.1:4318")
    assert (mark, hint) == ("warning", "playhead up")
    assert text.endswith("agents that playhead record does not start keep their records in the spool")
    assert said(playhead, "no receiver runs")[0][0] == "good"


def test_a_token_that_may_not_deliver_is_told(
    playhead: CommandLine, spool: Path, monkeypatch: pytest.MonkeyPatch
):
    addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
    guarded = Configuration(addresses, Access(guarded=True))
    with Receiver(playhead.data_dir, guarded) as receiver:
        token = playhead("token", "create", "viewers", "--scope", "read").out.strip()
        monkeypatch.setenv("PLAYHEAD_ENDPOINT", receiver.http_endpoint)
        [(mark, text, _)] = said(playhead, receiver.http_endpoint)
        assert (mark, "answered 401 at /v1/logs" in text) == ("bad", True)
        assert " (asked without a token); " in text
        monkeypatch.setenv("PLAYHEAD_TOKEN", token)
        [(mark, text, hint)] = said(playhead, receiver.http_endpoint)
        assert (mark, "answered 403 at /v1/logs" in text) == ("bad", True)
        assert " (asked with PLAYHEAD_TOKEN); " in text
        assert "--scope ingest" in (hint or "")
        # What is recorded on this machine comes in all the same.
        assert said(playhead, "receiver: ")[0][0] == "good"


def test_a_receiver_that_does_not_answer_is_no_good_one(playhead: CommandLine, spool: Path):
    lock = WriterLock.take(playhead.data_dir)
    try:
        [(mark, text, _)] = said(playhead, "receiver: ")
        assert (mark, text.endswith("and does not listen")) == ("warning", True)
        lock.announce(http=NOBODY)
        [(mark, text, hint)] = said(playhead, "receiver: ")
        assert text.startswith(f"receiver: process {os.getpid()} should take records at {NOBODY}: ")
        assert (mark, hint) == ("bad", f"see what it says; end it: kill {os.getpid()}")
    finally:
        lock.release()


def test_places_that_cannot_be_written_to_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("PLAYHEAD_SPOOL_DIR", str(file / "spool"))
    playhead = CommandLine(file / "data", capsys)
    [(mark, text, _)] = said(playhead, str(file))
    assert (mark, text) == ("bad", f"{file} cannot be written to: nothing is stored")
    [(mark, text, hint)] = said(playhead, f"spool: {file}")
    assert (mark, hint) == ("bad", "export PLAYHEAD_SPOOL_DIR=DIR")


def test_a_store_that_cannot_be_read_is_told(playhead: CommandLine, spool: Path):
    store_run(playhead.data_dir, refund())
    assert said(playhead, "store: ")[0][0] == "good"
    (playhead.data_dir / "store.sqlite").write_bytes(b"no database" * 1000)
    assert [mark for mark, _, _ in said(playhead, "store: ")] == []
    assert playhead("doctor").status == 1


@pytest.mark.parametrize(
    ("name", "value", "mark", "told"),
    [
        ("PLAYHEAD_DISABLED", "1", "bad", "nothing is recorded: disabled, environment"),
        ("OTEL_SDK_DISABLED", "true", "bad", "nothing is recorded: disabled, environment"),
        ("PLAYHEAD_CONTENT", "metadata", "warning", "content is metadata, environment"),
    ],
)
def test_settings_with_which_little_is_recorded_are_told(
    playhead: CommandLine,
    spool: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: str,
    mark: str,
    told: str,
):
    monkeypatch.setenv(name, value)
    [(found, text, _)] = said(playhead, told)
    assert (found, f"({name})" in text) == (mark, True)


def test_what_an_endpoint_refused_for_good_is_counted(playhead: CommandLine, spool: Path):
    assert said(playhead, "spool: ") == [("good", "spool: nothing undelivered", None)]
    (spool / "rejected").mkdir(parents=True)
    for name in ("1-a-1.logs.otlp", "1-a-1.logs.txt"):
        (spool / "rejected" / name).write_text("no")
    told = f"spool: 1 refused for good, with reasons in {spool / 'rejected'}"
    assert said(playhead, "spool: ") == [("warning", told, None)]


@pytest.mark.parametrize(
    ("installed", "mark", "told"),
    [
        ({}, "bad", "playhead-instrumentation is not installed there"),
        ({"playhead-instrumentation": "0.0.1"}, "warning", "playhead-instrumentation is 0.0.1 there"),
        (None, "bad", ""),
    ],
)
def test_an_interpreter_is_what_it_says(
    playhead: CommandLine,
    tmp_path: Path,
    spool: Path,
    installed: dict[str, str] | None,
    mark: str,
    told: str,
):
    python = tmp_path / "python"
    answer = "exit 1" if installed is None else f"echo '{json.dumps(['3.12.0', installed])}'"
    python.write_text(f"#!/bin/sh\n{answer}\n")
    python.chmod(0o755)
    findings = json.loads(playhead("doctor", "--python", str(python), "--json").out)["findings"]
    wanted = told or f"{python} does not run: "
    assert [one["mark"] for one in findings if one["text"].startswith(wanted)] == [mark]


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("ENDPOINT", "ftp://x", "endpoint 'ftp://x' is no http(s) URL"),
        ("PROTOCOL", "x", "protocol is 'x'"),
    ],
)
def test_settings_that_name_no_endpoint_are_told(
    playhead: CommandLine, spool: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
):
    monkeypatch.setenv(f"PLAYHEAD_{name}", value)
    assert [mark for mark, _, _ in said(playhead, told)] == ["bad"]


def test_what_a_living_agent_cannot_deliver_is_counted(
    playhead: CommandLine, spool: Path, monkeypatch: pytest.MonkeyPatch
):
    made = refund()
    with http_endpoint() as endpoint:
        endpoint.rule = lambda path, body: Reply(401)
        monkeypatch.setenv("PLAYHEAD_ENDPOINT", endpoint.url)
        settings = Settings(spool_dir=str(spool), endpoint=endpoint.url, quiet=True)
        tape_exporter = open_tape_exporter({"service.name": "refund"}, settings)
        try:
            for fact in made.facts:
                tape_exporter.sink.append(fact)
            endpoint.wait(lambda: endpoint.requests)
            [(mark, text, _)] = said(playhead, "spool: ")
            assert mark == "warning"
            assert re.fullmatch(
                rf"spool: {len(made.facts)} facts \([0-9.]+ [kM]?B\) of a living process undelivered",
                text,
            )
        finally:
            tape_exporter.close(0)
