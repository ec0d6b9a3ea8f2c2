"""Record artifacts: results of a program that belong to its run. And snapshots of its folder."""

from __future__ import annotations

import os
from typing import Any, Final, cast

from playhead_core.facts import Content, digest_of
from playhead_core.process.own_messages import Log
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.session.session import Session, current
from playhead_semconv import attributes as a
from playhead_semconv import events as e

log = Log(__name__)

LONGEST_NAME: Final = 500
"""Characters of a name that are recorded."""


def artifact(
    name: str, data: bytes | bytearray | memoryview | str | os.PathLike[str], /, *, media_type: str = ""
) -> None:
    """Record a result of the program: `playhead artifacts RUN` lists it with the current span.

    ``name``: a file name such as ``report.pdf``. ``data``: bytes, text, or the path of a file, which is
    read now (a path is a `pathlib.Path`: a ``str`` is text). ``media_type``: by default guessed from the
    name. If the data is larger than the setting ``file-limit-bytes``, only name and size are recorded.
    Credentials in it are replaced. Without a recording this does nothing.
    """
    session = current()
    if session is None:
        return
    try:
        with Shadow():  # reading the file is not the program's
            size, content = _content(data, session.settings.file_limit_bytes)
            media_type = media_type or _guessed(name, data)
        _keep(session, name, media_type, size, content)
    except Exception:
        log.debug("playhead could not record an artifact", exc_info=True)


def _content(data: Any, limit_bytes: int) -> tuple[int, bytes | str]:
    """Return the size, and the content or the reason why it is not recorded."""
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    if not isinstance(data, os.PathLike):
        whole = bytes(data)
        return len(whole), whole if len(whole) <= limit_bytes else "large"
    try:
        with open(os.fspath(cast("os.PathLike[str]", data)), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > limit_bytes:
                return size, "large"
            whole = file.read(limit_bytes + 1)
    except OSError:
        return 0, "unreadable"
    return len(whole), whole if len(whole) <= limit_bytes else "large"


def _guessed(name: str, data: Any) -> str:
    import mimetypes  # a program that names its types does not need it

    found, coding = mimetypes.guess_type(name)
    if found is not None and coding is None:
        return found
    return "text/plain" if isinstance(data, str) else ""


def _keep(session: Session, name: str, media_type: str, size: int, content: bytes | str) -> None:
    lane = lanes.current()
    if lane is lanes.UNRECORDED or lane is lanes.GC:
        lane = lanes.MAIN  # inside of a tool: it is on no lane of the program
    redactor = session.redactor
    at: dict[str, Any] = {
        a.PLAYHEAD_ARTIFACT_NAME: redactor.text(name)[:LONGEST_NAME],
        a.PLAYHEAD_ARTIFACT_MEDIA_TYPE: media_type[:LONGEST_NAME],
        a.PLAYHEAD_ARTIFACT_SIZE_BYTES: size,
    }
    body: Content | None = None
    if isinstance(content, str):
        at[a.PLAYHEAD_ARTIFACT_UNKEPT] = content
    elif redactor.content:
        kept, count = redactor.body(content, 0)
        body = Content(digest_of(kept), len(kept), kept)
        if count:
            at[a.PLAYHEAD_REDACTED_COUNT] = count
    session.tell(e.PLAYHEAD_ARTIFACT, at, body, lane=lane)


def workspace(label: str = "workspace") -> None:
    """Record a snapshot of the working folder in the background.

    The folder is the one in which the process started, without files that ``.gitignore`` excludes.
    ``label``: name of the snapshot in `playhead workspace`. Without the setting ``workspace`` this does
    nothing.
    """
    session = current()
    if session is not None and session.snapshots is not None:
        session.snapshots.ask(str(label)[:200])
