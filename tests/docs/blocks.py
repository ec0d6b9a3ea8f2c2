"""The blocks of code in a page, and the commands in them.

How a page says what to do with a block:

* ``console``: what is typed. ``$ `` begins a command, ``> `` goes on with it, other lines are what it
  prints, with ``…`` for what is left out. A comment ``# exit 1`` says how a command ends that does not
  end with 0.
* ``console title="NAME"``: typed in another terminal, NAME. Its last command goes on; what is printed
  below is what the reader waits for.
* a language and ``title="FILE"``: the content of that file, in the folder of the reader.
* ``python`` without a title: a program of its own.
* ``<!-- not run: REASON -->`` before a block: it needs what a test cannot have. It is parsed all the
  same.
* any other block is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it import MarkdownIt

NOT_RUN = re.compile(r"<!-- not run: (\S.*) -->")
TITLE = re.compile(r'title="([^"]+)"')
EXIT = re.compile(r"\s#[^'\"]*\bexit (\d+)\b")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block."""

    page: Path
    line: int
    """Of its first line of text, from 1."""
    language: str
    title: str
    text: str
    not_run: str
    """Why it is not run; empty: it is."""

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


@dataclass(slots=True)
class Command:
    """One command that is typed."""

    text: str
    line: int
    status: int = 0
    """How it ends."""
    prints: list[str] = field(default_factory=list)
    """Lines that the page shows of what it prints."""


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    reason = ""
    for token in MarkdownIt().parse(page.read_text("utf-8")):
        if token.type == "html_block":
            said = NOT_RUN.match(token.content)
            reason = said[1] if said else reason
        elif token.type == "fence":
            assert token.map is not None
            language, _, rest = token.info.partition(" ")
            title = TITLE.search(rest)
            line = token.map[0] + 2
            found.append(Block(page, line, language, title[1] if title else "", token.content, reason))
            reason = ""
        elif token.type.endswith("_open"):
            reason = ""
    return found


def commands_of(block: Block) -> list[Command]:
    """The commands of a block of the language ``console``."""
    found: list[Command] = []
    for line, text in enumerate(block.text.splitlines(), block.line):
        if text.startswith("$ "):
            ends = EXIT.search(text)
            found.append(Command(text[2:], line, int(ends[1]) if ends else 0))
        elif not found:
            raise ValueError(f"{block}: a block of the language console begins with a command")
        elif text.startswith("> ") and not found[-1].prints:
            found[-1].text += f"\n{text[2:]}"
        else:
            found[-1].prints.append(text)
    return found


def typed(page: Path) -> Iterator[Command]:
    """All commands of a page that are run."""
    for block in blocks_of(page):
        if block.language == "console" and not block.not_run:
            yield from commands_of(block)
