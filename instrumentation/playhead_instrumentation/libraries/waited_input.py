"""Waits for a person's input where the input itself is not recorded: `input` and `getpass`.

Without a sign of the wait, a program that asks a person would look like one that hangs. Nothing that is
read is recorded. Files are not waited for. Reads of `sys.stdin` are left alone: they may be those of a
server that talks to another program.
"""

from __future__ import annotations

import builtins
import functools
import os
import stat
from collections.abc import Callable
from typing import Any

from playhead_core.process.own_messages import Log
from playhead_instrumentation.patching.patches import PATCHES, Patches
from playhead_instrumentation.session.session import Session, current
from playhead_semconv import attributes as a
from playhead_semconv import events as e

log = Log(__name__)


def watch(patches: Patches, session: Session) -> None:
    """Cover `input`, if the process does not record its input."""
    if not session.has("stdin"):
        patches.attempt(
            "input", lambda: patches.around(builtins, "input", functools.partial(_read, "input"))
        )


def patch(getpass: Any) -> None:
    """Cover `getpass.getpass`."""
    PATCHES.around(getpass, "getpass", functools.partial(_read, "getpass"))


class Waiting:
    """Context manager: a fact says that an input is waited for, and one that the wait is over."""

    def __init__(self, session: Session, key: str) -> None:
        self._session = session
        self._key = key

    def __enter__(self) -> None:
        self._say(True)

    def __exit__(self, *_: object) -> None:
        self._say(False)

    def _say(self, pending: bool) -> None:
        session = self._session
        try:
            if not stat.S_ISREG(os.fstat(0).st_mode):
                told = {a.PLAYHEAD_INPUT_KEY: self._key, a.PLAYHEAD_INPUT_PENDING: pending}
                session.reports.append(session.driver, e.PLAYHEAD_INPUT, told, session.here())
        except Exception:
            log.debug("playhead could not record that an input is waited for", exc_info=True)


def _read(key: str, original: Callable[..., str], *args: Any, **kwargs: Any) -> str:
    session = current()
    if session is None or session.has("stdin"):
        return original(*args, **kwargs)
    with Waiting(session, key):
        return original(*args, **kwargs)
