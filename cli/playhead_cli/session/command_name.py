"""The command by which the user can call playhead, for commands that messages offer to copy."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def command_name() -> str:
    """``playhead`` if the shell finds it, else the path of the one beside this Python interpreter."""
    if shutil.which("playhead") is not None:
        return "playhead"
    beside = Path(sys.executable).with_name("playhead")
    if not beside.exists():
        return f"{sys.executable} -m playhead_cli"
    short = os.path.relpath(beside)
    return short if not short.startswith(os.pardir) else str(beside)
