"""``python -I -S isolated --parent PID --said FILE [--network none] [--scratch DIR] -- COMMAND``.

Executes the command in this process; the command dies with process PID. If Linux allows it, the command
gets namespaces of its own and no capability that reaches outside them:

* ``--network none``: no network. Sockets and pipes in folders are cut off too, because each folder is
  seen through an overlay.
* ``--scratch DIR``: no file outside DIR can be changed. Everything that is mounted is read-only. The
  program's folder and the folders for temporary files are writable, but what is written is discarded. No
  other process is visible, nor its shared memory, queues, semaphores, terminals and devices.
* ``--wait SECONDS``: how long processes that the command started may outlive it.

What the kernel enforces is written to FILE and to the variable ``PLAYHEAD_HELD_BY_KERNEL``: ``network``,
``files``, ``processes``.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from .file_view import FileView
from .namespaces import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUTS,
    die_with,
    leave_behind,
    unshared,
    users,
    write,
)
from .system_calls import capabilities, drop_capabilities, libc, tried

KEYCTL_JOIN_SESSION_KEYRING: Final = 1
SYS_KEYCTL: Final = {"x86_64": 250, "aarch64": 219}

HELD_BY_KERNEL: Final = "PLAYHEAD_HELD_BY_KERNEL"


def main(words: list[str]) -> None:
    """Entry point; see the module docstring."""
    split = words.index("--")
    options, command = words[:split], words[split + 1 :]
    enter(options)
    try:
        os.execvp(command[0], command)
    except OSError as problem:
        sys.stderr.write(f"{command[0]}: {problem.strerror}\n")
        raise SystemExit(127) from None


def enter(options: list[str]) -> None:
    """Apply ``options`` to this process, which must have one thread.

    Returns in the process that is to become the command. That may be a new process; the calling process
    then stays behind as its parent and ends with the same status.
    """
    values = dict(zip(options[::2], options[1::2], strict=True))
    parent, enforced = int(values["--parent"]), list[str]()
    network, scratch = values.get("--network") == "none", values.get("--scratch", "")
    flags = CLONE_NEWNET if network else 0
    flags |= CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS if scratch else 0
    before, owners = capabilities(), users()
    if flags and unshared(flags):
        if users() != owners:  # otherwise this would change the limit of the whole machine
            tried(lambda: write("/proc/sys/user/max_user_namespaces", "0"))
        if scratch:
            leave_behind(parent, float(values.get("--wait", "0")))
            parent = os.getppid()
            os.setsid()
            enforced = _alone(scratch, network=network)
        tried(lambda: drop_capabilities(before))
    with open(values["--said"], "w", encoding="utf-8") as said:
        said.write("\n".join(enforced))
    if enforced:
        os.environ[HELD_BY_KERNEL] = " ".join(enforced)
    die_with(parent)


def _alone(scratch: str, *, network: bool) -> list[str]:
    """Inside the namespaces: leave nothing writable but ``scratch``. Returns what is enforced."""
    enforced = ["processes"]
    number = SYS_KEYCTL.get(os.uname().machine)
    if number is not None:
        libc.syscall(number, KEYCTL_JOIN_SESSION_KEYRING, None)
    view = FileView(scratch)
    if tried(view.only_in_scratch):
        enforced.append("files")
        if network and view.whole:
            enforced.append("network")
    return enforced
