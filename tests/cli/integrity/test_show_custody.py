"""``playhead show RUN --custody`` says in plain words what is known of a run, from wherever it comes."""

from __future__ import annotations

import getpass
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard
from conformance.suite.custody import change
from conformance.suite.history import Service, trace_of
from support.starting.cli import CommandLine, refund, store_run
from support.tapes.handmade import INSTANCE

from playhead_core.integrity import What
from playhead_core.integrity.tombstones import Tombstone, Why, sealed
from playhead_receiver.storage import Batch, open_store
from playhead_receiver.storage.writing.prepare import bare_run, pack_bare

STORES = Path(__file__).parents[2] / "conformance" / "stores"


@pytest.fixture
def run(playhead: CommandLine) -> str:
    return store_run(playhead.data_dir, refund())


def shown(playhead: CommandLine, *words: str) -> list[str]:
    done = playhead("show", *words, "--custody")
    assert done.status == 0, done.err
    return [line.strip() for line in done.lines]


def test_a_run_that_nobody_changed(playhead: CommandLine, run: str):
    name, process = shown(playhead, run)
    assert name == run
    facts = len(refund().facts)
    assert process.startswith(f"process {INSTANCE.hex()}: whole, {facts} facts, 1 link to ")
    said = json.loads(playhead("show", run, "--custody", "--json").out)
    assert [(one["state"], one["findings"]) for one in said["processes"]] == [("whole", [])]
    assert (said["run"], said["signature"], said["tombstones"]) == (run, None, [])


def test_a_run_that_somebody_changed(playhead: CommandLine, run: str):
    opened: Any = open_store(playhead.data_dir)
    with closing(opened) as store:
        (data,) = store._reader.one("SELECT data FROM fact_run")
        facts = [fact for fact in bare_run(data) if fact.seq != 7]
        change(store, "UPDATE fact_run SET data = ?", pack_bare(facts, None)[0])
    lines = shown(playhead, run)
    assert lines[1].startswith(f"process {INSTANCE.hex()}: changed, ")
    assert lines[2:] == [f"chain {INSTANCE.hex()} 7: is missing"]


def test_a_run_of_before_there_were_chains(playhead: CommandLine):
    playhead.data_dir.mkdir(parents=True, exist_ok=True)
    kept = (STORES / "store-11.sqlite.zst").read_bytes()
    (playhead.data_dir / "store.sqlite").write_bytes(zstandard.decompress(kept))
    lines = shown(playhead, "run-1")
    assert ": not chained, 40 facts, 1 link to " in lines[1]
    assert lines[2].endswith("40 facts came before there were chains: nothing is known of them")


def test_a_request_is_shown_as_a_part(playhead: CommandLine):
    service = Service()
    for number in range(3):
        service.request(number)
    with closing(open_store(playhead.data_dir)) as store:
        store.commit(Batch(facts=service.facts))
        store.delete([trace_of(1)], "token ci")
    lines = shown(playhead, trace_of(2).hex())
    assert "whole" in lines[1] and "a part of process" in lines[1]
    assert any("were emptied" in line and line.endswith("by token ci") for line in lines)


def test_a_redacted_run_and_one_that_is_gone(playhead: CommandLine, run: str, tmp_path: Path):
    values = tmp_path / "values"
    values.write_text("order 81\n")
    assert playhead("redact", run, "--values", str(values)).status == 0
    me = getpass.getuser()
    lines = shown(playhead, "refund-2")
    assert any(line.endswith(f"facts were redacted by {me}") for line in lines)
    assert f" refund-1 was redacted by {me}: " in lines[-1]
    assert playhead("delete", "refund-2", "--yes").status == 0
    name, line = shown(playhead, "refund-2")
    assert name == "refund-2" and f" refund-2 was deleted by {me}: " in line
    said = json.loads(playhead("show", "refund-2", "--custody", "--json").out)
    assert [one["why"] for one in said["tombstones"]] == [Why.DELETED]
    assert playhead("show", "refund-3", "--custody").status == 2
    found = playhead("verify")
    assert found.status == 0 and "tombstones of 2 runs; the last: " in found.err
    said = json.loads(playhead("verify", "--json").out)
    assert [one["why"] for one in said["tombstones"]] == [Why.REDACTED, Why.DELETED]


def test_a_file_is_shown_with_its_signature(playhead: CommandLine, run: str, tmp_path: Path):
    path = tmp_path / "refund.tape"
    assert playhead("export", run, "-o", str(path)).status == 0
    lines = shown(playhead, str(path))
    assert lines[0] == "refund.tape" and "whole" in lines[1] and lines[-1] == "not signed"


def test_nothing_that_a_store_says_speaks_to_the_terminal(playhead: CommandLine, run: str):
    opened: Any = open_store(playhead.data_dir)
    evil = "bob\x1b[2J\u202e\nforged"
    with closing(opened) as store:
        said, link = sealed(
            None, Tombstone(Why.DELETED, 1 << 62, evil, [(b"t" * 16, "gone-1")], 1, 1, [])
        )
        change(store, "INSERT INTO tombstone VALUES (1, ?, ?)", said, link)
        row = store._reader.one("SELECT id FROM instance")[0]
        from playhead_receiver.storage.sql.tables.integrity import ChainEntry, add_link

        store._writer.run(lambda db: add_link(db, row, ChainEntry(What.AGED, [(0, 0)], b"", evil)))
    for done in (
        playhead("show", "gone-1", "--custody"),
        playhead("show", run, "--custody"),
        playhead("verify"),
    ):
        said = done.out + done.err
        assert "bob" in said
        assert "\x1b" not in said and "\u202e" not in said and "\nforged" not in said
