"""The console for all coloured output."""

from __future__ import annotations

from typing import IO

from rich.console import Console

PIPE_WIDTH = 1000
"""Width of lines that do not go to a terminal: nothing is cut or wrapped for a program."""


class PlainlyFailing(Console):
    """A console that raises on a closed pipe instead of ending the process itself."""

    def on_broken_pipe(self) -> None:
        """The reader went away: `main` handles it."""
        raise BrokenPipeError


def console_on(stream: IO[str], colored: bool) -> Console:
    """Return a console on ``stream``, in colour or not."""
    terminal = stream.isatty()
    return PlainlyFailing(
        file=stream,
        force_terminal=terminal or colored,
        color_system=("auto" if terminal else "standard") if colored else None,
        width=None if terminal else PIPE_WIDTH,
        highlight=False,
        emoji=False,
    )
