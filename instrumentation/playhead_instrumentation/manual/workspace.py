"""Record a snapshot of the working folder when the program requests it."""

from __future__ import annotations

from playhead_instrumentation.session.session import current


def workspace(label: str = "workspace") -> None:
    """Record a snapshot of the working folder in the background.

    The folder is the one in which the process started, without files that ``.gitignore`` excludes.
    ``label``: name of the snapshot in `playhead workspace`. Without the setting ``workspace`` this does
    nothing.
    """
    session = current()
    if session is not None and session.snapshots is not None:
        session.snapshots.ask(str(label)[:200])
