"""A recorded run without an agent, and a fake interpreter that only notes how it is started."""

from __future__ import annotations

import dataclasses
import json
import stat
import sys
from pathlib import Path
from typing import Any

from support.tapes.handmade import NOW_INSTANCE, NOW_TRACE, HandMade

from playhead_replay import (
    Environment,
    ReplayConfiguration,
    Replayer,
    ReplayResult,
    Rules,
    Run,
    write_tape_file,
)
from playhead_semconv import attributes as a

STAND_IN_FOR_PYTHON = f"""#!{sys.executable}
import json, os, shutil, socket, sys
words = sys.argv[1:]
at = dict(zip(words, words[1:]))
def contact():
    try:
        socket.create_connection(("127.0.0.1", int(os.environ["PORT"])), 2).close()
        return "reached"
    except OSError as problem:
        return type(problem).__name__
seen = {{"words": words, "cwd": os.getcwd(), "environ": dict(os.environ), "contact": contact()}}
if "SEEN" in os.environ:
    print(json.dumps(seen), file=sys.stderr)
print("said on stdout")
print("said on stderr", file=sys.stderr)
if os.environ["NOW_TAPE"]:
    shutil.copy(os.environ["NOW_TAPE"], at["--now"])
sys.exit(int(os.environ["STATUS"]))
"""


class Stage:
    """A recorded run, and a fake interpreter that notes how it was started and leaves a given tape."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.script = folder / "agent.py"
        self.script.write_text("print('hello')\n")
        self.python = folder / "python"
        self.python.write_text(STAND_IN_FOR_PYTHON)
        self.python.chmod(self.python.stat().st_mode | stat.S_IXUSR)
        self.environ: dict[str, str] = {"STATUS": "0", "PORT": "1"}
        self.seen: dict[str, Any] = {}
        """How the interpreter was last started."""
        self.leave(self.made(HandMade(NOW_INSTANCE, NOW_TRACE)))

    def made(self, made: HandMade) -> HandMade:
        made.start(self.script, str(self.folder), **{a.PLAYHEAD_RUN_INTERPRETER: str(self.python)})
        made.chat()
        return made.say("hello\n").exit(0)

    def run(self, made: HandMade | None = None) -> Run:
        return Run.of_tape((made or self.made(HandMade())).tape(), name="refund-7")

    def leave(self, now: HandMade) -> None:
        path = self.folder / "prepared.tape"
        write_tape_file(path, now.tape())
        self.environ["NOW_TAPE"] = str(path)

    def replay(
        self,
        run: Run | None = None,
        around: Environment | None = None,
        rules: Rules | None = None,
        keep: Path | None = None,
    ) -> ReplayResult:
        here = dataclasses.replace(around or Environment(), environ={**self.environ, "SEEN": "1"})
        done = Replayer(ReplayConfiguration(here, rules or Rules(), keep)).replay(run or self.run())
        seen, _, stderr = done.stderr.partition(b"\n")
        self.seen = json.loads(seen)
        return dataclasses.replace(done, stderr=stderr)
