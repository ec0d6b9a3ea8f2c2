"""Where an instance's tape is delivered up to, and which numbers a window has."""

from pathlib import Path

import pytest

from playhead_core.facts import Fact
from playhead_core.tape.frames import MAGIC, SpanRecord, encode
from playhead_exporter.spool import folders
from playhead_exporter.spool.folders import CURSOR, DiskBudget
from playhead_exporter.spool.segments import START, Position, SpoolBatch, load_cursor, store_cursor


def test_a_cursor_is_read_as_it_was_written_also_over_a_longer_draft(tmp_path: Path):
    assert load_cursor(tmp_path) == START
    draft = (tmp_path / CURSOR).with_suffix(".draft")
    draft.write_text("123456789 123456789 123456789\n")
    for position in (Position(12, 345678), Position(3, 4), START):
        assert store_cursor(tmp_path, position)
        assert load_cursor(tmp_path) == position
        assert not draft.exists()
    (tmp_path / CURSOR).write_text("no position")
    assert load_cursor(tmp_path) == START
    assert not store_cursor(tmp_path / "gone", START)


def test_a_window_has_the_numbers_of_its_first_and_last_fact():
    facts = [Fact(1, 1, "playhead.read", instance=b"i" * 16, seq=seq) for seq in (4, 5, 6)]
    span = encode(SpanRecord(b"otlp"))
    tape = MAGIC + span + b"".join(map(encode, facts)) + span
    assert SpoolBatch(1, START, tape).numbers() == (4, 6)
    assert SpoolBatch(1, START, MAGIC + span).numbers() == (-1, -1)
    assert SpoolBatch(1, START).numbers() == (-1, -1)


def test_what_others_have_spent_is_counted_again_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The clock of the budget is turned by hand."""
    now = [1000.0]
    monkeypatch.setattr(folders.time, "monotonic", lambda: now[0])
    spool = DiskBudget(tmp_path, 100)
    (tmp_path / "a").write_bytes(bytes(50))
    assert spool.allows(40)
    assert (spool.spent_bytes, spool.allows(20)) == (90, False)
    (tmp_path / "a").unlink()
    assert not spool.allows(20)  # it was counted just now
    now[0] += 0.2
    assert spool.allows(20)
    assert spool.spent_bytes == 20
    (tmp_path / "b").write_bytes(bytes(70))
    now[0] += 1.0
    assert spool.allows(30)  # not over, as far as it knows, and it was counted a moment ago
    now[0] += 2.1
    assert not spool.allows(31)
    assert spool.spent_bytes == 70
