"""Requests of commands to a process that records: accept commands of operators from now on.

A request is a file next to the folder of the process's active segments, which only the user can access.
The process looks for it in each round of its copier. The file names who asks, for the tape. Nothing in
it is carried out: the process only begins to ask its own endpoint for commands.

The file is beside the folder and not in it: a process with an earlier version of this package does not
know it, and would not delete a folder that holds it.
"""

from __future__ import annotations

import os
import stat

from playhead_core.process.own_descriptors import open_own, write_file
from playhead_exporter.spool.folders import REFUSAL, REQUEST, SpoolFolders, remove_file
from playhead_exporter.spool.owner import owner_alive

MOST_BYTES = 1000
"""Maximum size of a request, and of its refusal."""


class ControlRequest:
    """The request to one process. Commands `make` it, the process takes it and may `refuse` it."""

    def __init__(self, folders: SpoolFolders, instance: bytes) -> None:
        """``instance``: of the process."""
        self._home = folders.active_home(instance)
        self._asked = f"{self._home}{REQUEST}"
        self._refused = f"{self._home}{REFUSAL}"

    def make(self, by: str) -> bool:
        """Ask, in the name of ``by``. False if no living process of this user has the instance here.

        OSError if the file cannot be written.
        """
        if not owner_alive(self._home):
            return False
        self.withdraw()
        draft = f"{self._asked}.{os.getpid()}"
        write_file(draft, by.encode()[:MOST_BYTES], os.O_EXCL)
        os.rename(draft, self._asked)
        return True

    def withdraw(self) -> None:
        """Delete the request, and what the process has answered."""
        for path in (self._asked, self._refused):
            remove_file(path)

    def refusal(self) -> str:
        """Why the process refuses; empty if it does not, or has not looked yet."""
        return _text(self._refused) or ""

    def taken(self) -> str | None:
        """Delete the request. Return who made it; None if there is none, or if the file is invalid."""
        if not os.access(self._asked, os.F_OK):
            return None
        by = _text(self._asked)
        remove_file(self._asked)
        return by

    def refuse(self, why: str) -> None:
        """Tell the command why not. OSError."""
        write_file(self._refused, why.encode()[:MOST_BYTES], os.O_EXCL)


def _text(path: str) -> str | None:
    """The text of a small regular file that belongs to this user and that no other user can write.

    None if it is anything else. A pipe or a link in its place neither blocks nor leads elsewhere.
    """
    try:
        with open_own(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as file:
            status = os.fstat(file.number)
            is_own = stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid()
            if not is_own or status.st_mode & 0o022 or status.st_size > MOST_BYTES:
                return None
            return os.read(file.number, MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
