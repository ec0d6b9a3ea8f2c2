"""`playhead` as a user runs it, with a home of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.starting.warm import Process, playhead

from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_receiver.storage import open_store
from playhead_replay import Run

PATIENCE_S = 90.0


class Home:
    """A user's home: a data folder, a spool, and the command line. ``provider``: its variables."""

    def __init__(self, folder: Path, provider: Mapping[str, str]) -> None:
        self.folder = folder
        self.data_dir = folder / "data"
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OTEL_", "PLAYHEAD_", "PYTHON", "OPENAI", "ANTHROPIC"))
        }
        self.bare = {
            **kept,
            "HOME": str(folder / "home"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "PLAYHEAD_DATA_DIR": str(self.data_dir),
            "PLAYHEAD_SPOOL_DIR": str(folder / "spool"),
            "PLAYHEAD_HEARTBEAT_MS": "300",
            "NO_COLOR": "1",
        }
        self.environ = {**self.bare, **provider}

    def words(self, *words: str | Path) -> list[str]:
        return [sys.executable, "-m", "playhead_cli", *map(str, words)]

    def playhead(
        self,
        *words: str | Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        input: str = "",
        timeout_s: float = PATIENCE_S,
    ) -> subprocess.CompletedProcess[str]:
        return playhead(
            *map(str, words),
            environ=self.environ if env is None else env,
            cwd=cwd or self.folder,
            timeout_s=timeout_s,
            input=input,
        )

    def start(self, *words: str | Path, **options: Any) -> subprocess.Popen[str]:
        options.setdefault("env", self.environ)
        return Process(
            self.words(*words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            **options,
        )

    def runs(self, *words: str) -> list[dict[str, Any]]:
        return json.loads(self.playhead("ls", "--json", *words).stdout)["runs"]

    def report(self, *words: str | Path, **options: Any) -> tuple[int, dict[str, Any]]:
        done = self.playhead("replay", *words, "--json", env=self.bare, **options)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    def run(self, name: str) -> Run:
        store = open_store(self.data_dir, read_only=True)
        try:
            run = Run.load(store, name)
            run.tapes = [MemoryTape(tape.facts(), tape.instance) for tape in run.tapes]
            return run
        finally:
            store.close()
