"""Databases of SQLite: recorded in one process, replayed on a copy in another."""

import os
import shutil
import sqlite3
from contextlib import closing

import pytest
from support.long import long
from support.observed.files import Ran

from playhead_core.facts import Fidelity
from playhead_replay import Run
from playhead_replay.databases import DatabaseHistory, tables_of
from playhead_semconv import attributes as a

PROGRAM = """
import os, sqlite3, threading
from contextlib import closing
from pathlib import Path
from sqlite3 import dbapi2

print(sqlite3.connect, sqlite3.connect is dbapi2.connect, os.path.exists("ws/notes.db"))
base = sqlite3.connect("ws/notes.db")
print(type(base) is sqlite3.Connection)
base.execute("create table notes (at integer primary key, text text)")
base.execute("insert into notes (text) values ('first')")
base.commit()
with closing(sqlite3.connect(Path("ws/notes.db"))) as other:
    print(other.execute("select * from notes").fetchall(), os.path.getsize("ws/notes.db"))
base.execute("insert into notes (text) values ('second')")
base.close()
with closing(sqlite3.connect("ws/notes.db")) as base:
    print("rolled back", base.execute("select * from notes").fetchall())
base = dbapi2.connect(f"file:{os.path.abspath('ws/old.db')}?mode=rw", uri=True)
print("old", base.execute("select * from kept").fetchall())
print(base.execute("pragma journal_mode").fetchall())
base.execute("update kept set text = 'changed'"); base.commit(); del base
print("again", sqlite3.connect("ws/old.db").execute("select * from kept").fetchall())
for name, asked in (("ws/none.db?mode=ro", True), ("nowhere/x.db", False), ("ws", False)):
    try:
        sqlite3.connect(f"file:{name}" if asked else name, uri=asked).execute("select 1 from x")
    except sqlite3.OperationalError as problem:
        print(name, problem)
memory = sqlite3.connect(":memory:")
print(memory.execute("select 1").fetchall())

def work(number):
    with closing(sqlite3.connect("ws/notes.db", timeout=20)) as mine, mine:
        mine.execute("insert into notes (text) values (?)", (f"thread {number}",))

for number in range(3):
    thread = threading.Thread(target=work, args=(number,)); thread.start(); thread.join()
logged = sqlite3.connect("ws/log.db"); logged.execute("pragma journal_mode = wal")
logged.execute("create table log (text text)")
for number in range(50):
    with logged:
        logged.execute("insert into log values (?)", (f"line {number}",))
other = sqlite3.connect("ws/log.db")
print(sorted(os.listdir("ws")), other.execute("select count(*) from log").fetchall())
os.rename("ws/notes.db", "ws/moved.db")
print(sqlite3.connect("ws/moved.db").execute("select count(*) from notes").fetchall())
os.remove("ws/moved.db")
print(sqlite3.connect("ws/moved.db").execute("select * from sqlite_master").fetchall())
print(sqlite3.connect("ws/empty.db").execute("select * from sqlite_master").fetchall())
class Mine(sqlite3.Connection):
    pass
left = sqlite3.connect("ws/left.db", factory=Mine); left.execute("create table left_open (x)")
print(type(left))
"""


BY_SQL = """
import sqlite3
memory = sqlite3.connect(":memory:")
print(memory.execute("select random(), hex(randomblob(4)), julianday('now')").fetchall())
base = sqlite3.connect("ws/new.db")
base.execute("create table made (at default current_timestamp, chance default (random()), n)")
for n in range(2):
    base.execute("insert into made (n) values (?)", (n,)); base.commit()
print(base.execute("select * from made order by random()").fetchall())
base.execute("attach 'ws/old.db' as old")
direct = sqlite3.Connection("ws/direct.db"); direct.execute("create table t (x)")
direct.execute("insert into t values (1)"); direct.commit()
print(base.execute("select * from old.kept").fetchall(), direct.execute("select * from t").fetchall())
base.execute("vacuum into 'ws/copy.db'")
print(sqlite3.connect("ws/copy.db").execute("select count(*) from made").fetchall())
try:
    base.execute("attach 'nowhere/x.db' as x")
except sqlite3.OperationalError as problem:
    print(problem)
"""

REWRITING = """
import sqlite3, sys
with sqlite3.connect("ws/old.db") as base:
    base.execute("insert into kept values (?)", (sys.argv[-1],))
base.close()
print(len(sqlite3.connect("ws/old.db").execute("select * from kept").fetchall()))
"""

