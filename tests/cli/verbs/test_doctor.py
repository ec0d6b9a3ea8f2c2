"""`playhead doctor`: the table of boundaries at the level in force, the endpoint, the spool."""

from __future__ import annotations

import json
import re
from pathlib import Path

import grpc
import pytest
from support.cli import CommandLine, refund
from support.endpoints import GrpcReply, Reply, grpc_endpoint, http_endpoint

from playhead_exporter import open_outlet
from playhead_semconv.boundaries import BOUNDARIES, LEVELS, names, selected
from playhead_semconv.settings import Settings


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEVEL", "BOUNDARIES"):
        monkeypatch.delenv(f"PLAYHEAD_{name}", raising=False)


def boundaries(playhead: CommandLine) -> tuple[str, dict[str, tuple[str, str]]]:
    """The line of the level, and by name the mark of a boundary and what is said of it."""
    done = playhead("doctor", "--json")
    findings = json.loads(done.out)["findings"]
    (head,) = [one["text"] for one in findings if one["text"].startswith("level ")]
    rows = [(one["mark"], *one["text"].split(maxsplit=1)) for one in findings]
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
        "error[configuration]: boundaries: there is no 'clok'\nhint: did you mean clock?\n"
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
        f"{endpoint.url} answered 401 at /v1/logs; agents keep their records in the spool meanwhile"
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
    assert text.startswith(f"{endpoint.url} answered 404 at {refused}; ")


def test_an_endpoint_that_takes_records_is_a_good_one(
    playhead: CommandLine, spool: Path, monkeypatch: pytest.MonkeyPatch
):
    with http_endpoint() as endpoint:
        monkeypatch.setenv("PLAYHEAD_ENDPOINT", endpoint.url)
        assert said(playhead, endpoint.url) == [
            ("good", f"{endpoint.url} takes records (environment (PLAYHEAD_ENDPOINT))", None)
        ]
    monkeypatch.setenv("PLAYHEAD_PROTOCOL", "grpc")
    with grpc_endpoint() as endpoint:
        monkeypatch.setenv("PLAYHEAD_ENDPOINT", endpoint.url)
        assert said(playhead, endpoint.url)[0][0] == "good"
        endpoint.rule = lambda path, body: GrpcReply(grpc.StatusCode.UNAUTHENTICATED, "no")
        assert said(playhead, endpoint.url)[0][0] == "bad"


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
        outlet = open_outlet({"service.name": "refund"}, settings)
        try:
            for fact in made.facts:
                outlet.sink.append(fact)
            endpoint.wait(lambda: endpoint.requests)
            [(mark, text, _)] = said(playhead, "spool: ")
            assert mark == "warning"
            assert re.fullmatch(
                rf"spool: {len(made.facts)} facts \([0-9.]+ [kM]?B\) of a living process undelivered",
                text,
            )
        finally:
            outlet.close(0)
