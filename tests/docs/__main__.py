"""``python -m docs PAGE…``: read pages as a reader would, and say how long each command takes.

Everything that a page says is done, from top to bottom: files are written, commands are typed. The first
command that does not end as the page says, or does not print what the page shows, ends the reading: exit
status 1.

``--fresh``: the reader has nothing installed but Python; this needs an index of packages.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from docs.blocks import Block, Command, blocks_of, commands_of
from docs.pages import reader_of
from docs.readers import Desk, seated
from docs.terminal import Terminal, lacking


class Reading:
    """A page that is read at a desk."""

    def __init__(self, page: Path, desk: Desk) -> None:
        self._page, self._desk = page, desk
        self._terminals: dict[str, Terminal] = {}

    def read(self) -> None:
        """Do what the page says. `AssertionError` where it is not so."""
        try:
            for block in blocks_of(self._page):
                if not block.not_run:
                    self._do(block)
        finally:
            for terminal in reversed(self._terminals.values()):
                terminal.close()

    def _do(self, block: Block) -> None:
        if block.language == "console":
            commands = commands_of(block)
            for number, command in enumerate(commands, 1):
                self._type(block.title, command, goes_on=bool(block.title) and number == len(commands))
        elif block.title:
            place = self._desk.folder / block.title
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(block.text, "utf-8")
            print(f"{'':>7} wrote {block.title}", flush=True)
        elif block.language == "python":
            program = self._desk.scratch.with_name("program.py")
            program.write_text(block.text, "utf-8")
            self._type("", Command(f"python {program}", block.line), goes_on=False)

    def _type(self, name: str, command: Command, *, goes_on: bool) -> None:
        if name not in self._terminals:
            self._terminals[name] = Terminal(self._desk.folder, self._desk.environ)
        terminal = self._terminals[name]
        begin = time.monotonic()
        scratch = self._desk.scratch.with_name(f"typed-{len(self._terminals)}")
        if goes_on:
            terminal.start(command.text, command.prints, scratch)
            status, said, missing = command.status, "", ""
        else:
            status, said = terminal.run(command.text, scratch)
            missing = lacking(command.prints, said)
        print(f"{time.monotonic() - begin:6.1f}s $ {command.text}", flush=True)
        if status == command.status and not missing:
            return
        where = f"{self._page.name}:{command.line}: `{command.text}`"
        what = f"does not print {missing!r}" if missing else f"ends with {status}"
        raise AssertionError(f"{where} {what}:\n{said}")


def main(words: list[str]) -> int:
    """Read the pages. Exit status."""
    for page in [Path(word) for word in words if word != "--fresh"]:
        reader = reader_of(page)
        reader = replace(reader, installs=reader.installs or "--fresh" in words)
        begin, before = time.monotonic(), os.times()
        print(f"{page}", flush=True)
        try:
            with seated(reader) as desk:
                Reading(page, desk).read()
        except (AssertionError, TimeoutError) as problem:
            print(problem, flush=True)
            return 1
        after = os.times()
        used = sum(after[:4]) - sum(before[:4])
        print(f"{time.monotonic() - begin:6.1f}s, {used:.1f}s of processor time", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
