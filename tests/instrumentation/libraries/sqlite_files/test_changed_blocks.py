"""What a recording notices of databases between two steps, and what it leaves out."""

import os
import sqlite3
from contextlib import closing

import pytest

from playhead_core.databases import ChangedBlocks, with_blocks
from playhead_instrumentation.libraries import sqlite_files
from playhead_instrumentation.libraries.sqlite_files import LOOKED_BYTES, Databases


@pytest.fixture(params=["delete", "wal"])
def base(request, tmp_path):
    with closing(sqlite3.connect(tmp_path / "kept.db", timeout=0)) as base:
        base.execute(f"pragma journal_mode = {request.param}")
        base.execute("create table kept (text text)")
        base.commit()
        yield base


@pytest.fixture
def seen(base, tmp_path):
    """The databases of a process that has opened it and told what it held."""
    found = Databases(lambda path: path, 16 << 20)
    found.look(str(tmp_path / "kept.db"))
    found.opened(str(tmp_path / "kept.db"))
    return found


def test_only_blocks_that_have_changed_are_told(base, seen, tmp_path):
    path = str(tmp_path / "kept.db")
    held = base.serialize()
    assert seen.news(path) is None
    for number in range(50):
        base.execute("insert into kept values (?)", (f"{number} " * 200,))
        base.commit()
        news = seen.news(path)
        assert isinstance(news, ChangedBlocks)
        assert len(news.indexes) < 8
        held = with_blocks(held, news)
        assert held == base.serialize()
    assert seen.news(path) is None


def test_what_is_not_committed_is_not_told(base, seen, tmp_path):
    base.execute("insert into kept values ('soon')")
    assert seen.news(str(tmp_path / "kept.db")) is None
    base.commit()
    assert isinstance(seen.news(str(tmp_path / "kept.db")), ChangedBlocks)


def test_an_untouched_database_is_not_read(base, seen, tmp_path, monkeypatch):
    path = str(tmp_path / "kept.db")
    for end in ("", "-wal"):
        if os.path.exists(path + end):
            os.utime(path + end, ns=(1, 1))
    assert seen.news(path) is None
    monkeypatch.setattr(sqlite_files, "snapshot", lambda *_: pytest.fail("it was read"))
    assert seen.news(path) is None


def test_a_large_database_is_named_once_and_told_whole_when_it_is_small_again(base, seen, tmp_path):
    path = str(tmp_path / "kept.db")
    base.execute("insert into kept values (zeroblob(?))", (LOOKED_BYTES,))
    base.commit()
    assert seen.news(path) == "large"
    assert seen.news(path) is None
    base.execute("delete from kept")
    base.commit()
    base.execute("vacuum")
    base.execute("pragma wal_checkpoint(truncate)")
    news = seen.news(path)
    assert isinstance(news, ChangedBlocks)
    assert with_blocks(b"", news) == base.serialize()


@pytest.mark.parametrize("base", ["delete"], indirect=True)  # readers of a log are not kept away
def test_nobody_is_waited_for(base, seen, tmp_path):
    path = str(tmp_path / "kept.db")
    base.isolation_level = None
    base.execute("begin exclusive")
    base.execute("insert into kept values ('locked')")
    os.utime(path)
    assert seen.news(path) == "busy"
    assert seen.news(path) is None
    base.execute("commit")
    news = seen.news(path)
    assert isinstance(news, ChangedBlocks)
    assert with_blocks(b"", news) == base.serialize()


def test_a_database_that_is_gone_is_nothing_new(base, seen, tmp_path):
    base.close()
    for path in tmp_path.iterdir():
        path.unlink()
    assert seen.news(str(tmp_path / "kept.db")) is None
