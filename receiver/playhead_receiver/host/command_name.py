"""How the user can call playhead again, for commands that are offered to be copied."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def command_name() -> str:
    """``playhead`` where the shell finds it, else the path of the one beside this Python."""
    if shutil.which("playhead") is not None:
        return "playhead"
    beside = Path(sys.executable).with_name("playhead")
    if not beside.exists():
        return f"{sys.executable} -m playhead_receiver"
    short = os.path.relpath(beside)
    return short if not short.startswith(os.pardir) else str(beside)
