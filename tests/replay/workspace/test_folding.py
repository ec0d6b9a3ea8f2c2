"""The files of a run, folded from facts made by hand: each kind of change, doubts, and hostile tapes."""

import json
from typing import Any

import msgspec
import pytest

from playhead_core.errors import CorruptTape
from playhead_core.facts import Content, ExchangeId, Fact, digest_of
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_core.workspace import FolderEntry, SnapshotChanges, encode_changes
from playhead_replay import Run
from playhead_replay.workspace.artifacts import artifacts_of
from playhead_replay.workspace.folding import OPEN, REDACTED, UNRECORDED
from playhead_replay.workspace.history import LATER, WorkspaceHistory
from playhead_semconv import attributes as a
from playhead_semconv import events as e

INSTANCE = b"\x01" * 16
FILE = 0o100644


class Told:
    """A tape, fact by fact; the time of a fact is its number times ten."""

    def __init__(self, level: str = "causal") -> None:
        self.facts: list[Fact] = []
        self.fact(
            e.PLAYHEAD_PROCESS_START,
            {a.PLAYHEAD_RUN_LEVEL: level, a.PLAYHEAD_RUN_CWD: "/work", a.PLAYHEAD_RUN_MODE: "record"},
        )

    @property
    def now_ns(self) -> int:
        return len(self.facts) * 10

    def fact(self, name: str, at: dict[str, Any], body: Content | None = None, **more: Any) -> None:
        seq = len(self.facts)
        fact = Fact(self.now_ns, 1, name, attributes=at, body=body, instance=INSTANCE, seq=seq, **more)
        self.facts.append(fact)

    def effect(self, kind: str, target: str, data: bytes | None = None, **at: Any) -> "Told":
        values = {a.PLAYHEAD_EFFECT_KIND: f"file.{kind}", a.PLAYHEAD_EFFECT_TARGET: target, **at}
        self.fact(e.PLAYHEAD_EFFECT, values, None if data is None else Content.of(data))
        return self

    def read(self, kind: str, name: str, data: bytes | None = None, **at: Any) -> "Told":
        values = {a.PLAYHEAD_READ_KIND: f"file/{kind} {name}", a.PLAYHEAD_FILE_MODE: FILE, **at}
        self.fact(e.PLAYHEAD_READ, values, None if data is None else Content.of(data))
        return self

    def child(self, *changes: list[Any]) -> "Told":
        body = Content.of(msgspec.msgpack.encode(list(changes)))
        id = ExchangeId(1, "process", len(self.facts))
        self.fact(e.PLAYHEAD_EXCHANGE_END, {a.PLAYHEAD_END_HOW: "complete"}, body, exchange=id)
        return self

    def snapshot(self, files: dict[str, bytes], begun_ns: int, label: str = "start", **mtimes: int):
        entries: list[FolderEntry] = []
        for path, data in files.items():
            self.fact(e.PLAYHEAD_WORKSPACE_FILE, {}, Content.of(data))
            digest, size, mtime_ns = digest_of(data), len(data), mtimes.get(path, 1)
            entries.append(
                FolderEntry(path, "file", 0o644, size, mtime_ns, digest=digest, kept_bytes=size)
            )
        at = {a.PLAYHEAD_WORKSPACE_LABEL: label, a.PLAYHEAD_WORKSPACE_BEGUN_NS: begun_ns}
        self.fact(e.PLAYHEAD_WORKSPACE, at, Content.of(encode_changes(SnapshotChanges(entries, []))))
        return self

    @property
    def run(self) -> Run:
        return Run.of_tape(MemoryTape(self.facts, INSTANCE))

    def at(self, time_ns: int | None = None):
        return WorkspaceHistory(self.run).at(self.now_ns if time_ns is None else time_ns)

    def files(self, time_ns: int | None = None) -> dict[str, Any]:
        """Content by path; the reason where it is not exact; the target of a link."""
        found: dict[str, Any] = {}
        for path, item in self.at(time_ns).tree.items():
            if item.entry.kind != "file":
                found[path] = item.entry.target or item.entry.kind
            else:
                found[path] = item.why or (item.content() if item.content is not None else None)
        return found


def test_each_kind_of_change():
    told = Told().snapshot({"a": b"one", "b": b"two", "d/x": b"x", "d/y": b"y", "keep": b"k"}, 5)
    told.effect("write", "./a", b"new")
    told.effect("append", "./b", b"tail", **{a.PLAYHEAD_FILE_OFFSET: 3})
    told.effect("rename", "./d ./moved dir")
    told.effect("unlink", "./moved dir/x")
    told.effect("mkdir", "./made")
    told.effect("symlink", "./link a")
    told.effect("link", "./a ./hard")
    told.effect("truncate", "./b 4")
    told.effect("chmod", "./a mode=493, follow_symlinks=True")
    told.effect("chmod", "./hard 384")
    assert told.files() == {
        "a": b"new",
        "b": b"twot",
        "hard": b"new",
        "keep": b"k",
        "link": "a",
        "made": "folder",
        "moved dir/y": b"y",
    }
    tree = told.at().tree
    assert (tree["a"].entry.mode, tree["hard"].entry.mode) == (0o755, 0o600)
    assert told.files(5 * 10 + 15)["a"] == b"one"


