"""Which of a program's imports are recorded, and which are not seen yet."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SEEN = {
    "openai": "bytes and spans",
    "anthropic": "bytes and spans",
    "httpx": "bytes",
    "httpx2": "bytes",
}
"""Modules whose traffic is recorded, and how."""

UNSEEN = {
    "requests": "its requests",
    "urllib3": "its requests",
    "urllib.request": "its requests",
    "http.client": "its requests",
    "aiohttp": "its requests",
    "websockets": "its messages",
    "grpc": "its calls",
    "botocore": "its requests",
    "boto3": "its requests",
    "socket": "its connections",
    "psycopg": "its queries",
    "psycopg2": "its queries",
    "sqlite3": "its queries",
    "redis": "its commands",
    "subprocess": "child processes",
    "multiprocessing": "child processes",
    "random": "random numbers",
    "secrets": "random numbers",
    "uuid": "random ids",
    "time": "clock readings",
    "datetime": "clock readings",
}
"""Modules that bring something in from outside which the tape does not hold."""


@dataclass(frozen=True, slots=True)
class Import:
    """An import statement of a program."""

    module: str
    line: int

    @property
    def seen(self) -> str:
        """How its traffic is recorded; empty where it is not."""
        return SEEN.get(self.module.split(".")[0], "")

    @property
    def unseen(self) -> str:
        """What of it is not on the tape; empty where nothing is known to be missing."""
        return UNSEEN.get(self.module) or UNSEEN.get(self.module.split(".")[0], "")


def imports_of(script: Path) -> Iterator[Import]:
    """The imports of a program's own file, in order. SyntaxError where it is no Python."""
    found: dict[str, int] = {}
    for node in ast.walk(ast.parse(script.read_bytes(), str(script))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.setdefault(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.setdefault(node.module, node.lineno)
    for module, line in sorted(found.items(), key=lambda item: item[1]):
        yield Import(module, line)
