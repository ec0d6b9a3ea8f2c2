"""What tests did to goldens, told at the end of a pytest session."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from playhead_replay.goldens.fixture import PROPERTY
from playhead_replay.goldens.golden_paths import FOLDER, short
from playhead_replay.tape_files.tape_file import SUFFIX


class GoldenSummary:
    """Collects what tests did to goldens, and reports it at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._happened: dict[str, set[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect what a test did."""
        if report.when == "call":
            for name, value in report.user_properties:
                if name == PROPERTY:
                    event, _, path = str(value).partition(" ")
                    self._happened.setdefault(event, set()).add(path)

    def pytest_terminal_summary(self, terminalreporter: Any, exitstatus: int) -> None:
        """List every golden that was created, updated or deleted."""
        pruned = self._prune(terminalreporter, exitstatus)
        for event, paths in (
            ("created", self._happened.get("created", set())),
            ("updated", self._happened.get("updated", set())),
            ("pruned", pruned),
        ):
            for path in sorted(paths):
                terminalreporter.write_line(f"playhead: {event} {short(Path(path))}")

    def _prune(self, terminalreporter: Any, exitstatus: int) -> set[str]:
        if not self._config.getoption("--playhead-prune"):
            return set()
        stats = cast("dict[str, list[Any]]", terminalreporter.stats)
        narrowed = any(
            self._config.getoption(name, None) for name in ("keyword", "markexpr", "lf", "failedfirst")
        )
        given = self._config.args_source is pytest.Config.ArgsSource.ARGS
        if exitstatus or narrowed or given or stats.get("deselected") or stats.get("skipped"):
            terminalreporter.write_line(
                "playhead: nothing pruned: only a whole run that passes tells what is not used"
            )
            return set()
        used = {Path(path) for path in self._happened.get("used", set())}
        folders = {parent for path in used for parent in path.parents if parent.name == FOLDER}
        unused = {
            path
            for folder in folders
            for path in folder.rglob(f"*{SUFFIX}*")
            if path.is_file() and path not in used
        }
        for path in unused:
            path.unlink()
        return {str(path) for path in unused}
