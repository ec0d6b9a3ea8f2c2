"""Fork servers of `multiprocessing`. A fork server is no process of the run, but its children are.

So nothing is recorded in the server. Recording starts in a child when the child gets its task.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.patching.patches import PATCHES

_SERVER: Final = os.getpid()

_start: list[Callable[[], Any]] = []
"""Functions that start the recording of a child; the first is used."""


def is_server() -> bool:
    """Whether this process is a fork server, and not a child of one."""
    if os.getpid() != _SERVER or not any("multiprocessing" in word for word in sys.orig_argv):
        return False
    from playhead_instrumentation.libraries.subprocess.workers import SERVER, role_of

    return role_of(sys.orig_argv[1:]) == SERVER


def in_children(start: Callable[[], Any]) -> None:
    """Call ``start`` in each child."""
    _start.append(start)
    if len(_start) == 1:
        PATCHES.when_imported("multiprocessing.spawn", "multiprocessing.spawn", _patch)


def _patch(module: ModuleType) -> None:
    PATCHES.around(module, "prepare", _prepare)


def _prepare(prepare: Any, data: Any) -> None:
    from playhead_instrumentation.libraries.subprocess.workers import HANDED

    variables = data.pop(HANDED, None)
    if variables is not None:
        os.environ.update(variables)
        _start[0]()
    prepare(data)
