"""State of one invocation of the command line: options, settings, and output streams."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from playhead_cli.session.messages import write_message
from playhead_core.untrusted.shown_text import visible

if TYPE_CHECKING:
    from rich.console import Console

    from playhead_core.settings import Resolved, Settings


def command_name() -> str:
    """Return the command that starts playhead: its name, or its path if the shell does not find it."""
    if shutil.which("playhead") is not None:
        return "playhead"
    beside = Path(sys.executable).with_name("playhead")
    if not beside.exists():
        return f"{sys.executable} -m playhead_cli"
    short = os.path.relpath(beside)
    return short if not short.startswith(os.pardir) else str(beside)


def working_folder() -> Path:
    """Return the working folder; the root folder if it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path("/")


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
        """Every setting with the source of its value. `ConfigurationError`."""
        from playhead_cli.session.configuration import resolved_settings

        found = resolved_settings(
            os.environ,
            flags=self.flags,
            config=self.config,
            no_config=self.no_config,
            cwd=working_folder(),
        )
        if found.settings.prices:
            from playhead_receiver.system.price_file import use_prices

            use_prices(found.settings.prices)
        return found

    @property
    def settings(self) -> Settings:
        """Every setting. `ConfigurationError`."""
        return self.resolved.settings

    @property
    def data_dir(self) -> Path:
        """The receiver's data folder."""
        from playhead_receiver.system.defaults import data_dir

        return data_dir(self.settings)

    @property
    def store(self) -> str | Path:
        """Where runs are stored: the URL of a database, or the data folder."""
        return self.settings.store or self.data_dir

    @property
    def store_name(self) -> str:
        """Name of the store in messages."""
        from playhead_receiver.storage.runs.naming import printable_url

        return printable_url(self.settings.store) if self.settings.store else str(self.data_dir)

    @property
    def has_no_store(self) -> bool:
        """Whether there is no store yet."""
        return not self.settings.store and not self.data_dir.is_dir()

    @cached_property
    def out(self) -> Console:
        """Console on stdout, for data."""
        return self._console(sys.stdout)

    @cached_property
    def err(self) -> Console:
        """Console on stderr, for messages of playhead."""
        return self._console(sys.stderr)

    @property
    def width(self) -> int | None:
        """Columns of the terminal that stdout is; None if it is none."""
        return self.out.width if sys.stdout.isatty() else None

    @property
    def plain(self) -> bool:
        """Whether stdout supports only ASCII."""
        try:
            "✗⋮→·".encode(sys.stdout.encoding or "ascii")
        except (UnicodeEncodeError, LookupError):
            return True
        return False

    def colored(self, stream: IO[str]) -> bool:
        """Whether to use colour: ``--color`` > ``NO_COLOR`` > ``FORCE_COLOR`` > is it a terminal."""
        if self.color != "auto":
            return self.color == "always"
        if os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR"):
            return True
        return stream.isatty() and os.environ.get("TERM") != "dumb"

    def say(self, text: str) -> None:
        """Print one line as a message of playhead."""
        if not self.settings.quiet:
            write_message(f"playhead: {visible(text)}\n")

    def suggest(self, command: str) -> None:
        """Suggest the next command; on a terminal only."""
        if sys.stderr.isatty() and not self.as_json and not self.settings.quiet:
            command = command.replace("playhead", command_name(), 1)
            write_message(f"next: {visible(command)}\n")

    def progress(self, text: str) -> None:
        """Show the current activity; on a terminal only."""
        if sys.stderr.isatty() and not self.as_json:
            self.say(text)

    def print_json(self, value: Any, *, to_stderr: bool = False) -> None:
        """Print one JSON object on a line of its own."""
        text = visible(json.dumps(value, ensure_ascii=False)) + "\n"
        if to_stderr:
            write_message(text)
            return
        sys.stdout.write(text)
        sys.stdout.flush()

    def _console(self, stream: IO[str]) -> Console:
        from playhead_cli.session.console import console_on

        return console_on(stream, self.colored(stream))
