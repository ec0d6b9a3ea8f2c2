"""The console that everything in colour is printed on."""

from __future__ import annotations

from typing import IO

from rich.console import Console

PIPE_WIDTH = 1000
"""Width of lines that go to no terminal: nothing is cut or wrapped for a program."""


class PlainlyFailing(Console):
    """Lets a closed pipe be seen instead of ending the process itself."""

    def on_broken_pipe(self) -> None:
        """The reader went away: `main` knows what to do."""
        raise BrokenPipeError


def console_on(stream: IO[str], colored: bool) -> Console:
    """A console on ``stream``, in colour or not."""
    terminal = stream.isatty()
    return PlainlyFailing(
        file=stream,
        force_terminal=terminal or colored,
        color_system=("auto" if terminal else "standard") if colored else None,
        width=None if terminal else PIPE_WIDTH,
        highlight=False,
        emoji=False,
    )
