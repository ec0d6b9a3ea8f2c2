"""A terminal of a given width in this process: what is printed on it, as text."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

ROWS = 1000
"""So many that nothing goes through a pager."""

END = "\0"
"""Written last: a terminal that is closed may lose what nobody has read yet."""


class Terminal:
    """Collects what is printed."""

    def __init__(self) -> None:
        self.text = ""

    def take(self, master: int) -> None:
        """Read until `END`."""
        heard = b""
        while not heard.endswith(END.encode()):
            heard += os.read(master, 1 << 16)
        self.text = heard.decode().removesuffix(END).replace("\r\n", "\n")


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch, columns: int, *, colour: bool) -> Iterator[Terminal]:
    """Make stdout and stderr a terminal for the ``with`` block; afterwards its text is complete."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    found = Terminal()
    reading = threading.Thread(target=found.take, args=(master,))
    reading.start()
    try:
        with monkeypatch.context() as patch, open(slave, "w", encoding="utf-8", buffering=1) as out:
            for stream in ("stdout", "stderr"):
                patch.setattr(sys, stream, out)
            for name in ("FORCE_COLOR", "NO_COLOR", "COLORTERM"):
                patch.delenv(name, raising=False)
            if not colour:
                patch.setenv("NO_COLOR", "1")
            patch.setenv("TERM", "xterm-256color")
            patch.setenv("COLUMNS", str(columns))
            patch.setenv("LINES", str(ROWS))
            try:
                yield found
            finally:
                out.write(END)
                out.flush()
                reading.join()
    finally:
        os.close(master)


def heard(master: int) -> str:
    """All that was written on a terminal which nobody has open any more; it comes in pieces."""
    said = b""
    with suppress(OSError):
        while piece := os.read(master, 1 << 16):
            said += piece
    os.close(master)
    return said.decode()


def screen(text: str) -> list[str]:
    """The lines that stand on a terminal after ``text``, which goes up and erases lines."""
    lines, at = [""], 0
    for piece in re.split(r"(\n|\r|\x1b\[[0-9;?]*[A-Za-z])", text):
        if piece == "\n":
            at += 1
            lines += [""] * (at + 1 - len(lines))
        elif re.fullmatch(r"\x1b\[\d*A", piece):
            at -= int(piece[2:-1] or 1)
        elif piece == "\x1b[2K":
            lines[at] = ""
        elif piece and not piece.startswith(("\x1b", "\r")):
            lines[at] += piece
    return [line.rstrip() for line in lines if line.strip()]