SHARED = """
import sqlite3, os, sys
from contextlib import closing
def texts():
    with closing(sqlite3.connect("ws/old.db")) as base:
        return base.execute("select * from kept").fetchall()
def other():  # as another process would: no boundary sees it
    import ctypes
    assert ctypes.CDLL(None).rename(b"ws/other.db", b"ws/old.db") == 0
print(texts())
if os.environ.get("SHARED"):
    other()
print(texts())
"""

CHILD = """
import sqlite3, subprocess, sys
from playhead_instrumentation.libraries.files import workspace
workspace.LOOK_S = workspace.CHANGED_S = 60.0  # a busy machine looks longer
base = sqlite3.connect("ws/old.db")
print(base.execute("select * from kept").fetchall())
other = sqlite3.connect("ws/new.db"); other.execute("create table made (x)"); other.commit()
code = "import sqlite3; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()"
insert = {"old": "insert into kept values ('by a child')", "new": "insert into made values (1)"}
for name, sql in insert.items():
    subprocess.run([sys.executable, "-c", f"import sys; {code}", f"ws/{name}.db", sql], check=True)
    base.execute("insert into kept values (?)", (f"after {name}",)); base.commit()
print(base.execute("select * from kept").fetchall(), other.execute("select * from made").fetchall())
"""

TOOLS = """
import sqlite3
from contextlib import closing
import playhead

@playhead.tool
def keeps(text):
    with closing(sqlite3.connect("ws/old.db")) as base, base:
        base.execute("insert into kept values (?)", (text,))
        return base.execute("select random() is not null").fetchone()[0]

def texts():
    with closing(sqlite3.connect("ws/old.db")) as base:
        return base.execute("select * from kept").fetchall()

print(keeps("one"), texts(), keeps("two"), texts(), keeps("three"))
"""

SECRETIVE = """
import os, sqlite3
from contextlib import closing
with closing(sqlite3.connect("ws/secret.db")) as base:
    print(base.execute("select length(text), count(*) from notes where at > 0").fetchall())
    base.execute("insert into notes values (3, ?)", (os.environ["OPENAI_API_KEY"],)); base.commit()
"""


def rows_told(tape):
    """All rows of all databases, as the tape says at its end."""
    history = DatabaseHistory(Run.of_tape(tape))
    found = history.before({tape.instance.hex(): tape.last_seq + 1})
    assert [one.why for one in found] == [""] * len(found)
    return {
        os.path.basename(one.name): {
            table.name: [tuple(row) for row in table.rows] for table in tables_of(one.image)
        }
        for one in found
    }


def rows_there(folder):
    """All rows of all databases in a folder."""
    found = {}
    for path in sorted(folder.glob("*.db")):
        with closing(sqlite3.connect(path)) as base:
            names = base.execute("select name from sqlite_master where type = 'table'").fetchall()
            found[path.name] = {
                name: base.execute(f"select * from {name} limit 100").fetchall() for (name,) in names
            }
    return found


@pytest.mark.parametrize("level", [long("causal"), "strict"])
def test_every_way_to_work_on_a_database(level, tmp_path):
    ran = Ran(tmp_path)
    (ran.ws / "empty.db").touch()
    ran.record(PROGRAM, PLAYHEAD_LEVEL=level)
    assert "rolled back [(1, 'first')]" in ran.done.stdout
    done, report = ran.again()
    assert done.stdout == ran.done.stdout, done.stderr
    assert report.verdict == "identical", "\n".join(report.lines())
    assert rows_told(ran.tape) == rows_there(ran.ws)
    written = [fact.attributes[a.PLAYHEAD_EFFECT_TARGET] for fact in ran.effects("file.write")]
    assert written == ["./ws/notes.db"] * 4 + [
        f"./ws/{name}.db" for name in ("old", "log", "moved", "left")
    ]


def test_the_clock_the_chance_and_the_files_of_sql(tmp_path):
    ran = Ran(tmp_path, BY_SQL)
    assert "[('old',)] [(1,)]" in ran.done.stdout
    done, report = ran.again()
    assert done.stdout == ran.done.stdout, done.stderr
    assert report.verdict == "identical", "\n".join(report.lines())
    assert report.reads["clock"][Fidelity.EXACT] == 3
    assert sorted(fact.attributes[a.PLAYHEAD_EFFECT_TARGET] for fact in ran.effects("file.write")) == [
        "./ws/copy.db",
        "./ws/direct.db",
        "./ws/new.db",
    ]


