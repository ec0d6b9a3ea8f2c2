"""``playhead doctor``: explain what is recorded, what is not, and why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from playhead_cli.completion.arguments import complete_run
from playhead_cli.doctor import checks, delivery
from playhead_cli.doctor.libraries import check_libraries
from playhead_cli.doctor.sdk_entry_points import check_funnels
from playhead_cli.output.columns import in_columns
from playhead_cli.session.options import playhead_command
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.targets.run_argument import opened_run, parse_target

if TYPE_CHECKING:
    from playhead_cli.doctor import ReportLine
    from playhead_cli.json_output.environment import PrintedDiagnosis, PrintedSettings

MARKS = {"good": ("✓", "green"), "warning": ("⚠", "yellow"), "bad": ("✗", "red"), "off": ("·", "dim")}
SECRET = "(set)"


@playhead_command("doctor", short_help="Explain what is recorded, what is not, and why")
@click.argument("target", metavar="[RUN|SCRIPT]", required=False, shell_complete=complete_run)
@click.option(
    "--python", default="", help="Python interpreter of the agent. Default: that of the active venv."
)
@click.option(
    "--config",
    "config",
    metavar="[FILE]",
    is_flag=False,
    flag_value="",
    default=None,
    help="Print every setting and its origin; with FILE, as if that file were in use.",
)
def command(session: Session, target: str | None, python: str, config: str | None) -> int:
    """Explain what is recorded, what is not, and why: for a run, for a script, or in general.

    Exit status 1 if something is broken.
    """
    if config is not None:
        session.config = Path(config) if config else None
        _print_settings(session)
        return 0
    findings = list(_findings(session, target, python))
    if session.as_json:
        printed: PrintedDiagnosis = {
            "schema_version": 1,
            "findings": [one.to_json() for one in findings],
        }
        session.print_json(printed)
    else:
        _print(session, findings)
    return 1 if any(one.mark == "bad" for one in findings) else 0


def _findings(session: Session, target: str | None, python: str) -> Iterator[ReportLine]:
    if target is not None and target.endswith(".py"):
        yield from checks.check_script(Path(target))
    elif target is not None:
        with opened_run(session, parse_target(target)) as run:
            yield from checks.check_run(run)
        return
    yield from checks.check_interpreter(python)
    yield from check_libraries(python, session.settings)
    yield from check_funnels(python)
    yield from checks.check_settings(session)
    yield from checks.check_boundaries(session)
    yield from delivery.check_receiver(session)
    yield from delivery.check_endpoint(session)
    yield from delivery.check_store(session)
    yield from delivery.check_spool(session)
    yield from checks.check_replay()


def _print(session: Session, findings: list[ReportLine]) -> None:
    lines: list[Text] = []
    for one in findings:
        mark, style = MARKS[one.mark]
        line = Text(f"{mark} ", style=style)
        line.append(one.text, style="")
        lines.append(line)
        if one.hint:
            lines.append(Text(f"  {one.hint}", style="dim"))
    print_lines(session, lines, cut=False)


def _print_settings(session: Session) -> None:
    settings, origins = session.settings, session.resolved.origins
    found = {name: getattr(settings, name) for name in origins}
    if found["token"]:
        found["token"] = SECRET
    if found["store"]:
        found["store"] = session.store_name
    if session.as_json:
        printed: PrintedSettings = {
            "schema_version": 1,
            "settings": {
                name: {"value": value, "origin": origins[name]} for name, value in found.items()
            },
        }
        session.print_json(printed)
        return
    rows = [(name.replace("_", "-"), str(value), origins[name]) for name, value in found.items()]
    print_lines(session, map(Text, in_columns(rows)), cut=False)
