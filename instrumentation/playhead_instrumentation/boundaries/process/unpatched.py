"""Functions of `os` as they are before patching. Import this module before anything is patched."""

from __future__ import annotations

import os
from typing import Any, Final

execve: Final[Any] = os.execve
kill: Final[Any] = os.kill
waitpid: Final[Any] = getattr(os, "waitpid", None)
