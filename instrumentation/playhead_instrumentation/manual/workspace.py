"""If a program says that its working folder is to be recorded as it is."""

from __future__ import annotations

from playhead_instrumentation.session.session import current


def workspace(label: str = "workspace") -> None:
    """Record a snapshot of the working folder, soon: the program goes on meanwhile.

    The folder is that in which the process began, without what ``.gitignore`` leaves out. ``label``:
    what `playhead workspace` calls the snapshot. Without the setting ``workspace`` this does nothing.
    """
    session = current()
    if session is not None and session.snapshots is not None:
        session.snapshots.ask(str(label)[:200])
