"""What is left of deleted and redacted runs: what went, when, and by whom."""

from __future__ import annotations

import getpass
from contextlib import closing
from pathlib import Path

import pytest
from conformance.suite.history import Service, trace_of
from support.starting.cli import CommandLine, refund, store_run
from support.tapes.handmade import INSTANCE, NOW_INSTANCE, NOW_TRACE, TRACE

from playhead_core.integrity import Link, What, fact_digest, statement_of
from playhead_core.integrity.chain_check import ChainCheck
from playhead_core.integrity.tombstones import Tombstone, Why
from playhead_receiver.storage import Batch, open_store
from playhead_replay.tape_files.integrity import inspect
from playhead_replay.tape_files.tape_file import read_tape_file


def tombstones(playhead: CommandLine) -> list[Tombstone]:
    with closing(open_store(playhead.data_dir, read_only=True)) as store:
        return list(store.tombstones())


def chain(playhead: CommandLine, instance: bytes = INSTANCE) -> list[Link]:
    with closing(open_store(playhead.data_dir, read_only=True)) as store:
        return store.chain(instance)


@pytest.fixture
def redacted(playhead: CommandLine, tmp_path: Path) -> list[Link]:
    """A run out of which a value was taken; the chain that it had."""
    store_run(playhead.data_dir, refund())
    before = chain(playhead)
    values = tmp_path / "values"
    values.write_text("order 81\n")
    assert playhead("redact", "refund-1", "--values", str(values)).status == 0
    return before


def test_who_deletes_is_kept_with_what_went(playhead: CommandLine):
    store_run(playhead.data_dir, refund())
    (last,) = chain(playhead)
    assert playhead("delete", "refund-1", "--yes").status == 0
    (left,) = tombstones(playhead)
    assert (left.why, left.by, left.runs) == (Why.DELETED, getpass.getuser(), [(TRACE, "refund-1")])
    assert left.facts == len(refund().facts)
    assert left.chains == [(INSTANCE, 1, last.link)]


def test_retention_says_that_it_was_it(playhead: CommandLine):
    store_run(playhead.data_dir, refund())
    store_run(playhead.data_dir, refund(NOW_TRACE, NOW_INSTANCE))
    assert playhead("gc", "--failure", "0s", "--yes").status == 0
    left = tombstones(playhead)
    assert [name for one in left for _, name in one.runs] == ["refund-1", "refund-2"]
    assert {one.by for one in left} == {getpass.getuser()}


def test_a_redacted_run_keeps_the_chain_of_before(playhead: CommandLine, redacted: list[Link]):
    after = chain(playhead)
    assert after[: len(redacted)] == redacted
    said = statement_of(after[-1])
    assert (said.what, said.by) == (What.REDACTED, getpass.getuser())
    assert playhead("verify").status == 0
    (left,) = tombstones(playhead)
    assert (left.why, left.runs) == (Why.REDACTED, [(TRACE, "refund-1")])
    with closing(open_store(playhead.data_dir, read_only=True)) as store:
        here = {fact.seq: fact_digest(fact) for fact in store.tape(INSTANCE).facts()}
    account = ChainCheck.of(INSTANCE, redacted)
    changed = {seq for seq, digest in here.items() if digest != account.expected(seq)}
    assert 0 in changed and len(changed) > 1
    assert changed == {seq for first, last in said.ranges for seq in range(first, last + 1)}


def test_a_redacted_run_takes_that_along(playhead: CommandLine, redacted: list[Link], tmp_path: Path):
    path = tmp_path / "refund.tape"
    assert playhead("export", "refund-2", "-o", str(path)).status == 0
    (process,) = inspect(read_tape_file(path))
    assert [one.what for one in process.said] == [What.REDACTED]
    assert (process.differences, process.is_chained) == ([], True)
    found = playhead("verify", str(path))
    assert found.status == 0
    assert f"were redacted by {getpass.getuser()}" in found.err
    there = CommandLine(tmp_path / "there", playhead._capture)
    assert there("import", str(path)).status == 0
    assert chain(there) == chain(playhead)
    assert there("verify").status == 0


def test_a_run_is_redacted_twice(playhead: CommandLine, redacted: list[Link], tmp_path: Path):
    values = tmp_path / "more"
    values.write_text("gpt-4o\n")
    assert playhead("redact", "refund-2", "--values", str(values)).status == 0
    assert [statement_of(one).what for one in chain(playhead)] == ["came", "redacted", "redacted"]
    assert playhead("verify").status == 0


def test_who_deleted_a_request_is_kept_in_the_chain_of_its_process(playhead: CommandLine):
    service = Service()
    for number in range(4):
        service.request(number)
    with closing(open_store(playhead.data_dir)) as store:
        store.commit(Batch(facts=service.facts))
        store.delete([trace_of(2)], "token ci")
        assert [statement_of(one).by for one in store.chain(service.facts[0].instance)] == [
            "",
            "token ci",
        ]
        assert [one.chains for one in store.tombstones()] == [[]]
        assert list(store.verify()) == []
