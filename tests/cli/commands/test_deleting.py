"""`playhead delete` and `playhead gc`: what goes, who is asked, and what is refused."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.leftovers import finds
from support.outside.terminal import heard
from support.starting.cli import CommandLine, refund, store_run
from support.tapes.batches import as_if_come_then, span_of
from support.tapes.handmade import NOW_INSTANCE, NOW_TRACE, HandMade

from playhead_cli.app import run
from playhead_receiver.auth import Audit, TokenBook
from playhead_receiver.auth.database import AccessFile
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch, Query, open_store
from playhead_semconv import attributes as a

SAID = "needle-" + os.urandom(8).hex()


def names(data_dir: Path) -> list[str]:
    store = open_store(data_dir, read_only=True)
    try:
        return sorted(run.name for run in store.runs(Query(mode=None)))
    finally:
        store.close()


def store_spans(data_dir: Path, count: int, text: str = "", end_ns: int | None = None) -> None:
    store = open_store(data_dir)
    for number in range(1, count + 1):
        ends = {} if end_ns is None else {"end_ns": end_ns}
        store.commit(Batch([span_of(bytes([number]) * 16, 1, text=f"{text}{number} ", **ends)]))
    store.close()


def deletions(data_dir: Path) -> list[tuple[str, str]]:
    file = AccessFile(data_dir)
    try:
        return [(one.name, one.subject) for one in Audit(file).notes("") if one.action == "delete"]
    finally:
        file.close()


def test_runs_are_deleted_by_name_and_nothing_of_them_is_left(playhead: CommandLine):
    store_spans(playhead.data_dir, 3, f"{SAID}-")
    file = AccessFile(playhead.data_dir)
    TokenBook(file).create("one", ["read"])
    file.close()
    assert finds(playhead.data_dir, f"{SAID}-1 ".encode())
    done = playhead("delete", "refund-1", (b"\3" * 16).hex(), "refund-1", "--yes")
    assert (done.status, done.out) == (0, "")
    assert done.err == "playhead: deleted 2 runs: 2 spans, 0 facts, 0 blobs\n"
    assert names(playhead.data_dir) == ["refund-2"]
    assert [finds(playhead.data_dir, f"{SAID}-{n} ".encode()) for n in (1, 2, 3)] == [False, True, False]
    assert deletions(playhead.data_dir) == [
        ("playhead delete", (b"\3" * 16).hex()),
        ("playhead delete", (b"\1" * 16).hex()),
    ]
    assert playhead("verify").status == 0
    said = json.loads(playhead("delete", "refund-2", "--yes", "--json").out)
    assert (said["runs"], said["deleted"]["spans"], said["wiped"]) == (["refund-2"], 1, True)


def test_what_is_not_to_be_deleted_is_refused_and_then_nothing_is(playhead: CommandLine):
    store_spans(playhead.data_dir, 2)
    living = HandMade()
    living.at_ns = time.time_ns()
    store = open_store(playhead.data_dir)
    living.start(**{a.PLAYHEAD_PROCESS_HEARTBEAT_MS: 600_000})
    store.commit(Batch([], living.facts))
    store.close()
    playhead("gc", "--mark", "refund-2", "held")
    for words, said in (
        (("refund-1", "refund-2"), "refund-2 is held"),
        (("refund-1", "refund-3"), "refund-3 is still running"),
        (("refund-1", "nobody-1"), 'no run is called "nobody-1"'),
        (("refund-1:3",), "a run can only be deleted as a whole, not its step 3"),
        (("refund-1.tape",), "refund-1.tape is a file"),
        ((), "Missing argument 'RUN…'"),
        (("refund-1",), "1 run would be deleted: confirm with --yes (no terminal to ask on)"),
    ):
        done = playhead("delete", *words, *(["--yes"] if said[0] != "1" else []))
        assert (done.status, said in done.err) == (2, True), (words, done.err)
    assert "hint: playhead delete refund-1 --yes" in playhead("delete", "refund-1").err
    assert "playhead gc --unmark refund-2 held" in playhead("delete", "refund-2", "--yes").err
    assert playhead("delete", "refund-1", "--dry-run").lines == ["refund-1"]
    assert json.loads(playhead("delete", "refund-1", "--json").err)["error"]["code"] == "usage"
    assert names(playhead.data_dir) == ["refund-1", "refund-2", "refund-3"]
    playhead("gc", "--unmark", "refund-2", "held")
    assert playhead("delete", "refund-2", "--yes").status == 0


def test_where_nothing_is_recorded_nothing_is_deleted(playhead: CommandLine):
    assert "nothing is recorded" in playhead("delete", "last", "--yes").err


def test_the_receiver_that_runs_is_asked_to_delete(playhead: CommandLine):
    with Receiver(playhead.data_dir, Configuration(Addresses(http_port=0, grpc_port=None))) as receiver:
        receiver.store.commit(Batch([span_of(b"1" * 16, 1, text=SAID), span_of(b"2" * 16, 1)]))
        assert "deleted 1 run: 1 span" in playhead("delete", "refund-1", "--yes").err
        assert [run.name for run in receiver.store.runs(Query())] == ["refund-2"]
        assert not finds(playhead.data_dir, SAID.encode())


@pytest.mark.parametrize(("answer", "left"), [("y", []), ("n", ["refund-1"])])
@pytest.mark.parametrize("words", [["delete", "last"], ["gc", "--failure", "0s"]])
def test_on_a_terminal_it_shows_what_would_go_and_asks(
    playhead: CommandLine, words: list[str], answer: str, left: list[str]
):
    name = store_run(playhead.data_dir, refund())
    master, terminal = pty.openpty()
    os.write(master, f"{answer}\n".encode())
    command = [sys.executable, "-m", "playhead_cli", *words, "--data-dir", str(playhead.data_dir)]
    environ = {**os.environ, "TERM": "dumb"}
    done = subprocess.run(
        command, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal, env=environ, timeout=60
    )
    os.close(terminal)
    said = heard(master)
    assert name in said
    assert "delete 1 run for good? [y/N]" in said
    assert done.returncode == (0 if answer == "y" else 1)
    assert ("nothing was deleted" in said) == (answer == "n")
    assert names(playhead.data_dir) == left


def test_without_a_terminal_gc_lists_and_deletes_nothing_unless_told(playhead: CommandLine):
    store_spans(playhead.data_dir, 2)
    as_if_come_then(playhead.data_dir)
    done = playhead("gc")
    assert (done.status, done.lines) == (2, ["refund-1", "refund-2"])
    assert "2 runs would be deleted: confirm with --yes (no terminal to ask on)" in done.err
    assert "hint: add --yes" in done.err
    assert len(names(playhead.data_dir)) == 2
    assert "deleted 2 runs" in playhead("gc", "--yes").err


def gc(data_dir: Path, retention: str, *words: str) -> int:
    """`playhead gc` where ``retention`` is set."""
    return run(["gc", *words, "--data-dir", str(data_dir), "--config", _config(data_dir, retention)])


def _config(data_dir: Path, retention: str) -> str:
    path = data_dir.with_suffix(".toml")
    path.write_text(f"retention = {json.dumps(retention)}\n")
    return str(path)


def test_what_gc_is_not_told_is_as_the_setting_has_it(
    playhead: CommandLine, capsys: pytest.CaptureFixture[str]
):
    """Runs of half a year that are to be kept for a year do not go because somebody types ``gc``."""
    half_a_year_ago = time.time_ns() - 180 * 86400 * 10**9
    store_spans(playhead.data_dir, 2, end_ns=half_a_year_ago)
    as_if_come_then(playhead.data_dir)
    data_dir = playhead.data_dir
    for retention, words, gone in (
        ("success=365d", (), []),
        ("success=forever", (), []),
        ("off", (), []),
        ("off", ("--failure", "1d"), []),
        ("agent:refund=365d", ("--success", "1d"), []),
        ("agent:refund=365d", ("--agent", "refund=1d"), ["refund-1", "refund-2"]),
        ("off", ("--success", "1d"), ["refund-1", "refund-2"]),
        ("success=26w share=0", (), ["refund-1", "refund-2"]),
        ("success=26w share=0", ("--share", "1"), []),
    ):
        capsys.readouterr()
        assert gc(data_dir, retention, "--dry-run", *words) == 0
        assert capsys.readouterr().out.split() == gone, (retention, words)
    assert gc(data_dir, "success=soon", "--dry-run") == 2
    assert "retention success=soon: 'soon' is not a duration" in capsys.readouterr().err


def test_a_budget_is_told_before_anything_goes(playhead: CommandLine):
    store = open_store(playhead.data_dir)
    for number in range(1, 6):
        store.commit(Batch([span_of(bytes([number]) * 16, number, text=os.urandom(60_000).hex())]))
    budget = store.used_bytes() * 3 // 4
    store.close()
    keep = ("--success", "forever", "--budget", str(budget))
    looked = playhead("gc", "--dry-run", *keep)
    assert (looked.status, looked.out) == (0, "")
    assert "above its budget: the oldest runs go until it is not" in looked.err
    assert (
        json.loads(playhead("gc", "--dry-run", "--json", *keep).out)["above_budget_bytes"] > budget // 4
    )
    assert (
        "the oldest runs would be deleted: confirm with --yes (no terminal to ask on)"
        in playhead("gc", *keep).err
    )
    assert playhead("gc", "--yes", *keep).status == 0
    left = names(playhead.data_dir)
    assert 0 < len(left) < 5
    assert left == [f"refund-{number}" for number in range(1, 6)][-len(left) :]


def test_a_mistake_in_what_is_to_go_is_said(playhead: CommandLine):
    store_run(playhead.data_dir, refund(NOW_TRACE, NOW_INSTANCE))
    for words, said in (
        (("--success", "soon"), "'soon' is not a duration"),
        (("--agent", "refund"), "--agent refund has no time"),
        (("--agent", "=1d"), "--agent =1d has no time"),
        (("--agent", "refund=soon"), "'soon' is not a duration"),
        (("--share", "2"), "2.0 is not in the range 0<=x<=1"),
        (("--budget", "much"), "'much' is not a size"),
    ):
        done = playhead("gc", *words, "--yes")
        assert (done.status, said in done.err) == (2, True), (words, done.err)
    assert len(names(playhead.data_dir)) == 1
