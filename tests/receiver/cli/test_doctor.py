"""`playhead doctor`: what is recorded at the level in force, row by row of the table of boundaries."""

from __future__ import annotations

import json

import pytest
from support.cli import CommandLine

from playhead_semconv.boundaries import BOUNDARIES, LEVELS, names, selected


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
