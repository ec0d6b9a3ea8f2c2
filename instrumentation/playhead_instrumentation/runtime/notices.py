"""What playhead says on stderr, in its own words, one line each."""

from __future__ import annotations

import os
from collections.abc import Sequence


class Notices:
    """Says things on stderr. ``quiet`` leaves only what went wrong."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet

    def recording(self, agent: str, patched: Sequence[str], level: str) -> None:
        """Once per run: what is recorded, and how."""
        if not self.quiet:
            _say(
                f"recording {agent} ({', '.join(patched)}; {level})" if patched else f"recording {agent}"
            )

    def unpatched(self, name: str, reason: str) -> None:
        """A patch that failed."""
        _say(f"cannot record {name}: {reason}")

    def problem(self, text: str) -> None:
        """Something that went wrong."""
        _say(text)


def _say(text: str) -> None:
    # Not `sys.stderr`: that is the program's, and what goes through it is recorded as the program's.
    line = "".join(f"playhead: {line}\n" for line in text.splitlines())
    try:
        os.write(2, line.encode("utf-8", "backslashreplace"))
    except OSError:
        # A closed stderr: there is nobody to tell.
        return
