"""A pytest in a process of its own, without the plugins of this suite: they take long to import."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from support.starting.warm import run

NO_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Variables for one that needs none."""

ONLY_OURS = {**NO_PLUGINS, "PYTEST_PLUGINS": "playhead_replay.goldens.plugin"}
"""Variables for one that replays goldens."""

PATIENCE_S = 120


def run_pytest(*words: str, cwd: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run it in a fork (`support.starting.warm`), with the plugin that replays goldens alone."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
    return run(command, cwd=cwd, env={**environ, **ONLY_OURS}, timeout=PATIENCE_S)
