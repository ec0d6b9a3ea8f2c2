"""The name of the agent that a command runs, where nothing else says it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from playhead_core.lazy_patterns import lazy
from playhead_core.process.environment import readable

SERVERS: Final = frozenset(
    (
        "daphne",
        "fastapi",
        "flask",
        "granian",
        "gunicorn",
        "hypercorn",
        "quart",
        "uvicorn",
        "waitress-serve",
    )
)
"""Programs that serve an application, which is the agent."""

RUNNERS: Final = frozenset(("arq", "celery", "chainlit", "dramatiq", "streamlit"))
"""Programs that run the tasks or the pages of an application, which is the agent."""

GENERIC: Final = frozenset(
    (
        "__init__",
        "__main__",
        "app",
        "asgi",
        "celery",
        "main",
        "manage",
        "server",
        "tasks",
        "worker",
        "wsgi",
    )
)
"""Names of modules that say less than that of the package, or of the folder, around them."""

SERVER: Final = " server"
"""End of the name of a process that serves an agent."""

_ATTRIBUTE = lazy(r"([A-Za-z_][\w.]*):[A-Za-z_][\w.]*(\(.*\))?\Z")
_MODULE = lazy(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*\Z")
_OPTION = lazy(r"(--app|-A)(?:=(.*))?\Z", re.DOTALL)
_VERBS = frozenset(("beat", "dev", "multi", "run", "worker"))


class Named(NamedTuple):
    """The name of an agent, and whether the command is a server, to which its requests come."""

    agent: str
    serves: bool = False

    @property
    def process(self) -> str:
        """Name of the process: that of the agent, unless the agent's runs are the requests to it."""
        return f"{self.agent}{SERVER}" if self.serves else self.agent or "python"


def named(script: str, words: Sequence[str]) -> Named:
    """The name of the agent that a program runs: that of its module, or of the one that it serves.

    ``script``: a path, or ``-m MODULE``. ``words``: the command line with the program first.

    >>> named("-m uvicorn", ["uvicorn", "desk.main:app", "--port", "80"])
    Named(agent='desk', serves=True)
    >>> named("agents/refund.py", ["agents/refund.py"])
    Named(agent='refund', serves=False)
    """
    if script in ("", "-", "-c"):
        return Named("")
    own = _of_program(script)
    if own not in SERVERS | RUNNERS:
        return Named(own)
    told = _application(words[1:])
    return Named(told or own, own in SERVERS)


def module_name(module: str) -> str:
    """The last part of the name of a module that is not generic; the first part if all are."""
    parts = module.split(".")
    return next((part for part in reversed(parts) if part not in GENERIC), parts[0])


def _of_program(script: str) -> str:
    if script.startswith("-m "):
        module = script.removeprefix("-m ")
        parts = module.split(".")
        return module_name(module) if parts[0] not in SERVERS | RUNNERS else parts[0]
    return _of_file(script)


def _of_file(path: str) -> str:
    """The name of a file without its suffix; that of its folder if it is ``__main__`` or ``manage``."""
    file = Path(readable(path))
    if file.stem in ("__main__", "manage"):
        return file.absolute().parent.name or file.stem
    return file.stem


def _application(words: Sequence[str]) -> str:
    """The name of the application that a server or a runner is told to load; empty if none is found."""
    bare: list[str] = []
    for before, word in zip(("", *words), words, strict=False):
        option = _OPTION.match(word)
        if option is not None and option[2]:
            return _of_spelling(option[2])
        if _OPTION.match(before) and "=" not in before:
            return _of_spelling(word)
        if _ATTRIBUTE.match(word) or word.endswith(".py"):
            return _of_spelling(word)
        if _MODULE.match(word) and word not in _VERBS and not before.startswith("-"):
            bare.append(word)
    return module_name(bare[0]) if bare else ""


def _of_spelling(word: str) -> str:
    """The name of an application spelt ``module:attribute``, ``module`` or as a file."""
    found = _ATTRIBUTE.match(word)
    if word.endswith(".py"):
        return _of_file(word)
    return module_name(found[1] if found else word)
