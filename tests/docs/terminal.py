"""A terminal in which a reader types: one shell that goes on, with its folder, variables and jobs."""

from __future__ import annotations

import os
import queue
import re
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

PATIENCE_S = 240.0


def same_shape(text: str) -> str:
    """The text without what differs from run to run: times, ports, ids, figures of money."""
    text = re.sub(r"127\.0\.0\.1:\d+|localhost:\d+", "ADDRESS", text)
    text = re.sub(r"(\d+(\.\d+)?) ?(ms|s|m|h|d)\b", "TIME", text)
    text = re.sub(r"\b[0-9a-f]{8,}\b", "ID", text)
    text = re.sub(r"\d+(\.\d+)? (kB|MB)\b", "SIZE", text)
    return re.sub(r"\s+", " ", text).strip()


def lacking(prints: Sequence[str], said: str) -> str:
    """The first line of what a page shows that was not printed, in that order; empty where all was."""
    rest = [same_shape(line) for line in said.splitlines()]
    for line in prints:
        wanted = same_shape(line)
        if wanted in ("", "…"):
            continue
        parts = [part.strip() for part in wanted.split("…")]
        pattern = re.compile(".*".join(map(re.escape, parts)))
        at = next((number for number, one in enumerate(rest) if pattern.fullmatch(one)), None)
        if at is None:
            return line
        rest = rest[at + 1 :]
    return ""


class Terminal:
    """A shell in ``folder``. What it and its commands print comes together, in order."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._shell = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=folder,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self._shell.stdout is not None
        for line in self._shell.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def run(self, command: str, scratch: Path) -> tuple[int, str]:
        """Type a command and wait for its end: its exit status, and what was printed meanwhile.

        ``scratch``: a file for its text. `TimeoutError` after `PATIENCE_S`.
        """
        end = secrets.token_hex(8)
        scratch.write_text(command + "\n", "utf-8")
        self._type(f"source {scratch} < /dev/null; printf '\\n{end} %s\\n' $?")
        said = ""
        for line in self._within(f"`{command}` does not end; it said:\n", said):
            if line.startswith(end):
                return int(line.split()[1]), said.removesuffix("\n")
            said += line
        raise AssertionError("the shell has ended")

    def start(self, command: str, prints: Sequence[str], scratch: Path) -> str:
        """Type a command that goes on, and wait until it has printed that. What it said until then."""
        scratch.write_text(command + "\n", "utf-8")
        self._type(f"source {scratch} < /dev/null")
        said = ""
        if not any(line.strip(" …") for line in prints):
            raise AssertionError(f"nothing says when `{command}` is ready")
        for line in self._within(f"`{command}` does not get ready; it said:\n", said):
            said += line
            if not lacking(prints, said):
                return said
        raise AssertionError(f"`{command}` has ended:\n{said}")

    def _type(self, text: str) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.write(text + "\n")
        self._shell.stdin.flush()

    def _within(self, complaint: str, said: str):
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                raise TimeoutError(complaint + said) from None
            if line is None:
                return
            said += line
            yield line

    def close(self) -> None:
        """^C for what goes on in it, then the end of all that is left."""
        assert self._shell.stdin is not None
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._shell.pid, number)
            except ProcessLookupError:
                break
            self._shell.stdin.close()
            try:
                self._shell.wait(10)
            except subprocess.TimeoutExpired:
                continue
            break
        self._reading.join(10)
