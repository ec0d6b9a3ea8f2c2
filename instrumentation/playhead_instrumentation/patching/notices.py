"""Messages of playhead on stderr, each line with its prefix."""

from __future__ import annotations

import os
from collections.abc import Sequence


class Notices:
    """Prints messages on stderr. ``quiet``: only problems."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet

    def recording(self, agent: str, patched: Sequence[str], level: str) -> None:
        """Print, once per run, what is recorded and at which level."""
        if not self.quiet:
            _say(
                f"recording {agent} ({', '.join(patched)}; {level})" if patched else f"recording {agent}"
            )

    def unpatched(self, name: str, reason: str) -> None:
        """Print a patch that failed."""
        _say(f"cannot record {name}: {reason}")

    def problem(self, text: str) -> None:
        """Print a problem."""
        _say(text)


def _say(text: str) -> None:
    # Not `sys.stderr`: output through it is recorded as the program's.
    line = "".join(f"playhead: {line}\n" for line in text.splitlines())
    try:
        os.write(2, line.encode("utf-8", "backslashreplace"))
    except OSError:
        # stderr is closed.
        return
