"""States of stores, read from their copies on a tape that anybody may have made, and put again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.msgpack import Ext

from playhead_checkpoint import Lineage, SqliteCheckpoints
from playhead_checkpoint.copies import reporting
from playhead_checkpoint.copies.copier import Copy, StateCopier
from playhead_checkpoint.store.protocol import MEMORY, RESTS_ON_PARENT
from playhead_checkpoint.tree import nodes
from playhead_checkpoint.tree.nodes import LIST, Ref, digest_of, index, leaf, pack
from playhead_cli.output.step.moment import moment_object
from playhead_core.errors import CorruptTape, TapeError, UsageError
from playhead_core.facts import Content, Fact
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_instrumentation.redaction import Redactor
from playhead_replay import Run
from playhead_replay.timeline import checkpoint_named, checkpoints_of
from playhead_replay.timeline.restoring import restored
from playhead_replay.timeline.run_state import RunState, RunStates
from playhead_semconv import attributes as a
from playhead_semconv import events as e

INSTANCE = b"\x01" * 16
LONG = [f"number {n} of a list that is long" for n in range(900)]


class Recorded:
    """A tape on which copies come as a recording makes them."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.copier = StateCopier(Redactor(), 1 << 28)
        self.add(e.PLAYHEAD_PROCESS_START, {a.PLAYHEAD_RUN_CWD: "/work"}, None)

    def add(self, name: str, at: dict[str, Any], body: bytes | None) -> None:
        seq = len(self.facts)
        content = None if body is None else Content.of(body)
        self.facts.append(
            Fact(seq * 10, 1, name, attributes=at, body=content, instance=INSTANCE, seq=seq)
        )

    def told(self, load: Any, stored: Any, *given: Any) -> None:
        self.put(stored, self.copier.copy(b"r", load, stored, *given))

    def noted(self, load: Any, id: bytes, *given: Any, replace: bool) -> None:
        copy = self.copier.copy_notes(b"r", load, *given, replace=replace)
        self.add(e.PLAYHEAD_CHECKPOINT_NOTES, {a.PLAYHEAD_CHECKPOINT_ID: id.hex()}, copy)

    def put(self, stored: Any, copy: bytes | None) -> None:
        lineage = stored.lineage
        at: dict[str, Any] = {
            a.PLAYHEAD_CHECKPOINT_KIND: lineage.kind,
            a.PLAYHEAD_CHECKPOINT_LABEL: lineage.labels[0] if lineage.labels else "",
            a.PLAYHEAD_CHECKPOINT_ID: stored.id.hex(),
            a.PLAYHEAD_CHECKPOINT_PARENT: lineage.parent.hex(),
            a.PLAYHEAD_CHECKPOINT_THREAD: lineage.thread,
            a.PLAYHEAD_CHECKPOINT_NAME: lineage.name,
            a.PLAYHEAD_CHECKPOINT_SIZE_BYTES: stored.size_bytes,
        }
        self.add(e.PLAYHEAD_CHECKPOINT, at, copy)

    def run(self, *without: int) -> Run:
        return Run.of_tape(MemoryTape([one for one in self.facts if one.seq not in without]), name="r")

    def end(self, *without: int) -> RunState:
        return RunStates(self.run(*without)).after(0)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    made = Recorded()
    monkeypatch.setattr(reporting, "report_state", made.told)
    monkeypatch.setattr(reporting, "report_notes", made.noted)
    return made


@pytest.fixture
def store(tmp_path: Path, recorded: Recorded):
    with SqliteCheckpoints(tmp_path / "c.sqlite") as opened:
        yield opened


def in_thread(name: str, *labels: str, id: bytes = b"") -> Lineage:
    return Lineage(kind="framework", labels=labels or ("graph",), id=id, thread="t", name=name)


def test_the_last_of_a_thread_each_item_of_a_memory_and_each_label(
    store: SqliteCheckpoints, recorded: Recorded
):
    store.put([1], in_thread("a"))
    store.put([1, 2], in_thread("b"))
    store.put({"likes": "tea"}, in_thread("ada", MEMORY))
    store.put({"likes": "wine"}, in_thread("bob", MEMORY))
    store.put("begun", Lineage(labels=("start",)))
    store.put("unnamed")
    moment = recorded.end()
    assert {name: one.value for name, one in moment.states.items()} == {
        "graph t": [1, 2],
        "memory t ada": {"likes": "tea"},
        "memory t bob": {"likes": "wine"},
        "checkpoint start": "begun",
        "checkpoint manual": "unnamed",
    }
    first = RunStates(recorded.run())
    place = checkpoints_of(first.run)[0]
    assert first.of_checkpoint(place).states["graph t"].value == [1]


