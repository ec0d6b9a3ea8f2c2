"""Lists, reads, compares, restores and deletes damaged checkpoints and blobs, in a watched process.

``python -m support.hostile.store_mutants SEED COUNT FOLDER``: damages the file of a checkpoint store,
its rows (with digests that fit), the copies of its states on a tape, or blobs, COUNT times. Exits 1 with
the reason if anything is written outside FOLDER/scratch, anything is executed, a blob is returned that
differs from its digest, or an exception is not an error of playhead.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import sqlite3
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

sys.path.append(str(Path(__file__).parents[3] / ".venv" / "apart-langgraph"))

import msgspec
import numpy
from blake3 import blake3
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from support.hostile.mutants_used import PIECES
from support.hostile.watched import Watched
from support.tapes.sessions import record

from playhead_checkpoint import Lineage, SqliteCheckpoints
from playhead_checkpoint.blobs import BlobFolder
from playhead_checkpoint.langgraph import PlayheadSaver, PlayheadStore
from playhead_checkpoint.tree.nodes import OPEN, REF, TYPED
from playhead_checkpoint.tree.standard_types import STANDARD
from playhead_core.errors import PlayheadError
from playhead_core.facts import Content
from playhead_core.settings import Settings
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_replay import Run
from playhead_replay.timeline.restoring import restored
from playhead_semconv import events as e

Ext = msgspec.msgpack.Ext
pack: Callable[[Any], bytes] = msgspec.msgpack.encode
RUN = b"r" * 16
TABLES = {"node": "data", "checkpoint": "packed", "note": "packed"}
CONSTRUCTOR = {"lc": 1, "type": "constructor", "id": ["langchain_core", "prompts", "PromptTemplate"]}
EVIL = (
    ["pickle", pickle.dumps(print)],
    ["json", json.dumps({**CONSTRUCTOR, "kwargs": {"template": "x"}}).encode()],
    ["json", json.dumps({"lc": 1, "type": "secret", "id": ["HOME"]}).encode()],
    ["json", json.dumps({**CONSTRUCTOR, "lc": 2, "id": ["os", "system"], "args": ["evil"]}).encode()],
    ["msgpack", pack(Ext(0, pack(["os", "system", "touch canary"])))],
    ["msgpack", pack(Ext(3, pack(["antigravity", "x", "y", "z"])))],
)
"""Parts of a value that a serializer would make."""
STRANGE: tuple[Any, ...] = (
    *(None, -1, 1 << 63, 1e308, "", "x" * 300, b"\xff" * 40, [], {}, [[[]]], {"a": {"b": [1]}}),
    *("../../etc/passwd", "os:system", "[0]*10**9", ["<O", [1], b"x" * 8], ["<f8", [1 << 40], b""]),
)
COLUMNS = (
    "id",
    "run",
    "span",
    "kind",
    "parent",
    "time_ns",
    "labels",
    "thread",
    "name",
    "size",
    "digest",
)


def states() -> list[dict[str, Any]]:
    """The states of a conversation, with a value of each type."""
    values = {
        "when": datetime(2026, 1, 2, tzinfo=UTC),
        "where": datetime(2026, 1, 2, tzinfo=ZoneInfo("Europe/Oslo")),
        "price": Decimal("1.50"),
        "id": UUID(int=7),
        "pair": (1, {2, 3}),
        "large": 1 << 90,
        "numbers": numpy.arange(900.0),
    }
    return [{"messages": [f"{n} {'x' * 3000}" for n in range(number)], **values} for number in range(5)]


def fill(path: Path) -> None:
    """Put states, notes and the checkpoints of a graph into the store at ``path``."""
    parent = b""
    with SqliteCheckpoints(path) as store:
        for number, state in enumerate(states()):
            lineage = Lineage(RUN, parent=parent, thread="t", name=str(number), labels=("step",))
            parent = store.put(state, lineage).id
            store.note(parent, {"score": number, "said": ["y" * 5000]})
        PlayheadStore(store).put(("users", "a"), "name", {"said": ["z" * 5000]})
        saver = PlayheadSaver(store)
        config: Any = {"configurable": {"thread_id": "graph", "checkpoint_ns": ""}}
        for number in range(3):
            found = empty_checkpoint()
            found["channel_values"] = {"messages": [HumanMessage("hi"), AIMessage(f"answer {number}")]}
            config = saver.put(config, found, {"source": "loop", "step": number}, {})
            saver.put_writes(config, [("messages", AIMessage("next"))], "task")


class Mutants:
    """Damages data in ways that its readers have to expect."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def data(self, data: bytes) -> bytes:
        """``data`` with a hostile value in it, or with damaged bytes."""
        if self.random.random() < 0.5:
            try:
                return pack(self._value(msgspec.msgpack.decode(data)))
            except Exception:  # not MessagePack as a whole: a node has a head
                return data[:1] + pack(self._hostile())
        found = bytearray(data)
        for _ in range(self.random.randint(1, 4)):
            at, size = self.random.randrange(len(found) + 1), self.random.randint(1, 40)
            match self.random.randrange(4):
                case 0 if at < len(found):
                    found[at] ^= 1 << self.random.randrange(8)
                case 1:
                    del found[at : at + size]
                case 2:
                    found[at:at] = self.random.choice((*PIECES, self.random.randbytes(size)))
                case _:
                    found[at:at] = pack(self._hostile())
        return bytes(found)

    def _value(self, value: Any) -> Any:
        """``value`` with one part replaced."""
        pick = self.random
        if pick.random() < 0.3:
            return self._hostile()
        if isinstance(value, list) and value:
            at = pick.randrange(len(value))
            return [*value[:at], self._value(value[at]), *value[at + 1 :]]
        if isinstance(value, dict) and value:
            key = pick.choice(list(value))
            return {**value, key: self._value(value[key])}
        return self._hostile()

    def _hostile(self) -> Any:
        pick = self.random
        if pick.random() < 0.3:
            return pick.choice(STRANGE)
        names = [shape.name for shape in STANDARD.values()]
        names += ["ndarray", "langchain.AIMessage", "os.system", "builtins.eval", "x" * 300]
        name, parts = pick.choice(names), pick.choice(STRANGE)
        if pick.random() < 0.4:
            name, parts = "langgraph.serialized", pick.choice(EVIL)
        code = TYPED if pick.random() < 0.9 else pick.choice([REF, OPEN, 0, 127])
        return Ext(code, b"\x92" + pack(name) + pack(parts))

    def rows(self, path: Path) -> None:
        """Damage rows of the store at ``path``; mostly the digests fit."""
        with sqlite3.connect(path) as database:
            for _ in range(self.random.randint(1, 3)):
                table = self.random.choice(list(TABLES))
                column = TABLES[table]
                rowid, data = self.random.choice(
                    database.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
                )
                changes: dict[str, Any] = {column: self.data(data) if isinstance(data, bytes) else b""}
                if table != "note" and self.random.random() < 0.8:
                    changes["digest"] = blake3(changes[column]).digest()
                    changes["size"] = len(changes[column])
                if table == "checkpoint" and self.random.random() < 0.3:
                    changes = {
                        self.random.choice(COLUMNS): self.random.choice((7, "x", b"y", "[1]", -1))
                    }
                names = ", ".join(f"{name} = ?" for name in changes)
                try:
                    database.execute(
                        f"UPDATE {table} SET {names} WHERE rowid = ?", (*changes.values(), rowid)
                    )
                except sqlite3.IntegrityError:
                    continue
        database.close()

    def file(self, path: Path) -> None:
        """Damage the bytes of a file."""
        found = bytearray(path.read_bytes())
        for _ in range(self.random.randint(1, 20)):
            found[self.random.randrange(len(found))] = self.random.randrange(256)
        path.write_bytes(found[: self.random.choice([len(found), len(found), len(found) // 2])])

    def tape(self, tape: MemoryTape) -> MemoryTape:
        """``tape`` with damaged copies of states."""
        facts = list(tape.facts())
        copies = [
            at for at, fact in enumerate(facts) if fact.name == e.PLAYHEAD_CHECKPOINT and fact.body
        ]
        for at in self.random.sample(copies, self.random.randint(1, min(3, len(copies)))):
            body = facts[at].body
            data = self.data(b"" if body is None or body.inline is None else body.inline)
            facts[at] = msgspec.structs.replace(facts[at], body=Content.of(data))
        return MemoryTape(facts)


def attempt(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except PlayheadError:
        return None


def read_store(path: Path) -> int:
    """Do everything with the store at ``path`` that reads or deletes; how many states were read."""
    read = 0
    with SqliteCheckpoints(path) as store:
        attempt(store.damages)
        attempt(lambda: store.latest(RUN))
        attempt(lambda: store.of_thread("t"))
        found = attempt(store.checkpoints) or []
        for one, other in zip(found, [*found[1:], *found[:1]], strict=True):
            read += attempt(lambda one=one: store.state(one.id)) is not None
            attempt(lambda one=one: store.contents(one.id))
            attempt(lambda one=one: store.notes(one.id))
            attempt(lambda one=one, other=other: store.difference(one.id, other.id))
        saver = PlayheadSaver(store)
        config: Any = {"configurable": {"thread_id": "graph"}}
        attempt(lambda: saver.get_tuple(config))
        attempt(lambda: list(saver.list(config)))
        attempt(lambda: saver.copy_thread("graph", "copy"))
        attempt(lambda: saver.prune(["graph"]))
        items = PlayheadStore(store)
        attempt(lambda: items.get(("users", "a"), "name"))
        attempt(lambda: items.search(("users",)))
        attempt(lambda: store.put({"more": 1}, Lineage(RUN, parent=found[0].id if found else b"")))
        for one in found[:2]:
            attempt(lambda one=one: store.delete([one.id]))
        attempt(lambda: store.delete_run(RUN))
    return read


def read_blobs(mutants: Mutants, folder: Path) -> None:
    """Damage blobs, and read all."""
    blobs = BlobFolder(folder)
    for digest in [blobs.put(mutants.random.randbytes(2000)) for _ in range(3)]:
        path = folder / digest.hex()[:2] / digest.hex()[2:]
        path.write_bytes(mutants.data(path.read_bytes()))
        data = attempt(lambda digest=digest: blobs.get(digest))
        assert data is None or blake3(data).digest() == digest
    assert len(list(blobs)) == 3


class Used:
    """The scratch folder, the sound store and the sound tape."""

    def __init__(self, scratch: Path, mutants: Mutants) -> None:
        self.scratch = scratch
        self._mutants = mutants
        self._sound = scratch / "sound.sqlite"
        fill(self._sound)
        with sqlite3.connect(self._sound) as database:  # all in one file
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()
        settings = Settings(quiet=True, level="exchanges")
        _, self._tape = record(lambda: fill(scratch / "taped.sqlite"), settings=settings)
        self.states = 0

    def once(self) -> None:
        """Damage one of them, and use it."""
        home = self.scratch / "used"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        kind = self._mutants.random.choice(["rows", "rows", "rows", "file", "tape", "tape", "blobs"])
        if kind == "blobs":
            return read_blobs(self._mutants, home / "blobs")
        path = home / "store.sqlite"
        if kind == "tape":
            run = Run.of_tapes([self._mutants.tape(self._tape)], [], "x")
            attempt(lambda: restored(run, path))
        else:
            shutil.copy(self._sound, path)
            (self._mutants.rows if kind == "rows" else self._mutants.file)(path)
        if path.exists():
            self.states += attempt(lambda: read_store(path)) or 0


def main(seed: int, count: int, folder: Path) -> int:
    scratch, canary = folder / "scratch", folder / "canary"
    for one in (scratch, canary):
        one.mkdir(parents=True, exist_ok=True)
    (canary / "kept").write_text("kept")
    os.chdir(scratch)
    used = Used(scratch, Mutants(seed))
    watched = Watched(scratch)
    for number in range(-40, count):  # the first rounds import what is needed
        watched.is_watching = number >= 0
        try:
            used.once()
        except Exception:
            watched.is_watching = False  # the compiler builds the traceback
            watched.problems.append(traceback.format_exc(limit=-6))
        watched.is_watching = False
        if watched.problems:
            print(f"seed {seed}, number {number}: {watched.problems[0]}")
            return 1
    kept = [(one.name, one.read_text()) for one in canary.iterdir()]
    if kept != [("kept", "kept")]:
        print(f"the canary was touched: {kept}")
        return 1
    print(json.dumps({"count": count, "states_read": used.states}))
    return int(not used.states)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
