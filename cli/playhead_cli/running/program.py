"""The options for starting a recorded program again, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from playhead_core.rerun.headers import parse_headers
from playhead_replay import Environment


@dataclass(frozen=True, slots=True)
class Program:
    """The values of ``--python --cwd --header --check --trust``."""

    python: str
    """The interpreter; empty: the recorded one."""
    cwd: str
    """Folder of the program; empty: the recorded folder."""
    header_lines: tuple[str, ...]
    """``NAME: VALUE`` lines for requests to a service."""
    checks: tuple[Path, ...]
    """Files of check functions."""
    trust: bool
    """Whether a tape that was not recorded here may run its program."""

    def headers(self) -> dict[str, str]:
        """Return headers by lower-case name. `UsageError` if a line is not a header."""
        return parse_headers(self.header_lines)

    def surroundings(self, *, foreign: bool, folder: Path | None = None) -> Environment:
        """Return the environment for the program, in ``folder`` or as the options say. `UsageError`.

        ``foreign``: another user or machine recorded it.
        """
        place = self.cwd if folder is None else folder
        return Environment(self.python, place, headers=self.headers(), foreign=foreign)

    def words(self) -> list[str]:
        """Those options that a command line must repeat, except headers and checks."""
        words = ["--trust"] if self.trust else []
        for option, value in (("--python", self.python), ("--cwd", self.cwd)):
            words += [option, value] if value else []
        return words


program_option = click.option(
    "--program",
    default="",
    metavar="COMMAND",
    help="Command of a run that names none: it has only spans, or HTTP traffic of another tool.",
)
