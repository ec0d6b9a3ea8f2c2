"""The group of verbs, and what all verbs share: options, errors, exit status."""

from __future__ import annotations

import codecs
import gc
import importlib
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from playhead_cli.failures import PIPE_CLOSED, exit_status, show_failure
from playhead_cli.messages import discard_rest
from playhead_cli.options import Verbs
from playhead_cli.running.bisecting import STOPS, is_bisecting
from playhead_cli.running.child_process import die_as
from playhead_cli.session import Session
from playhead_semconv.errors import nearest

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

VERBS = {
    "demo": "record, show and replay bundled agents, with nothing else needed",
    "up": "run the receiver until it is stopped",
    "record": "run a Python agent and record it",
    "open": "look at runs in a browser",
    "ls": "list runs, newest first",
    "show": "show a run as a tree of steps, or one step whole",
    "browse": "step through a run in the terminal, backwards and forwards",
    "search": "find what was said, in all runs",
    "stats": "sums over runs: failures, tokens, cost, how long they took",
    "tail": "follow runs while they go on",
    "fork": "go back to a step, change something, and go on for real",
    "rollback": "take a run back to a checkpoint, and go on from there",
    "pause": "halt a running agent at its next step",
    "step": "let one step of a paused agent happen",
    "continue": "let a paused agent go on",
    "checkpoint": "make a checkpoint of a running agent",
    "edit": "change what a paused agent is about to ask",
    "reject": "refuse what a paused agent is about to do",
    "answer": "answer by hand what a paused agent is about to ask",
    "resume": "bring a dead run to its end",
    "replay": "run the recorded command again, answered from its tape",
    "export": "write a run to a file: a tape, or OTLP JSON lines",
    "import": "take a run from a file",
    "state": "show conversation, states, files and output at a point of a run",
    "checkpoints": "list the checkpoints of a run",
    "events": "list what happened in a run, fact by fact",
    "diff": "compare two runs: where they part, and how",
    "variability": "how many ways the runs of one agent take, and where they part",
    "artifacts": "list what a run made, and take it out",
    "workspace": "show, compare or restore the files of a run at a step",
    "golden": "keep runs as regression tests",
    "doctor": "say what is recorded, what is not, and why",
    "verify": "check the store, or a tape, against its digests and chains",
    "delete": "delete runs by name, for good",
    "rederive": "find out anew what the requests of stored runs mean",
    "redact": "take credentials out of a stored run",
    "gc": "delete runs whose time is over",
    "backup": "copy the store into a folder, also while it is written to",
    "restore": "make a store of a backup",
    "mcp": "let agents read runs, over MCP on stdio",
    "token": "make and revoke tokens",
    "spool": "look at what was not delivered, and deliver it",
    "completion": "print the completion script of a shell",
}
"""Verbs in the order of ``--help``, each with its line. The module of a verb has the same name."""


GC_THRESHOLD = 200_000
"""Objects made between two collections of garbage."""
COMPLETES = "_PLAYHEAD_COMPLETE"
"""Variable by which a shell asks for words; click names it so."""


class LazyVerbs(Verbs):
    """Loads the module of a verb when the verb is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in the order in which a newcomer needs them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a verb; None if there is no such verb."""
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(f"playhead_cli.verbs.{cmd_name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of a verb; an unknown verb is an error that suggests the nearest one."""
        is_unknown = args and not args[0].startswith("-") and args[0] not in VERBS
        if is_unknown and not ctx.resilient_parsing:
            near = nearest(args[0], VERBS)
            meant = f", did you mean {near}?" if near else ""
            raise click.UsageError(f"no verb {args[0]}{meant}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """Verbs, without loading any, and options."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=line) for name, line in VERBS.items()]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(one for one in found if one.value.startswith(incomplete)), *options]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in ``--help``, made without loading any verb."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


def print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """``--version``."""
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"playhead {version('playhead')}")
        ctx.exit(0)


@click.group(
    cls=LazyVerbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="RUN is a name, last, last-1, failed, an id prefix, a trace id or a .tape file; "
    "POINT a step, a span id prefix, main#4, start, error or end.",
)
@click.option(
    "--version",
    is_flag=True,
    callback=print_version,
    expose_value=False,
    is_eager=True,
    help="Show the version and exit.",
)
def playhead() -> None:
    """Record every token of an LLM agent, look at it, play it back."""


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point. Ends with the exit status of the verb, or by the signal that ended it."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # A command builds one large tree and ends: collections would only walk through the tree again.
    gc.set_threshold(GC_THRESHOLD)
    fill_closed_streams()
    escape_what_streams_cannot_encode()
    sys.exit(die_as(closing(lambda: run(words), words)))


def fill_closed_streams() -> None:
    """Put the null device where a standard stream is closed, so that no file gets its number.

    A program that is started from here does not inherit it, and finds the stream closed too.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            lowest = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(lowest, mode, encoding="utf-8", closefd=False))


def escape_what_streams_cannot_encode() -> None:
    """Write characters that the encoding of stdout or stderr lacks as JSON escapes (``\\ud55c``).

    Recorded text may hold any character. With ``--json`` the output stays valid JSON.
    """
    codecs.register_error("playhead", _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError):  # it flushes, and that may fail
                stream.reconfigure(errors="playhead")


def _escaped(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    return json.dumps(problem.object[problem.start : problem.end])[1:-1], problem.end


def run(words: list[str]) -> int:
    """Run one verb. Returns its exit status, negative for a signal. Errors are shown, not raised."""
    session = Session()
    if COMPLETES in os.environ:
        from playhead_cli.completing.shells import use

        use()
    try:
        result: Any = playhead.main(words, prog_name="playhead", standalone_mode=False, obj=session)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as asked:  # a bare `playhead`, `playhead golden`
        click.echo(asked.ctx.get_help())
        return 0
    except (KeyboardInterrupt, click.Abort):
        return -signal.SIGINT
    except BrokenPipeError:
        raise
    except Exception as problem:
        # Click stops parsing at the mistake; options after it still count here, unless they belong to an
        # agent.
        unread = [] if "record" in words else words
        show_failure(
            problem,
            as_json=session.as_json or "--json" in unread,
            verbose=session.verbose or "-v" in unread,
        )
        return STOPS if is_bisecting(words) else exit_status(problem)


def closing(verb: Callable[[], int], words: list[str]) -> int:
    """Run ``verb`` and flush; ends quietly if the reader went away (``playhead ls | head``)."""
    try:
        status = verb()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        discard_rest(sys.stdout)
        return PIPE_CLOSED
