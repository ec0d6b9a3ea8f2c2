"""A program recorded in a folder with files, and replayed over that folder, which must not change."""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from contextlib import closing

from support.starting.programs import Program
from support.starting.warm import run

from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_replay.report.compare import compare
from playhead_replay.tape_files.tape_file import read_tape_file, write_tape_file
from playhead_semconv import attributes as a
from playhead_semconv import events as e


def digest(folder):
    """Digest of everything below a folder, including times."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        found.update(f"{path} {path.lstat().st_mode} {path.lstat().st_mtime_ns}".encode())
        found.update(path.read_bytes() if path.is_file() else b"")
    return found.hexdigest()


class Ran:
    """A program recorded in a folder with files."""

    def __init__(self, tmp_path, source="", **environ):
        """Without a ``source``, the program is recorded later."""
        self.tmp_path = tmp_path
        self.folder = tmp_path / "folder"
        self.ws = self.folder / "ws"
        self.ws.mkdir(parents=True)
        (self.ws / "a.txt").write_text("one\ntwo\n")
        (self.ws / "b.bin").write_bytes(b"binary")
        (self.ws / "secrets.json").write_text('{"api_key": "abcdefgh12345678"}')
        (self.folder / "prod.env").write_text("X=1")
        with closing(sqlite3.connect(self.ws / "old.db")) as old, old:
            old.executescript(
                "pragma journal_mode = wal; create table kept (text); insert into kept values ('old')"
            )
        if source:
            self.record(source, **environ)

    def record(self, source, **environ):
        tmp_path = self.tmp_path
        environ.setdefault("PLAYHEAD_LEVEL", "strict")
        environ["PLAYHEAD_SPOOL_DIR"] = str(tmp_path / "spool")
        program = Program.of(self.folder, source, PYTHONHASHSEED="0", **environ)
        program.spool = tmp_path / "spool"
        self.environ = program.environ
        try:
            self.done = program.recorded()
            assert self.done.returncode == 0, self.done.stderr
            facts = program.facts()
        finally:
            program.close()
        main = next(fact.instance for fact in facts if fact.name == e.PLAYHEAD_PROCESS_START)
        self.tape = MemoryTape([fact for fact in facts if fact.instance == main], main)
        self.tapes = tmp_path / "tapes"
        self.tapes.mkdir()
        write_tape_file(self.tapes / "recorded.tape", self.tape)

    def again(self, *arguments, **environ):
        """The output of a replay, and its report; checks that the folder is unchanged."""
        before = digest(self.folder)
        now = self.tapes / "now.tape"
        words = ["replay", "--tape", self.tapes / "recorded.tape", "--now", now, "--", "agent.py"]
        done = run(
            [sys.executable, "-m", "playhead_instrumentation", *map(str, words), *arguments],
            cwd=self.folder,
            env={**self.environ, **environ},
            timeout=60,
        )
        assert digest(self.folder) == before
        self.now = read_tape_file(now).tape
        return done, compare(self.tape, self.now)

    def effects(self, kind):
        return [
            fact
            for fact in self.tape.facts()
            if fact.name == e.PLAYHEAD_EFFECT and fact.attributes[a.PLAYHEAD_EFFECT_KIND] == kind
        ]