def test_the_database_need_not_be_there(tmp_path):
    ran = Ran(tmp_path, PROGRAM)
    for path in ran.ws.glob("*.db*"):
        path.unlink()
    done, report = ran.again()
    assert done.stdout == ran.done.stdout, done.stderr
    assert report.verdict == "identical", "\n".join(report.lines())


def test_another_content_is_a_divergence(tmp_path):
    ran = Ran(tmp_path, REWRITING)
    done, report = ran.again("other")
    assert done.stdout == ran.done.stdout, done.stderr
    (found,) = report.divergences
    assert (found.kind, found.what) == ("effect", "effect file.write ./ws/old.db")
    assert found.difference.path == "digest of the content"


ORDERED = """
import sqlite3, sys
base = sqlite3.connect("ws/new.db")
base.execute("create table kept (name text, more text)")
for name in sorted(["one", "two", "three"], reverse="other" in sys.argv):
    base.execute("insert into kept values (?, 'a\\nb')", [name])
base.commit()
base.close()
"""


def test_rows_in_another_order_are_the_same_content_where_the_level_keeps_no_order(tmp_path):
    """At causal, jobs that write through one connection may take turns in another order."""
    for level, kinds in ("causal", []), ("strict", ["effect"]):
        (tmp_path / level).mkdir()
        ran = Ran(tmp_path / level, ORDERED, PLAYHEAD_LEVEL=level)
        _, report = ran.again("other")
        assert [one.kind for one in report.divergences] == kinds


def test_what_another_process_changed_between_two_connections_is_recorded(tmp_path):
    ran = Ran(tmp_path)
    shutil.copy(ran.ws / "old.db", ran.ws / "other.db")
    with closing(sqlite3.connect(ran.ws / "other.db")) as base, base:
        base.execute("insert into kept values ('from outside')")
    ran.record(SHARED, SHARED="1")
    assert ran.done.stdout == "[('old',)]\n[('old',), ('from outside',)]\n"
    done, report = ran.again(SHARED="")
    assert done.stdout == ran.done.stdout, done.stderr
    assert report.verdict == "identical", "\n".join(report.lines())


def test_a_child_changes_a_database_that_is_open(tmp_path):
    ran = Ran(tmp_path, CHILD)
    assert "('by a child',), ('after old',), ('after new',)] [(1,)]" in ran.done.stdout
    assert rows_told(ran.tape) == rows_there(ran.ws)
    done, report = ran.again()
    assert done.stdout == ran.done.stdout, done.stderr
    assert report.verdict == "identical", "\n".join(report.lines())


@pytest.mark.parametrize("level", [long("causal"), "strict"])
def test_what_a_tool_wrote_is_there_where_the_program_opens_it_afterwards(level, tmp_path):
    ran = Ran(tmp_path)
    ran.record(TOOLS, PLAYHEAD_LEVEL=level)
    assert ran.done.stdout == "1 [('old',), ('one',)] 1 [('old',), ('one',), ('two',)] 1\n"
    done, report = ran.again()
    assert done.stdout == ran.done.stdout, done.stderr
    assert report.verdict == "identical", "\n".join(report.lines())


def test_a_database_over_the_limit_is_refused(tmp_path):
    ran = Ran(tmp_path, REWRITING, PLAYHEAD_FILE_LIMIT_BYTES="100")
    done, report = ran.again()
    assert "it was too large to be kept" in done.stderr
    assert report.verdict == "blocked"


def test_credentials_in_a_database_are_not_recorded(tmp_path):
    key = "sk-proj-abcdefgh12345678"
    ran = Ran(tmp_path)
    with closing(sqlite3.connect(ran.ws / "secret.db")) as base, base:
        base.execute("create table notes (at integer primary key, text text)")
        base.executemany("insert into notes values (?, ?)", [(1, key), (2, "other")])
    ran.record(SECRETIVE, OPENAI_API_KEY=key)
    held = b"".join(fact.body.inline or b"" for fact in ran.tape.facts() if fact.body is not None)
    assert b"abcdefgh12345678" not in held and b"other" in held
    done, report = ran.again(OPENAI_API_KEY="another")
    assert done.stdout == ran.done.stdout, done.stderr
    assert report.redacted
