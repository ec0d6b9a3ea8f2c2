"""A run that worked on a database of SQLite is resumed; others may have been there meanwhile."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.long import long
from support.observed.asking import ASKING
from support.servers.scripted import Reply, Request, ScriptedServer, json_reply, openai_chat
from support.starting.branching import PATIENCE_S, environment, playhead
from support.starting.programs import segments
from support.starting.running import start_agent, until

from playhead_semconv import attributes as a

AGENT = f"""
import sqlite3, sys
{ASKING}
sys.stdin.readline()
rows = sqlite3.connect("orders.db")
rows.execute("create table if not exists orders (number integer, said text)")
rows.commit()
for number in range(6):
    rows.execute("insert into orders values (?, ?)", (number, asked(f"order {{number}}")))
    rows.commit()
rows.close()
print("done")
"""


def answer(request: Request) -> Reply:
    return json_reply(openai_chat.completion(f"to {request.json['messages'][-1]['content']}"))


def snapshot_is_taken(environ: dict[str, str]) -> bool:
    """Whether the first snapshot is in the spool; only its own fact says when it began."""
    try:
        found = segments(Path(environ["PLAYHEAD_SPOOL_DIR"])).values()
    except FileNotFoundError:  # copied just now
        return False
    return any(a.PLAYHEAD_WORKSPACE_BEGUN_NS.encode() in segment for each in found for segment in each)


@dataclass
class Dead:
    """A run that began with the first snapshot, and was killed while it asked for the fourth time."""

    folder: Path
    environ: dict[str, str]

    @property
    def database(self) -> Path:
        return self.folder / "orders.db"

    def numbers(self, path: Path | None = None) -> list[int]:
        connection = sqlite3.connect(path or self.database)
        try:
            return [number for (number,) in connection.execute("select number from orders")]
        finally:
            connection.close()

    def resume(self) -> subprocess.CompletedProcess[str]:
        """What was asked and not answered when it died is asked again."""
        words = "resume", "--on-unknown", "resend"
        return playhead(*words, environ=self.environ, cwd=self.folder)


LEFT_OPEN = AGENT.replace("rows.close()\n", "")


@pytest.fixture
def dead(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Dead]:
    """The parameter is the program, by default one that closes its database."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "agent.py").write_text(getattr(request, "param", AGENT))
    with ScriptedServer() as provider:
        environ = environment(tmp_path, provider.url) | {"PLAYHEAD_WORKSPACE": "start"}
        started: Future[subprocess.Popen[bytes]] = Future()
        left = [4]

        def strikes(asked: Request) -> bool:
            agent = started.result(PATIENCE_S)
            left[0] -= 1
            if left[0] == 0:
                agent.send_signal(signal.SIGKILL)
                agent.wait(PATIENCE_S)
            return False

        provider.on(strikes, answer)
        provider.on("/v1/chat/completions", answer, repeat=True)
        script = str(work / "agent.py")
        agent = start_agent(script, environ=environ, cwd=work, stdin=subprocess.PIPE)
        started.set_result(agent)
        until(lambda: snapshot_is_taken(environ), "the files of the start are on the tape")
        agent.communicate(b"begin\n", PATIENCE_S)
        assert agent.returncode == -signal.SIGKILL
        environ.pop("PLAYHEAD_QUIET", None)
        yield Dead(work, environ)


@pytest.mark.parametrize(
    "dead", [long(AGENT, id="closed"), pytest.param(LEFT_OPEN, id="left open")], indirect=True
)
def test_what_the_dead_run_had_written_is_no_reason_to_keep_a_copy(dead: Dead):
    assert dead.numbers() == [0, 1, 2]
    done = dead.resume()
    assert done.returncode == 0, done.stderr
    assert dead.numbers() == [0, 1, 2, 3, 4, 5]
    assert "has not written" not in done.stderr
    assert [path.name for path in dead.folder.glob("orders.db*")] == ["orders.db"]


def test_what_somebody_else_has_written_meanwhile_is_kept(dead: Dead):
    connection = sqlite3.connect(dead.database)
    connection.execute("insert into orders values (99, 'of somebody else')")
    connection.commit()
    connection.close()
    done = dead.resume()
    assert done.returncode == 0, done.stderr
    assert dead.numbers() == [0, 1, 2, 3, 4, 5]
    kept = dead.folder / "orders.db.before-resume"
    assert dead.numbers(kept) == [0, 1, 2, 99]
    assert f"held what this run has not written: that is kept in {kept}" in done.stderr


def test_a_database_that_is_locked_is_not_lost(dead: Dead):
    other = sqlite3.connect(dead.database)
    try:
        other.execute("begin exclusive")
        done = dead.resume()
    finally:
        other.rollback()
        other.close()
    assert done.returncode == 0, done.stderr
    assert dead.numbers() == [0, 1, 2]
    made = dead.folder / "orders.db.from-resume"
    assert dead.numbers(made) == [0, 1, 2, 3, 4, 5]
    assert (
        f"could not be written (database is locked): what the run made of it is in {made}" in done.stderr
    )


@pytest.mark.parametrize("dead", [LEFT_OPEN], indirect=True)
def test_a_dead_run_goes_on_on_another_machine(dead: Dead, tmp_path: Path):
    tape, there = tmp_path / "dead.tape", tmp_path / "there"
    here = {name: value for name, value in dead.environ.items() if name != "PLAYHEAD_ENDPOINT"}
    for words in (("spool", "push", "--all"), ("export", "-o", str(tape))):
        done = playhead(*words, environ=here, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    dead.folder.rename(tmp_path / "gone")
    other = here | {"PLAYHEAD_DATA_DIR": str(tmp_path / "other")}
    for words in (("import", str(tape)), ("workspace", "--to", str(there))):
        done = playhead(*words, environ=other, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    on = ("resume", "--on-unknown", "resend", "--trust")
    refused = playhead(*on, environ=other, cwd=tmp_path)
    assert "playhead workspace RUN --to FOLDER" in refused.stderr
    done = playhead(*on, "--cwd", str(there), environ=other, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in there.iterdir()) == ["agent.py", "orders.db"]
    assert dead.numbers(there / "orders.db") == [0, 1, 2, 3, 4, 5]
