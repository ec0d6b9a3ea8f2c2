"""What one invocation of the command line shares: options, settings, and where it writes."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from playhead_receiver.host.command_name import command_name
from playhead_semconv.untrusted.shown_text import visible

if TYPE_CHECKING:
    from rich.console import Console

    from playhead_semconv.settings import Resolved, Settings


@dataclass
class Session:
    """One invocation of ``playhead``."""

    as_json: bool = False
    verbose: bool = False
    color: str = "auto"
    config: Path | None = None
    no_config: bool = False
    flags: dict[str, Any] = field(default_factory=dict[str, Any])
    """Settings given as flags."""

    @cached_property
    def resolved(self) -> Resolved:
        """Every setting and where it came from. `ConfigurationError`."""
        from playhead_receiver.cli.configuration import resolved_settings

        return resolved_settings(
            os.environ, flags=self.flags, config=self.config, no_config=self.no_config, cwd=Path.cwd()
        )

    @property
    def settings(self) -> Settings:
        """Every setting. `ConfigurationError`."""
        return self.resolved.settings

    @property
    def data_dir(self) -> Path:
        """The receiver's data folder."""
        from playhead_receiver.cli.configuration import data_dir

        return data_dir(self.settings)

    @property
    def store(self) -> str | Path:
        """Where the runs are kept: the URL of a database, or the data folder."""
        return self.settings.store or self.data_dir

    @property
    def store_name(self) -> str:
        """What that is called in messages."""
        from playhead_receiver.store.runs.naming import place_name

        return place_name(self.settings.store) if self.settings.store else str(self.data_dir)

    @property
    def nothing_kept(self) -> bool:
        """Whether there is no store yet."""
        return not self.settings.store and not self.data_dir.is_dir()

    @cached_property
    def out(self) -> Console:
        """Data: stdout."""
        return self._console(sys.stdout)

    @cached_property
    def err(self) -> Console:
        """Playhead's own words: stderr."""
        return self._console(sys.stderr)

    @property
    def plain(self) -> bool:
        """Whether stdout takes no more than ASCII."""
        try:
            "✗⋮→·".encode(sys.stdout.encoding or "ascii")
        except (UnicodeEncodeError, LookupError):
            return True
        return False

    def colored(self, stream: IO[str]) -> bool:
        """``--color`` > ``NO_COLOR`` > ``FORCE_COLOR`` > is it a terminal."""
        if self.color != "auto":
            return self.color == "always"
        if os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR"):
            return True
        return stream.isatty() and os.environ.get("TERM") != "dumb"

    def say(self, text: str) -> None:
        """One line in playhead's own name."""
        if not self.settings.quiet:
            _line(f"playhead: {visible(text)}")

    def suggest(self, command: str) -> None:
        """The next command to try; on a terminal only."""
        if sys.stderr.isatty() and not self.as_json and not self.settings.quiet:
            command = command.replace("playhead", command_name(), 1)
            _line(f"next: {visible(command)}")

    def progress(self, text: str) -> None:
        """What is being done now; on a terminal only."""
        if sys.stderr.isatty() and not self.as_json:
            self.say(text)

    def print_json(self, value: Any, *, to_stderr: bool = False) -> None:
        """One JSON object on a line of its own."""
        stream = sys.stderr if to_stderr else sys.stdout
        stream.write(visible(json.dumps(value, ensure_ascii=False)) + "\n")
        stream.flush()

    def _console(self, stream: IO[str]) -> Console:
        from playhead_receiver.cli.console import console_on

        return console_on(stream, self.colored(stream))


def _line(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