def test_a_name_means_the_original_and_not_its_copy_in_another_thread(
    store: SqliteCheckpoints, recorded: Recorded
):
    store.put([1], in_thread("a", id=b"1" * 16))
    store.put([2], in_thread("a", id=b"1" * 16), replace=True)
    store.put([2], Lineage(id=b"2" * 16, thread="other", name="a"))
    assert checkpoint_named(recorded.run(), "a").name == "c2"
    assert checkpoint_named(recorded.run(), (b"2" * 16).hex()).name == "c3"


def test_a_state_without_a_copy_is_named(store: SqliteCheckpoints, recorded: Recorded):
    recorded.copier = StateCopier(Redactor(), 0)
    store.put([1], in_thread("a"))
    moment = recorded.end()
    assert moment.states == {}
    assert "no state of graph t: only its store has it" in moment.left_out


def test_a_state_of_which_a_part_is_lost_is_not_shown_as_another(
    store: SqliteCheckpoints, recorded: Recorded
):
    store.put(LONG, in_thread("a"))
    store.put([*LONG, "more"], in_thread("b"))
    assert recorded.end().states["graph t"].value == [*LONG, "more"]
    lost = recorded.end(1)
    with pytest.raises(TapeError, match="is not on the tapes of the run"):
        _ = lost.states["graph t"].value
    (shown,) = moment_object(lost)["states"]
    assert shown["value"] is None
    assert shown["unkept"][0].startswith("cannot be read: a part of the state")


@pytest.mark.parametrize("wide", [False, True], ids=["levels", "entries"])
def test_a_state_that_would_fill_the_memory_is_refused(recorded: Recorded, wide: bool):
    node = leaf(LIST, pack(["x" * 1000] * 8))
    ref = Ref(LIST, 0, 8, digest_of(node))
    made = [node]
    for _ in range(5):
        if wide:
            node = leaf(LIST, pack([Ext(nodes.REF, ref.data())] * 16))
            ref = Ref(LIST, 0, 16, digest_of(node))
        else:
            node, length = index([ref] * 16)
            ref = Ref(LIST, ref.level + 1, length, digest_of(node))
        made.append(node)
    packed = pack(Ext(nodes.REF, ref.data()))
    copy = pack(Copy(b"", b"", 1, [], packed, made))
    at = {a.PLAYHEAD_CHECKPOINT_ID: "00" * 16, a.PLAYHEAD_CHECKPOINT_KIND: "manual"}
    recorded.add(e.PLAYHEAD_CHECKPOINT, at, copy)
    (state,) = recorded.end().states.values()
    with pytest.raises(CorruptTape, match="takes more than"):
        _ = state.value


def test_a_store_is_made_of_copies_with_notes_and_what_was_replaced(
    store: SqliteCheckpoints, recorded: Recorded, tmp_path: Path
):
    id = b"i" * 16
    store.put(LONG, in_thread("a", id=id), replace=True)
    store.put("short", in_thread("a", id=id), replace=True)  # what the long one had is gone
    last = store.put([LONG, LONG], in_thread("b", RESTS_ON_PARENT))
    store.note(last.id, {"task": LONG, "other": 1})
    store.note(last.id, {"other": 2}, replace=True)
    found = restored(recorded.run(), tmp_path / "again.sqlite")
    assert (found.checkpoints, found.left_out) == (2, [])
    with SqliteCheckpoints(tmp_path / "again.sqlite") as again:
        assert again.damages() == []
        for one in (id, last.id):
            assert again.contents(one) == store.contents(one)
        assert again.checkpoint(last.id).lineage.labels == (RESTS_ON_PARENT,)


def test_what_cannot_be_put_again_is_named(store: SqliteCheckpoints, recorded: Recorded, tmp_path: Path):
    store.put(LONG, in_thread("a"))
    lost = store.put([*LONG, "more"], in_thread("b"))
    kept = store.put("short", in_thread("c"))
    recorded.add(e.PLAYHEAD_CHECKPOINT, {a.PLAYHEAD_CHECKPOINT_ID: "no id"}, b"no copy")
    found = restored(recorded.run(1), tmp_path / "again.sqlite")
    assert found.checkpoints == 1
    part, nothing = found.left_out
    assert part.startswith(f"{lost.id.hex()}: a part of the state (")
    assert nothing == "no id: a fact about a checkpoint has no id of one"
    with SqliteCheckpoints(tmp_path / "again.sqlite") as again:
        assert [one.id for one in again.checkpoints()] == [kept.id]
        assert again.damages() == []


def test_a_run_without_copies_makes_no_store(recorded: Recorded, tmp_path: Path):
    with pytest.raises(UsageError, match="hold no states of checkpoints"):
        restored(recorded.run(), tmp_path / "again.sqlite")
    assert not (tmp_path / "again.sqlite").exists()
