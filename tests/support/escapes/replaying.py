"""``python replaying.py USER HOW TAPE REPORT``: replay the tape of a program that has changed.

Writes the report as JSON. HOW: ``namespaces``; ``without``, if none can be made; ``plain``, which runs
the program TAPE (a script in this case) without a replay.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from playhead_replay import Environment, ReplayConfiguration, Replayer, Rules
from playhead_replay.run.run import Run
from playhead_replay.runner.isolated import namespaces, system_calls
from playhead_replay.tape_files.tape_file import read_tape_file


def let_others_come(to: str) -> None:
    """In a private mount namespace: make all folders above ``to`` accessible to other users."""
    closed = next((one for one in reversed(Path(to).parents) if not one.stat().st_mode & 0o001), None)
    if closed is None:
        return
    inner = closed / Path(to).relative_to(closed).parts[0]
    system_calls.checked(system_calls.libc.unshare(namespaces.CLONE_NEWNS), "mounts")
    system_calls.mount(None, "/", None, system_calls.MS_REC | system_calls.MS_PRIVATE)
    kept = os.open(inner, os.O_PATH)
    system_calls.mount("tmpfs", str(closed), "tmpfs", 0, "mode=0755")
    inner.mkdir()
    system_calls.mount(f"/proc/self/fd/{kept}", str(inner), None, system_calls.MS_BIND)
    os.close(kept)


def without_namespaces() -> None:
    """Forbid the creation of namespaces from now on."""
    assert namespaces.unshared(namespaces.CLONE_NEWUSER)
    Path("/proc/sys/user/max_user_namespaces").write_text("0")


def become(user: int) -> None:
    """Become ``user``, without any capability."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    system_calls.drop_capabilities(0)


def main() -> None:
    """Entry point; see the module docstring."""
    user, how, tape, report = sys.argv[1:]
    if int(user) and os.geteuid() == 0:
        let_others_come(os.path.realpath(sys.executable))
    if how == "without":
        without_namespaces()
    if int(user):
        become(int(user))
    if how == "plain":
        os.execv(sys.executable, [sys.executable, tape])
    run = Run.of_tapes(read_tape_file(Path(tape)).tapes, name="escapes")
    around = Environment(environ=dict(os.environ))
    done = Replayer(ReplayConfiguration(around, Rules(force=True))).replay(run)
    said = {"stderr": done.stderr.decode(), "lines": list(done.report.lines())}
    Path(report).write_text(json.dumps({**done.report.to_json(), **said}))


if __name__ == "__main__":
    main()
