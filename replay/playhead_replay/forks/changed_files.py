"""Files that a run has read and that have changed since: a live continuation reads other content."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from playhead_core.errors import TapeError
from playhead_core.process.environment import Places
from playhead_core.tape.protocols import Tape
from playhead_replay.run.held_tapes import held
from playhead_replay.workspace.file_changes import HERE, FileChange, file_changes


def changed_files(tape: Tape, folder: Path, places: Places) -> Iterator[str]:
    """Name the files that differ from what ``tape`` says the run read, one line each.

    ``folder``: where the run's folder is now; ``places``: maps the other recorded folders. Left out are
    files that the run itself changed, and those that are not on the tape as they were.
    """
    for name, change in _only_read(tape).items():
        data = None if change.redacted else change.data()
        if data is None:
            continue
        local = name.startswith(HERE)
        path = folder / name[len(HERE) :] if local else Path(places.text(name))
        try:
            path = path.expanduser()
            if not path.is_file():
                yield f"{path} is not here; the run has read it"
            elif path.stat().st_size != len(data) or path.read_bytes() != data:
                yield f"{path} has changed since the run read it"
        except (OSError, ValueError, RuntimeError):  # it cannot be read, or such a path cannot exist
            continue


def _only_read(tape: Tape) -> dict[str, FileChange]:
    """What was read last of each file that the run has not changed, by the name on the tape."""
    read: dict[str, FileChange] = {}
    changed: set[str] = set()
    try:
        for change in file_changes(held(tape)):
            if change.what == "seen":
                read[change.name] = change
            else:
                changed.update((change.name, change.to))
    except TapeError:
        return {}  # the tape has no usable account of files
    return {name: change for name, change in read.items() if name not in changed}
