"""Messages of playhead on stderr, each line with its prefix."""

from __future__ import annotations

from collections.abc import Sequence

from playhead_core.process.own_messages import prefixed, write_message


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
    write_message(prefixed(text))
