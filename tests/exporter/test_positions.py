"""Where an instance's tape is delivered up to, and which numbers a window has."""

from pathlib import Path

import pytest

from playhead_core.facts import Fact
from playhead_core.tape.frames import MAGIC, Header, SpanRecord, encode
from playhead_exporter.spool import folders
from playhead_exporter.spool.folders import CURSOR, DiskBudget, SpoolFolders, segment_name
from playhead_exporter.spool.segments import (
    START,
    DeliveryCursor,
    LeftSegments,
    Position,
    load_cursor,
    read_batch,
)


def test_a_cursor_is_read_as_it_was_written_also_over_a_longer_one(tmp_path: Path):
    cursor = DeliveryCursor(tmp_path)
    assert load_cursor(tmp_path) == START
    for position in (Position(12, 1 << 62), Position(3, 4), START):
        cursor.store(position)
        assert load_cursor(tmp_path) == position
    cursor.close()
    (tmp_path / CURSOR).write_text("no position")
    assert load_cursor(tmp_path) == START


def test_a_cursor_is_written_where_an_earlier_version_wrote_one(tmp_path: Path):
    (tmp_path / CURSOR).write_text("123456789 123456789\n")
    assert load_cursor(tmp_path) == Position(123456789, 123456789)
    cursor = DeliveryCursor(tmp_path)
    cursor.store(Position(1, 2))
    cursor.close()
    assert load_cursor(tmp_path) == Position(1, 2)


def test_a_cursor_without_a_folder_is_not_written(tmp_path: Path):
    cursor = DeliveryCursor(tmp_path / "later")
    cursor.store(Position(1, 2))
    (tmp_path / "later").mkdir()
    assert load_cursor(tmp_path / "later") == START
    cursor.store(Position(1, 2))
    cursor.close()
    assert load_cursor(tmp_path / "later") == Position(1, 2)


def test_a_batch_has_the_numbers_of_its_first_and_last_fact(tmp_path: Path):
    spool = SpoolFolders(tmp_path, None)
    segments = LeftSegments(b"i" * 16, spool)
    spool.home(segments.instance).mkdir()
    file = spool.home(segments.instance) / segment_name(1, "tape")
    facts = [Fact(1, 1, "playhead.read", instance=b"i" * 16, seq=seq) for seq in (4, 5, 6)]
    span = encode(SpanRecord(b"otlp"))
    for records, numbers in (([span, *map(encode, facts), span], (4, 6)), ([span], (-1, -1))):
        file.write_bytes(MAGIC + encode(Header(segments.instance, 1)) + b"".join(records))
        batch = read_batch(segments, START, 1 << 20)
        assert (batch.first, batch.last, batch.facts) == (*numbers, len(records) - records.count(span))


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
