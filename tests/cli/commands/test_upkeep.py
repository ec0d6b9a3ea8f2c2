"""`playhead search`, `verify`, `gc`, `backup` and `restore`."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest
import zstandard
from support.starting.cli import CommandLine, refund, store_run
from support.starting.running import until
from support.tapes.batches import span_of
from support.tapes.handmade import NOW_INSTANCE, NOW_TRACE

from playhead_core.errors import StoreUnavailable
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch, Lag, Query, open_store


def names(data_dir: Path) -> list[str]:
    store = open_store(data_dir, read_only=True)
    try:
        return [run.name for run in store.runs(Query())]
    finally:
        store.close()


def test_a_store_that_is_whole_and_one_that_is_not(playhead: CommandLine):
    store_run(playhead.data_dir, refund())
    found = playhead("verify")
    assert (found.status, found.out) == (0, "")
    assert "is whole" in found.err
    database = apsw.Connection(str(playhead.data_dir / "store.sqlite"))
    database.execute("DELETE FROM fact_run")
    database.close()
    found = playhead("verify")
    chain, line = found.lines
    assert found.status == 1
    assert chain == f"chain {bytes(range(16)).hex()} 0-{len(refund().facts) - 1}: are missing"
    assert line.startswith(f"facts {bytes(range(16)).hex()}: 0-")
    assert line.endswith("were received and are missing")
    assert "it concerns 1 run: refund-1; all others are whole" in found.err
    assert "to delete the damaged runs: playhead delete refund-1" in found.err
    said = json.loads(playhead("verify", "--json").out)
    assert [(one["what"], one["runs"]) for one in said["findings"]] == [
        ("chain", ["refund-1"]),
        ("facts", ["refund-1"]),
    ]
    assert said["not_chained"] == 0
    assert playhead("delete", "refund-1", "--yes").status == 0
    assert playhead("verify").status == 0


def test_a_store_of_before_there_were_chains_is_said_to_have_none(playhead: CommandLine):
    kept = Path(__file__).parents[2] / "conformance" / "stores" / "store-11.sqlite.zst"
    playhead.data_dir.mkdir(parents=True, exist_ok=True)
    (playhead.data_dir / "store.sqlite").write_bytes(zstandard.decompress(kept.read_bytes()))
    found = playhead("verify")
    assert found.status == 0
    assert "1 process is not chained from the first fact on" in found.err
    assert json.loads(playhead("verify", "--json").out)["not_chained"] == 1


def test_the_stores_of_tenants_are_checked_too(playhead: CommandLine):
    place = playhead.data_dir / "tenants" / "acme"
    store_run(playhead.data_dir, refund())
    store_run(place, refund())
    database = apsw.Connection(str(place / "store.sqlite"))
    database.execute("UPDATE bundle SET data = x'00'")
    database.close()
    found = playhead("verify")
    assert found.status == 1
    assert {line.partition(": ")[0] for line in found.lines} == {"tenant acme"}
    assert "tenant acme: it concerns 1 run: refund-1; all others are whole" in found.err


def test_a_file_that_is_damaged_itself_is_said(playhead: CommandLine):
    store_run(playhead.data_dir, refund())
    path = playhead.data_dir / "store.sqlite"
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + bytes(8192) + whole[3 * 4096 :])
    found = playhead("verify")
    assert found.status == 1
    assert found.lines[0].startswith("database store.sqlite: ")
    assert "the database file is damaged: playhead restore FOLDER --data-dir NEW" in found.err
    path.write_bytes(b"no database " * 1000)
    found = playhead("ls")
    assert "is damaged and cannot be used" in found.err
    assert "restores a backup" in found.err


def test_runs_go_when_their_time_is_over_and_a_held_one_stays(playhead: CommandLine):
    first = store_run(playhead.data_dir, refund())
    second = store_run(playhead.data_dir, refund(NOW_TRACE, NOW_INSTANCE))
    assert playhead("gc").err == "playhead: deleted 0 runs: 0 spans, 0 facts, 0 blobs\n"
    assert playhead("gc", "--mark", first, "held").err == f"playhead: {first} is held\n"
    assert playhead("gc", "--failure", "0s", "--dry-run").lines == [second]
    looked = json.loads(playhead("gc", "--agent", "refund=0s", "--dry-run", "--json").out)
    assert looked == {"schema_version": 1, "would_delete": [second], "above_budget_bytes": 0}
    done = json.loads(playhead("gc", "--failure", "0s", "--json", "--yes").out)
    assert (done["deleted"]["runs"], done["wiped"]) == (1, True)
    assert names(playhead.data_dir) == [first]
    playhead("gc", "--unmark", first, "held")
    assert "deleted 1 run:" in playhead("gc", "--failure", "0s", "--yes").err
    assert names(playhead.data_dir) == []
    assert playhead("verify").status == 0


def test_what_is_held_is_listed(playhead: CommandLine):
    first = store_run(playhead.data_dir, refund())
    store_run(playhead.data_dir, refund(NOW_TRACE, NOW_INSTANCE))
    assert "MARKS" not in playhead("ls").out
    playhead("gc", "--mark", first, "held")
    playhead("gc", "--mark", first, "flagged")
    (head, line) = playhead("ls", "mark:held").lines
    assert head.endswith("MARKS") and line.startswith(first) and line.endswith("flagged,held")
    assert len(playhead("ls").lines) == 3
    (found,) = json.loads(playhead("ls", "mark:held", "order", "--json").out)["runs"]
    assert (found["name"], found["marks"]) == (first, ["flagged", "held"])
    assert "mark:holy is not valid" in playhead("ls", "mark:holy").err


def test_what_cannot_be_read_is_said(playhead: CommandLine):
    name = store_run(playhead.data_dir, refund())
    assert "fine is not a mark" in playhead("gc", "--mark", name, "fine").err
    assert playhead("gc", "--mark", "nobody", "held").status == 2


def test_what_was_said_is_found(playhead: CommandLine):
    name = store_run(playhead.data_dir, refund())
    found = playhead("search", "order", "81?")
    assert found.status == 0
    assert all(line.startswith(f"{name}:") and "order 81" in line for line in found.lines)
    (hit,) = map(json.loads, playhead("search", '"order 81"', "content", "--json").lines)
    assert hit["run"] == name
    nothing = playhead("search", "zeppelin")
    assert (nothing.status, nothing.err) == (1, "playhead: no run contains that\n")
    with playhead_receiver_of(playhead.data_dir) as receiver:
        receiver.store.commit(Batch([span_of(b"q" * 16, 1, text="zeppelin")]))
        until(lambda: receiver.store.lag() == Lag(0, 0), "all can be found")
        assert playhead("search", "zeppelin").lines == ["refund-2  text  zeppelin"]


def test_the_index_of_the_search_is_made_again(playhead: CommandLine):
    name = store_run(playhead.data_dir, refund())
    assert playhead("search", "order").status == 0
    (playhead.data_dir / "search.sqlite").write_bytes(b"damaged " * 1000)
    done = playhead("search", "--rebuild")
    assert (done.status, done.err) == (0, "playhead: the index was rebuilt\n")
    assert playhead("search", "order").lines[0].startswith(name)
    assert json.loads(playhead("search", "--rebuild", "--json").out)["behind"] == 0
    with playhead_receiver_of(playhead.data_dir) as receiver:
        assert playhead("search", "--rebuild").status == 0
        until(lambda: receiver.store.lag() == Lag(0, 0), "all can be found")
        assert playhead("search", "order").status == 0
    done = playhead("search")
    assert (done.status, "no word to search for" in done.err) == (2, True)


def test_the_doctor_looks_at_the_store(playhead: CommandLine, tmp_path: Path):
    store_run(playhead.data_dir, refund())
    said = playhead("doctor").out
    assert f"store: {playhead.data_dir}, " in said
    assert "groups of spans and facts cannot be found yet" in said
    playhead("search", "order")
    assert "cannot be found yet" not in playhead("doctor").out
    (playhead.data_dir / "store.sqlite").write_bytes(b"damaged " * 1000)
    done = playhead("doctor")
    assert (done.status, "is damaged and cannot be used" in done.out) == (1, True)


def test_the_doctor_reads_how_long_runs_are_kept(playhead: CommandLine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PLAYHEAD_RETENTION", "success=soon")
    done = playhead("doctor")
    assert (done.status, "retention success=soon: 'soon' is not a duration" in done.out) == (1, True)


def playhead_receiver_of(data_dir: Path) -> Receiver:
    return Receiver(data_dir, Configuration(Addresses(http_port=0, grpc_port=None)))


def test_a_backup_is_restored_elsewhere(playhead: CommandLine, tmp_path: Path):
    name = store_run(playhead.data_dir, refund())
    assert playhead("backup", str(tmp_path / "copy")).status == 0
    assert "not empty" in playhead("backup", str(tmp_path / "copy")).err
    assert "already" in playhead("restore", str(tmp_path / "copy")).err
    other = CommandLine(tmp_path / "other", playhead._capture)  # pyright: ignore[reportPrivateUsage]
    assert other("restore", str(tmp_path / "copy")).status == 0
    assert names(other.data_dir) == [name]
    assert other("verify").status == 0


@pytest.mark.parametrize("pages", [1, 2, 5])
@pytest.mark.parametrize("fill", [b"\0", b"x"])
def test_a_store_whose_first_pages_are_gone_is_neither_whole_nor_empty(
    playhead: CommandLine, pages: int, fill: bytes
):
    store_run(playhead.data_dir, refund())
    file = playhead.data_dir / "store.sqlite"
    data = file.read_bytes()
    file.write_bytes(fill * 4096 * pages + data[4096 * pages :])
    damaged = file.read_bytes()
    for words in (["verify"], ["ls"], ["ls", "--json"], ["show"], ["search", "order"], ["gc"]):
        done = playhead(*words)
        assert done.status != 0, words
        assert "damaged and cannot be used" in done.err, (words, done.err)
        assert "is whole" not in done.err and "no runs" not in done.err
    assert file.read_bytes() == damaged
    with pytest.raises(StoreUnavailable):
        open_store(playhead.data_dir)
    assert file.read_bytes() == damaged
