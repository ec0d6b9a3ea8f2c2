"""Replays, forks and compares damaged tapes of a real run; every process of the program is watched.

``python -m support.hostile.mutants_run SEED COUNT FOLDER``: records a program that asks a model, talks
to a child process and changes files, damages its tape COUNT times, and runs each one with the program.
Exits 1 with the reason if anything else than the program is executed or started, if anything outside
the folders of a replay is written, or if one of them does not end. Prints how each of them ended.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import msgspec
from support.hostile.mutants_used import PIECES
from support.hostile.tape_mutants import Mutants
from support.observed.asking import ASKING
from support.starting.home import Home

from playhead_cli.demo.provider import Provider
from playhead_core.facts import Content, Fact
from playhead_core.tape.frames import WHOLE, Footer, Header, encode
from playhead_replay.tape_files.tape_file import TapeFile, read_tape_file

SHARED = Path("/dev/shm/playhead-")
"""How the folders begin in which what is recorded waits for the disk."""

LONGEST_S = 120.0
TESTS = Path(__file__).parents[2]
WORDS = (("replay",), ("fork", "--offline"), ("resume", "--on-unknown", "resend"))
PROGRAM = """
import multiprocessing, pathlib, random, time

def answer(there):
    there.send({"said": asked(there.recv()), "at": (1, [2.5], {"x": None})})

if __name__ == "__main__":
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=answer, args=(there,))
    child.start()
    here.send("go")
    print(here.recv()["said"])
    child.join()
    pathlib.Path("notes.txt").write_text(str(random.random()))
    print(asked(pathlib.Path("notes.txt").read_text()), time.time())
"""

FOREIGN = "import this\n"
"""A program that the watch has to report."""

NOT_ISOLATED = """
import sys
from playhead_replay.runner import replaying, warm_processes
replaying.isolated = warm_processes.isolated = warm_processes.options = lambda *_, **__: []
"""
"""Makes replays run as on a system without namespaces, which would keep what the watch writes."""

COMMAND = (
    NOT_ISOLATED
    + """
import runpy
runpy.run_module("playhead_cli", run_name="__main__", alter_sys=True)
"""
)

WATCHES = """
import os, sys
sys.path.append({tests!r})
from support.hostile.watched import Watched

write, log = os.write, os.open({log!r}, os.O_WRONLY | os.O_APPEND)  # before anything is patched

class Written(list):
    def append(self, problem):
        write(log, problem.encode(errors="replace") + b"\\n")

class Quiet(Watched):
    def _place(self, name):
        return os.path.normpath(os.path.join({program!r}, name))  # a system call would be on the tape

