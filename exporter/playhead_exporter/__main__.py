"""``python -m playhead_exporter push|ls``: the spool without the command line of the receiver."""

from __future__ import annotations

import argparse
import os
import sys

from playhead_core.errors import PlayheadError
from playhead_core.settings import Settings, resolve
from playhead_exporter.push import pending, push


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns its exit status: 0 all delivered, 1 not all, 2 usage."""
    parser = argparse.ArgumentParser(prog="python -m playhead_exporter")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("push", "deliver the records of dead processes"),
        ("ls", "list undelivered records"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--spool", metavar="DIR", help="spool folder")
        if name == "push":
            command.add_argument("--endpoint", metavar="URL", help="where to deliver")
            command.add_argument("--protocol", choices=("http/protobuf", "grpc"))
            command.add_argument(
                "--all", action="store_true", help="also deliver records for other destinations"
            )
    options = parser.parse_args(arguments)
    flags = {
        "spool_dir": options.spool,
        "endpoint": getattr(options, "endpoint", None),
        "protocol": getattr(options, "protocol", None),
    }
    try:
        settings = resolve(os.environ, flags=flags).settings
        return _push(settings, options.all) if options.command == "push" else _list(settings)
    except PlayheadError as problem:
        print(problem, file=sys.stderr)
        return problem.exit_status


def _push(settings: Settings, everything: bool) -> int:
    report = push(settings, everything=everything)
    tally = report.tally
    print(f"delivered {tally.facts} facts, {tally.spans} spans")
    if tally.rejected or tally.partly_refused:
        print(f"refused {tally.rejected + tally.partly_refused}", file=sys.stderr)
    dead = [one for one in report.remaining if not one.alive]
    if report.problem:
        print(f"{report.problem}; {sum(one.facts for one in dead)} facts remain", file=sys.stderr)
    if report.elsewhere:
        facts = sum(one.facts for one in report.elsewhere)
        print(
            f"{facts} facts were recorded for another destination; to send them: --all", file=sys.stderr
        )
    return 1 if dead or report.problem or tally.rejected else 0


def _list(settings: Settings) -> int:
    for left in pending(settings):
        state = f"pid {left.pid}" if left.alive else "dead"
        print(f"{left.instance.hex()}  {left.agent}  {state}  {left.facts} facts  {left.spans} spans")
    return 0


if __name__ == "__main__":
    sys.exit(main())
