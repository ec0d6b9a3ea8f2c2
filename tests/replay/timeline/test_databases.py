"""Databases at a moment: folded from facts made by hand, and read though anybody may have made them."""

import os
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from playhead_core.databases import MOST_BYTES, ChangedBlocks, blocks_changed, encode_blocks, with_blocks
from playhead_core.facts import Content, Fact
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_replay import Run
from playhead_replay.databases import DatabaseHistory, tables_of
from playhead_replay.databases import tables as limits
from playhead_replay.databases.history import UNKEPT, WHY
from playhead_replay.workspace.folding import REDACTED, UNRECORDED
from playhead_semconv import attributes as a
from playhead_semconv import events as e

INSTANCE = b"\x01" * 16
NAME = "./kept.db"


def database(*statements: str) -> bytes:
    with closing(sqlite3.connect(":memory:")) as base:
        base.executescript(";".join(statements))
        base.commit()
        return base.serialize()


EMPTY = database("create table kept (text)")
ONE = database("create table kept (text)", "insert into kept values ('one')")


class Told:
    """A tape, fact by fact."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self._add(e.PLAYHEAD_PROCESS_START, {a.PLAYHEAD_RUN_CWD: "/work"}, None)

    def _add(self, name: str, at: dict[str, Any], body: bytes | None) -> "Told":
        seq = len(self.facts)
        content = None if body is None else Content.of(body)
        self.facts.append(
            Fact(seq * 10, 1, name, attributes=at, body=content, instance=INSTANCE, seq=seq)
        )
        return self

    def opened(self, data: bytes | None, **at: Any) -> "Told":
        kind = {a.PLAYHEAD_READ_KIND: f"file/database {NAME}", a.PLAYHEAD_FILE_SIZE: 1, **at}
        return self._add(e.PLAYHEAD_READ, kind, data)

    def changed(self, changes: ChangedBlocks | bytes, **at: Any) -> "Told":
        body = changes if isinstance(changes, bytes) else encode_blocks(changes)
        return self._add(e.PLAYHEAD_DATABASE, {a.PLAYHEAD_DATABASE_PATH: NAME, **at}, body)

    def effect(self, kind: str, target: str) -> "Told":
        at = {a.PLAYHEAD_EFFECT_KIND: f"file.{kind}", a.PLAYHEAD_EFFECT_TARGET: target}
        return self._add(e.PLAYHEAD_EFFECT, at, None)

    @property
    def history(self) -> DatabaseHistory:
        return DatabaseHistory(Run.of_tape(MemoryTape(self.facts, INSTANCE)))

    def then(self) -> list[tuple[str, list[Any], str]]:
        """Name, rows of all tables, and what is not exact, at the end."""
        found = self.history.before({INSTANCE.hex(): len(self.facts)})
        return [(one.name, rows(one.image), one.why) for one in found]


def rows(image: bytes | None) -> list[Any]:
    return [] if image is None else [tuple(row) for table in tables_of(image) for row in table.rows]


def test_what_was_so_before_each_fact():
    two = database("create table kept (text)", "insert into kept values ('two')")
    told = Told().opened(EMPTY).changed(blocks_changed(EMPTY, ONE)).changed(blocks_changed(ONE, two))
    history = told.history
    # Steps forwards, backwards, and anew give the same.
    for end, wanted in ((2, []), (3, [("one",)]), (4, [("two",)]), (2, []), (4, [("two",)]), (1, None)):
        for known in (history, told.history):
            found = known.before({INSTANCE.hex(): end})
            assert [rows(one.image) for one in found] == ([] if wanted is None else [wanted])


def test_renamed_removed_and_opened_again():
    told = Told().opened(ONE).effect("rename", f"{NAME} ./other.db")
    assert told.then() == [("other.db", [("one",)], "")]
    assert told.effect("unlink", "./other.db").then() == []
    assert told.opened(EMPTY).then() == [("kept.db", [], "")]
    assert told.opened(None, **{a.PLAYHEAD_FILE_ERROR: 2}).then() == []


def test_what_is_not_known_is_named():
    changes = blocks_changed(EMPTY, ONE)
    assert Told().opened(None).then() == [("kept.db", [], UNKEPT)]
    large = Told().opened(ONE).changed(b"", **{a.PLAYHEAD_DATABASE_UNKEPT: "large"})
    assert large.then() == [("kept.db", [], WHY["large"])]
    assert large.changed(blocks_changed(b"", ONE)).then() == [("kept.db", [("one",)], "")]
    redacted = Told().opened(EMPTY).changed(changes, **{a.PLAYHEAD_REDACTED_COUNT: 1})
    assert redacted.then() == [("kept.db", [("one",)], REDACTED)]
    before_changes_were_told = Told().opened(EMPTY).effect("write", NAME)
    assert before_changes_were_told.then() == [("kept.db", [], UNRECORDED)]
    assert Told().opened(EMPTY).changed(changes).effect("write", NAME).then() == [
        ("kept.db", [("one",)], "")
    ]


@pytest.mark.parametrize(
    "changes",
    [
        b"nonsense",
        ChangedBlocks(MOST_BYTES + 1, [], b""),
        ChangedBlocks(-1, [], b""),
        ChangedBlocks(100_000, [0], b"x" * 4096),
        ChangedBlocks(8192, [-1], b"x" * 4096),
        ChangedBlocks(8192, [2], b"x" * 4096),
        ChangedBlocks(8192, [0], b"x"),
    ],
    ids=str,
)
def test_changes_that_nobody_writes_are_named(changes: ChangedBlocks | bytes):
    [(name, found, why)] = Told().opened(EMPTY).changed(changes).then()
    assert (name, found) == ("kept.db", [])
    assert why.startswith("its changes cannot be read")


def test_changes_of_any_two_states_give_the_later_one():
    states = [b"", b"a" * 100, b"a" * 4096, b"a" * 4097, EMPTY, ONE, os.urandom(20_000)]
    for one in states:
        for other in states:
            assert with_blocks(one, blocks_changed(one, other)) == other


def test_nothing_of_the_database_is_executed(tmp_path):
    image = database(
        "create table kept (text, up as (upper(text)), low as (lower(text)) stored)",
        "insert into kept (text) values ('One')",
        "create view seen as select * from kept, kept, kept",
        "create trigger t after insert on kept begin delete from kept; end",
        "create virtual table words using fts5(text)",
    )
    found = {table.name: table for table in tables_of(image)}
    assert (found["kept"].columns, found["kept"].rows) == (["text", "low"], [["One", "one"]])
    assert "seen" not in found
    assert found["words"].why.startswith("virtual table")


@pytest.mark.parametrize(
    "statement",
    [
        "select load_extension('x')",
        "attach '/tmp/x' as x",
        "vacuum into '/tmp/x'",
        "insert into kept values (1)",
        "pragma journal_mode = wal",
        "select zeroblob(1000000000)",
    ],
)
def test_the_connection_does_nothing_but_read(statement: str):
    with closing(limits._opened(ONE)) as base, pytest.raises(sqlite3.Error):
        base.execute(statement).fetchall()


def test_tables_that_are_too_much_are_cut_and_named(monkeypatch: pytest.MonkeyPatch):
    image = database(
        "create table long (text)",
        "with recursive n(x) as (select 1 union all select x + 1 from n where x < 300)"
        " insert into long select x from n",
        "create table value (text)",
        "insert into value values (hex(zeroblob(5000)))",
    )
    long, value = tables_of(image, 3)
    assert (long.rows, long.row_count) == ([[1], [2], [3]], 300)
    assert value.rows == [["0" * limits.LONGEST + "…"]]
    monkeypatch.setattr(limits, "MOST_TOTAL_BYTES", 100)
    assert "more than" in tables_of(image)[0].why
    monkeypatch.setattr(limits, "MOST_TABLES", 1)
    assert tables_of(image, 1)[-1].why == "it has more than 1 tables"
    monkeypatch.setattr(limits, "MOST_IMAGE_BYTES", 10)
    with pytest.raises(ValueError, match="more than"):
        tables_of(image)


def test_a_table_that_takes_too_long_is_left(monkeypatch: pytest.MonkeyPatch):
    image = database(
        "create table long (text)",
        "with recursive n(x) as (select 1 union all select x + 1 from n where x < 200000)"
        " insert into long select x from n",
    )
    monkeypatch.setattr(limits, "MOST_S", 0.0)
    monkeypatch.setattr(limits, "OPCODES", 1000)
    [table] = tables_of(image, 100_000)
    assert 0 < len(table.rows) < 100_000
    assert table.why == "it cannot be read completely: interrupted"


@pytest.mark.parametrize("step", [997, pytest.param(131, marks=pytest.mark.acceptance)])
def test_a_damaged_database_is_refused_or_read_in_part(step: int):
    image = bytearray(
        database(
            "create table one (a integer primary key, b text)",
            "create index two on one (b)",
            "with recursive n(x) as (select 1 union all select x + 1 from n where x < 500)"
            " insert into one (b) select hex(zeroblob(x % 90)) from n",
        )
    )
    for place in range(0, len(image), step):
        for value in (0, 255, image[place] ^ 1):
            broken = bytes(image[:place]) + bytes([value]) + bytes(image[place + 1 :])
            try:
                tables_of(broken, 1000)
            except ValueError as problem:
                assert "database cannot be read" in str(problem)
    for end in range(1, len(image), step * 10):
        try:
            tables_of(bytes(image[:end]))
        except ValueError as problem:
            assert str(problem)
