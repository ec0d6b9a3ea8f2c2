"""``playhead open``: open runs in a browser."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

import click

from playhead_cli.completion.arguments import complete_run
from playhead_cli.output.words import web_address
from playhead_cli.running.query_api import query_api
from playhead_cli.session.options import playhead_command
from playhead_cli.session.session import Session
from playhead_cli.targets.point_argument import find_point
from playhead_cli.targets.run_argument import Target, opened_run, parse_target, reading
from playhead_core.errors import UsageError

if TYPE_CHECKING:
    from playhead_cli.json_output.environment import PrintedLink

WINDOWS = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
"""Variables of which one is set if a program can open a window."""


@playhead_command("open", short_help="Open runs in a browser")
@click.argument("target", metavar="[RUN[:POINT]]", required=False, shell_complete=complete_run)
@click.option("--print", "only_print", is_flag=True, help="Print the link and do not open a browser.")
@click.option("--url", help="Query API of a receiver. Default: that of the data folder.")
def command(session: Session, target: str | None, only_print: bool, url: str | None) -> None:
    """Open the list of runs, or a run at a point, in a browser, and print the link.

    If no receiver is running for the data folder, this command serves the pages until ^C. The link
    may contain a token, in the fragment, which browsers do not send: anyone with the link has your
    rights.
    """
    wanted = parse_target(target) if target else None
    if wanted is not None and wanted.is_file:
        raise UsageError(f"{target} is a file", hint=f"playhead import {target}, then playhead open")
    with query_api(session, url) as found:
        run, step = ("", "") if wanted is None else _place(session, wanted, local=not url)
        link = web_address(found.url, run, step, found.token)
        with suppress(KeyboardInterrupt) if found.own else nullcontext():  # ^C may come at once
            if session.as_json:
                printed: PrintedLink = {"schema_version": 1, "link": link}
                session.print_json(printed)
            else:
                click.echo(link)
                if not only_print and _has_windows():
                    webbrowser.open(link)
            if found.own:
                session.say("serving until ^C")
                threading.Event().wait()


def _has_windows() -> bool:
    """Return whether a browser can show itself: those of a terminal cannot run the pages."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in WINDOWS)


def _place(session: Session, wanted: Target, *, local: bool) -> tuple[str, str]:
    """Name of the run and number of the step, in the store of the data folder. Elsewhere as typed."""
    if not local:
        return wanted.run, wanted.point
    if not wanted.point:
        with reading(session) as store:
            return store.resolve(wanted.run).name, ""
    with opened_run(session, wanted) as run:
        point = find_point(run, wanted.point)
        if point.snapped:
            session.say(point.snapped)
        return run.name, str(point.step.number)