def test_what_comes_from_elsewhere_and_goes_there():
    told = Told().snapshot({"a": b"one"}, 5)
    told.effect("write", "/tmp/new", b"beside").effect("rename", "/tmp/new ./a")
    told.effect("rename", "/tmp/unknown ./b")
    told.effect("write", "./gone", b"g").effect("rename", "./gone ~/gone")
    assert told.files() == {
        "a": b"beside",
        "b": "its content is unknown: it was /tmp/unknown before",
    }


def test_what_a_child_process_changed():
    told = Told().snapshot({"a": b"one", "b": b"two"}, 5)
    secret = b"the password"
    told.child(
        ["./a", "written", 0o100600, b"child", digest_of(b"child"), 5, 7],
        ["./b", "deleted"],
        ["./s", "written", FILE, b"the ********", digest_of(secret), 12, 7],
        ["./large", "written", FILE, None, digest_of(b"large"), 1 << 30, 7],
        ["./l", "link", 0, b"a"],
    )
    assert told.files() == {"a": b"child", "l": "a", "large": UNRECORDED, "s": REDACTED}
    assert told.at().tree["a"].entry.mode == 0o600


def test_a_file_that_is_open_is_not_taken_for_known():
    told = Told().snapshot({"log": b"one\n"}, 5)
    told.read("open-append", "./log", **{a.PLAYHEAD_FILE_OFFSET: 4}).read("open-write", "./new")
    assert told.files() == {"log": OPEN, "new": OPEN}
    told.effect("append", "./log", b"two\n", **{a.PLAYHEAD_FILE_OFFSET: 4}).effect(
        "write", "./new", b"n"
    )
    assert told.files() == {"log": b"one\ntwo\n", "new": b"n"}


def test_a_change_that_the_tape_does_not_hold_is_named():
    told = Told().snapshot({"a.db": b"one", "b": b"two"}, 5)
    told.effect("write", "./a.db", **{a.PLAYHEAD_FILE_DIGEST: "00"})
    told.effect("append", "./c", b"tail", **{a.PLAYHEAD_FILE_OFFSET: 100})
    told.effect("write", "./b", b"x", **{a.PLAYHEAD_REDACTED_COUNT: 1})
    assert told.files() == {"a.db": UNRECORDED, "b": REDACTED, "c": UNRECORDED}
    assert not told.at().is_exact


def test_what_the_snapshot_saw_only_after_a_later_change_is_named():
    told = Told().effect("write", "./early", b"early")
    told.effect("write", "./late", b"late")
    told.snapshot({"early": b"early", "late": b"late", "quiet": b"q"}, 5, early=12, late=22)
    assert told.files(15) == {"early": b"early", "late": LATER, "quiet": b"q"}
    assert told.files() == {"early": b"early", "late": b"late", "quiet": b"q"}


def test_a_later_snapshot_is_taken_where_nothing_happened_meanwhile():
    told = Told().snapshot({"a": b"one"}, 5)
    tool = ExchangeId(1, "tool", 0)
    told.fact(e.PLAYHEAD_EXCHANGE_REQUEST, {a.PLAYHEAD_ASK_KEY: "edit"}, exchange=tool)
    told.fact(e.PLAYHEAD_EXCHANGE_END, {a.PLAYHEAD_END_HOW: "complete"}, exchange=tool)
    after_ns = told.now_ns
    assert told.files(after_ns) == {"a": b"one"}
    (note,) = told.at(after_ns).notes
    assert note == "files written by 1 calls of marked tools since then are not on the tape"
    told.snapshot({"a": b"by the tool"}, after_ns + 5, "step")
    found = told.at(after_ns)
    assert (told.files(after_ns), found.notes) == ({"a": b"by the tool"}, ())
    assert found.snapshot is not None and found.snapshot.label == "step"


def test_files_at_exchanges_are_the_nearest_snapshot():
    told = Told("exchanges")
    told.facts[0].attributes[a.PLAYHEAD_RUN_BOUNDARIES] = []
    told.snapshot({"a": b"one"}, 5).snapshot({"a": b"two"}, 5_000_000, "end")
    assert told.files(7) == {"a": b"one"} and told.files(4_000_000) == {"a": b"two"}
    assert "this is the snapshot 'end', 1 ms after" in told.at(4_000_000).notes[0]


@pytest.mark.parametrize(
    "at",
    [
        {a.PLAYHEAD_FILE_OFFSET: "many"},
        {a.PLAYHEAD_FILE_OFFSET: [1]},
        {a.PLAYHEAD_FILE_OFFSET: {}},
    ],
)
def test_facts_that_nobody_writes_are_refused(at):
    with pytest.raises(CorruptTape):
        Told().snapshot({}, 5).effect("append", "./a", b"x", **at).at()


def test_a_snapshot_that_is_none_is_refused():
    told = Told()
    told.fact(e.PLAYHEAD_WORKSPACE, {}, Content.of(json.dumps([1]).encode()))
    with pytest.raises(CorruptTape, match="is no snapshot of a working folder"):
        told.at()


def test_a_hostile_tape_names_nothing_outside_and_takes_no_memory():
    told = Told().snapshot({"../up": b"u", "/etc/x": b"x", "ok": b"o"}, 5)
    told.effect("write", "./../../up", b"u").effect("rename", "./ok ./../out").effect(
        "write", "./a", b"1"
    )
    told.effect("truncate", f"./a {1 << 50}")
    told.child(["./../../child", "written", FILE, b"c", digest_of(b"c"), 1, 1])
    assert told.files() == {"a": UNRECORDED}
    assert [one.name for one in artifacts_of(told.run)] == ["a"]