watched = Quiet(*{inside!r}, allowed=("os.fork", "ctypes.dlopen"), trusted=({program!r}, {forks!r}))
watched.problems = Written()
watched.is_watching = True
"""


class DamagedRuns(Mutants):
    """Generator of damaged tapes of a recorded run."""

    def __init__(self, seed: int, found: TapeFile) -> None:
        self.random = random.Random(seed)
        self._tapes = [list(tape.facts()) for tape in found.tapes]
        self._bases: Any = [SimpleNamespace(facts=facts, spans=[]) for facts in self._tapes]
        self._choose()

    def next(self, folder: Path) -> Path:
        """The file of the next one; its facts are damaged, not its frames."""
        self._choose()
        damaged = [self._with_opcodes(fact) for fact in self._facts()]
        tapes = [damaged if facts is self.facts else facts for facts in self._tapes]
        frames: list[bytes] = []
        try:
            for whole, facts in zip(self._tapes, tapes, strict=True):
                frames += [encode(Header(whole[0].instance, 1)), *map(encode, facts)]
        except (TypeError, ValueError, OverflowError):
            return self.next(folder)
        path = folder / "damaged.tape"
        path.write_bytes(WHOLE + b"".join([*frames, encode(Footer(sum(map(len, tapes)), 0))]))
        return path

    def _with_opcodes(self, fact: Fact) -> Fact:
        """``fact``, now and then with a piece of a pickle in its body."""
        if fact.body is None or not fact.body.inline or self.random.random() > 0.1:
            return fact
        data = bytearray(fact.body.inline)
        at = self.random.randrange(len(data) + 1)
        data[at:at] = self.random.choice(PIECES)
        return msgspec.structs.replace(fact, body=Content.of(bytes(data)))


class Tried:
    """A home whose program is watched, and a canary beside it."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        self.folder = folder
        for name in ("agent", "canary", "watch", "data", "home", "tmp"):
            (folder / name).mkdir(parents=True)
        (folder / "agent" / "agent.py").write_text(ASKING + PROGRAM, "utf-8")
        (folder / "canary" / "kept").write_text("kept")
        self.log = folder / "problems"
        self._expected = {"agent.py", "notes.txt", "whole.tape", "damaged.tape"}
        inside = [*(folder / name for name in ("agent", "spool", "data", "home", "tmp")), SHARED]
        self._watch = WATCHES.format(
            tests=str(TESTS),
            log=str(self.log),
            inside=[str(one) for one in inside],
            program=str(folder / "agent"),
            forks=str(folder / "data" / "forks"),
        )
        self._home = Home(folder, provider.environment)
        self._home.bare["TMPDIR"] = self._home.environ["TMPDIR"] = str(folder / "tmp")
        self.python = folder / "watch" / "python"
        variables = f"PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={folder}/watch"
        self.python.write_text(f'#!/bin/sh\n{variables} exec {sys.executable} "$@"\n')
        self.python.chmod(0o755)

    def run(self, *words: str | Path) -> tuple[int | None, str]:
        """``playhead WORDS`` in the folder of the program: exit status, output; None: it did not end."""
        return self.run_words([sys.executable, "-c", COMMAND, *map(str, words)])

    def run_words(
        self, words: list[str], more: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[int | None, str]:
        """The same for any command; ``more``: variables."""
        here = self.folder / "agent"
        started = subprocess.Popen(
            words,
            env={**self._home.environ, **more},
            cwd=here,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            said, _ = started.communicate(timeout=LONGEST_S)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            return None, started.communicate()[0]
        return started.returncode, said

    def expects(self, name: str) -> None:
        """Let a file or folder be in the folder of the program."""
        self._expected.add(name)

    def watch(self) -> None:
        """Watch what is started from now on."""
        self.log.touch()
        (self.folder / "watch" / "sitecustomize.py").write_text(self._watch)

    def problem(self) -> str:
        """What was done that only an evil tape asks for; empty: nothing."""
        kept = [(one.name, one.read_text()) for one in (self.folder / "canary").iterdir()]
        if kept != [("kept", "kept")]:
            return f"the canary was touched: {kept}"
        files = {one.name for one in (self.folder / "agent").iterdir()} - {"__pycache__"}
        if extra := files - self._expected:
            return f"files of the program's folder: {extra}"
        return self.log.read_text()


def main(seed: int, count: int, folder: Path) -> int:
    with Provider(pace_s=0.0) as provider:
        tried = Tried(folder, provider)
        recorded = tried.run("record", "--level", "causal", "agent.py")
        assert recorded[0] == 0, recorded[1]
        tried.watch()
        exported = tried.run("export", "-o", "whole.tape")
        assert exported[0] == 0, exported[1]
        whole, program = folder / "agent" / "whole.tape", folder / "agent" / "agent.py"
        program.write_text(FOREIGN)
        tried.run("replay", "--force", "--trust", "--python", tried.python, whole)
        assert "imports this\n" in tried.problem(), "the watch does not work"
        tried.log.write_text("")
        program.write_text(ASKING + PROGRAM, "utf-8")
        first = tried.run("replay", "--trust", "--python", tried.python, whole)
        assert first[0] == 0, first[1]
        assert not tried.problem(), tried.problem()
        damaged, ends = DamagedRuns(seed, read_tape_file(whole)), Counter[str]()
        for number in range(count):
            file = damaged.next(folder / "agent")
            words = WORDS[number % len(WORDS)]
            status, said = tried.run(*words, "--trust", "--python", tried.python, file)
            ends[f"{words[0]} {'hangs' if status is None else status}"] += 1
            problem = tried.problem()
            if status is None or ("Traceback" in said and "/playhead_cli/" in said):
                problem += said
            if problem:
                print(f"seed {seed}, number {number}, {words}: {problem[:3000]}")
                return 1
    print(json.dumps(dict(sorted(ends.items()))))
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
