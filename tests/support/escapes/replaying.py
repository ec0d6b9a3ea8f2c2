"""``python replaying.py USER HOW TAPE REPORT``: replay a tape of a program that has changed.

The report is written as JSON. HOW: ``namespaces``; ``without``, where none can be made; ``plain``, which
runs the program of TAPE (a script then) without any replay.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from playhead_replay.launch import isolated
from playhead_replay.launch.replaying import replay
from playhead_replay.run.run import Run
from playhead_replay.tape_files.tape_file import read_tape_file


def let_others_come(to: str) -> None:
    """In a namespace of its own: no folder above ``to`` is for its owner alone."""
    closed = next((one for one in reversed(Path(to).parents) if not one.stat().st_mode & 0o001), None)
    if closed is None:
        return
    inner = closed / Path(to).relative_to(closed).parts[0]
    isolated.checked(isolated.libc.unshare(isolated.CLONE_NEWNS), "mounts")
    isolated.mount(None, "/", None, isolated.MS_REC | isolated.MS_PRIVATE)
    kept = os.open(inner, os.O_PATH)
    isolated.mount("tmpfs", str(closed), "tmpfs", 0, "mode=0755")
    inner.mkdir()
    isolated.mount(f"/proc/self/fd/{kept}", str(inner), None, isolated.MS_BIND)
    os.close(kept)


def without_namespaces() -> None:
    """No other namespace can be made from now on."""
    assert isolated.unshared(isolated.CLONE_NEWUSER)
    Path("/proc/sys/user/max_user_namespaces").write_text("0")


def become(user: int) -> None:
    """Be ``user``, without any capability."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    isolated.drop(0)


def main() -> None:
    """See the module."""
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
    done = replay(run, environ=dict(os.environ), force=True)
    said = {"stderr": done.stderr.decode(), "lines": list(done.report.lines())}
    Path(report).write_text(json.dumps({**done.report.to_json(), **said}))


if __name__ == "__main__":
    main()
