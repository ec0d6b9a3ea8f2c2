"""Prints lines to a terminal or a pipe: cut or whole, and through a pager only if they do not fit."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from playhead_cli.output.words import ASCII
from playhead_cli.session.messages import PIPE_CLOSED
from playhead_cli.session.session import Session
from playhead_core.untrusted.shown_text import hidden_at, in_one_line

if TYPE_CHECKING:
    from rich.text import Text

    from playhead_cli.output.styles import StyledLine


def print_lines(
    session: Session, lines: Iterable[Text | StyledLine], *, paged: bool = False, cut: bool = True
) -> None:
    """Print ``lines`` on stdout.

    On a terminal, each line is cut to its width if ``cut``. If there are more lines than the terminal
    has rows, and ``paged``, they go through the pager.
    """
    terminal = sys.stdout.isatty()
    if not terminal and not session.colored(sys.stdout):
        ascii_only = session.plain
        try:
            for line in lines:
                plain = line.plain
                if not (plain.isascii() and plain.isprintable()):
                    plain = in_one_line(plain)
                    plain = plain.translate(ASCII) if ascii_only else plain
                sys.stdout.write(f"{plain}\n")
        except BrokenPipeError:
            raise click.exceptions.Exit(PIPE_CLOSED) from None  # click would make it status 1
        return
    console = session.out
    texts = [printable(session, line) for line in lines]

    def write() -> None:
        for text in texts:
            if terminal and cut:
                console.print(text, no_wrap=True, overflow="ellipsis", crop=True)
            else:
                console.print(text, soft_wrap=True)

    if paged and terminal and len(texts) >= console.height:
        with console.capture() as captured:
            write()
        os.environ.setdefault("LESS", "-FRX")
        click.echo_via_pager(captured.get(), color=session.colored(sys.stdout))
    else:
        write()


def printable(session: Session, line: Text | StyledLine) -> Text:
    """``line`` as stdout can print it: a single line, without hidden text and control sequences."""
    return harmless(line, ascii_only=session.plain)


def harmless(line: Text | StyledLine, *, ascii_only: bool) -> Text:
    """``line`` as a single line, without hidden text and control sequences."""
    from playhead_cli.output.styles import StyledLine

    shown = _shown(line.__rich__() if isinstance(line, StyledLine) else line)
    if ascii_only and not shown.plain.isascii():
        shown.plain = shown.plain.translate(ASCII)
    return shown


def _shown(line: Text) -> Text:
    from rich.text import Text

    plain = line.plain
    found = [] if plain.isascii() and plain.isprintable() else hidden_at(plain, lines=True)
    if not found:
        return line
    shown, at = Text(style=line.style), 0
    for place, spelt in found:
        shown += line[at:place]
        shown += Text(spelt, style="reverse")
        at = place + 1
    return shown + line[at:]
