"""The command ``playhead``: load the command that was typed, show its error, return its status."""

from __future__ import annotations

import codecs
import gc
import importlib
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import click
from click.shell_completion import CompletionItem

from playhead_cli.running.child_process import die_as
from playhead_cli.session.messages import PIPE_CLOSED, discard_rest, exit_status, show_failure
from playhead_cli.session.options import CommandGroup
from playhead_cli.session.session import Session
from playhead_core.errors import nearest

SECTIONS = {
    "Record": {
        "demo": "Record, show and replay bundled agents; needs no API key",
        "record": "Run a Python agent and record it",
        "up": "Run the receiver until it is stopped",
        "doctor": "Explain what is recorded, what is not, and why",
    },
    "Inspect": {
        "open": "Open runs in a browser",
        "ls": "List runs, newest first",
        "show": "Show a run as a tree of steps, or one step in detail",
        "browse": "Step through a run in the terminal",
        "search": "Search the text of all runs",
        "stats": "Aggregate runs: failures, tokens, cost, duration",
        "tail": "Follow live runs",
        "diff": "Compare two runs",
        "variability": "Compare the paths that many runs took",
    },
    "Inspect one run": {
        "state": "Show conversation, state, files and output at a step",
        "events": "List the facts of a run",
        "logs": "List the log records of a run",
        "note": "Write a note about a run or a step, or list the notes",
        "checkpoints": "List the checkpoints of a run",
        "artifacts": "List and extract the artifacts of a run",
        "workspace": "Show, compare or restore the files of a run at a step",
    },
    "Analyze": {
        "flow": "Show which ways many runs take",
        "conform": "Check runs against a workflow",
        "workflow": "Discover a workflow from good runs",
        "experience": "Teach new runs what good runs did",
        "summary": "Summarize a run of any length in few lines",
        "diagram": "Draw a run as text for Mermaid or Graphviz",
        "agents": "Show which agents asked which others",
        "blame": "Show where the arguments of a call come from",
        "time": "Split the time and cost of a run",
        "compare": "Test whether two groups of runs differ",
        "failures": "Group failed runs by cause",
        "like": "List runs like another one",
        "sql": "Ask runs in SQL",
    },
    "Replay": {
        "replay": "Run the recorded program again, answered from its tape",
        "fork": "Replay up to a step, change something, continue live",
        "rollback": "Return to a checkpoint and continue live",
        "resume": "Resume a crashed run from its tape, then live",
        "golden": "Keep runs as regression tests",
    },
    "Store and live runs": {
        "control": "Pause, step, edit and continue a running agent",
        "store": "Export, import, delete, back up and verify runs",
        "token": "Create, list and revoke tokens",
        "spool": "List and deliver undelivered recordings",
    },
    "Integrate": {
        "mcp": "Serve runs to agents over MCP on stdio",
        "completion": "Print a shell completion script",
    },
}
"""Commands of ``playhead --help`` by section, each with its line of help.

The first word of a section names the folder in `playhead_cli.commands` with the modules of its commands,
except for those in `SHARED_MODULES`.
"""

GROUPS = {
    "control": {
        "pause": "Pause a running agent at its next step",
        "step": "Release one pending step of a paused agent",
        "continue": "Continue a paused agent",
        "edit": "Edit the pending request of a paused agent",
        "reject": "Reject the pending request of a paused agent",
        "answer": "Answer the pending request of a paused agent by hand",
        "checkpoint": "Create a checkpoint of a running agent",
    },
    "store": {
        "export": "Export a run as a tape, OTLP JSON lines or a cassette",
        "import": "Import runs from files, also of other tools",
        "delete": "Delete runs",
        "gc": "Delete expired runs",
        "redact": "Remove credentials from a stored run",
        "rederive": "Re-derive model, tokens and cost from stored requests",
        "verify": "Check the integrity of the store or of a tape",
        "backup": "Back up the store while it is in use",
        "restore": "Restore the store from a backup",
    },
}
"""Commands of ``playhead control`` and ``playhead store``.

They are also accepted without the name of the group (``playhead gc``), which ``--help`` does not list.
"""

ALIASES = {name: line for group in GROUPS.values() for name, line in group.items()}
COMMANDS = {name: line for section in SECTIONS.values() for name, line in section.items()} | ALIASES
"""Every word that is accepted after ``playhead``, with its line of help."""

SHARED_MODULES = {
    "variability": "inspect.diff",
    "workflow": "analyze.conform",
    "diagram": "analyze.summary",
    "like": "analyze.failures",
    "rollback": "replay.fork",
    "restore": "store.backup",
    "rederive": "store.redact",
    **dict.fromkeys(SECTIONS["Integrate"], "integrate"),
    **dict.fromkeys(GROUPS["control"], "control"),
}
"""Commands that are in the module of another command, as ``NAME_command``."""
MODULES = {
    name: f"playhead_cli.commands.{SHARED_MODULES.get(name, f'{title.split()[0].lower()}.{name}')}"
    for title, section in (*SECTIONS.items(), *GROUPS.items())
    for name in section
    if name not in GROUPS
}

GC_THRESHOLD = 200_000
"""Number of allocations between two garbage collections."""
COMPLETES = "_PLAYHEAD_COMPLETE"
"""Variable with which a shell requests completions; click defines its name."""


class LazyCommands(CommandGroup):
    """A group that imports the module of a command when the command is used."""

    def __init__(
        self,
        *args: Any,
        sections: Mapping[str, Mapping[str, str]],
        aliases: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        """``sections``: lines of help by title and command. ``aliases``: accepted, but not listed."""
        super().__init__(*args, **settings)
        self._sections = sections
        self._listed = {name: line for section in sections.values() for name, line in section.items()}
        self._accepted = {**self._listed, **(aliases or {})}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order of ``--help``."""
        return list(self._listed)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command, or return None if there is none of this name."""
        if cmd_name not in self._accepted:
            return None
        if cmd_name in GROUPS:
            return group_of(cmd_name)
        module = importlib.import_module(MODULES[cmd_name])
        attribute = f"{cmd_name}_command" if cmd_name in SHARED_MODULES else "command"
        command: click.Command = getattr(module, attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was typed; for an unknown one, suggest the nearest."""
        is_unknown = args and not args[0].startswith("-") and args[0] not in self._accepted
        if is_unknown and not ctx.resilient_parsing:
            near = nearest(args[0], self._accepted)
            suggestion = f", did you mean {near}?" if near else ""
            raise click.UsageError(f"unknown command {args[0]}{suggestion}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """Offer the listed commands, without loading any, and options."""
        items = [CompletionItem(name, help=line) for name, line in self._listed.items()]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(item for item in items if item.value.startswith(incomplete)), *options]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of ``--help`` without loading any command."""
        for title, section in self._sections.items():
            with formatter.section(title):
                formatter.write_dl(list(section.items()))


@cache
def group_of(name: str) -> LazyCommands:
    """Make the group ``playhead control`` or ``playhead store``."""
    line = SECTIONS["Store and live runs"][name]
    return LazyCommands(name, help=f"{line}.", short_help=line, sections={"Commands": GROUPS[name]})


def print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """``--version``."""
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"playhead {version('playhead')}")
        ctx.exit(0)


@click.group(
    cls=LazyCommands,
    sections=SECTIONS,
    aliases=ALIASES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="RUN is a name, last, last-1, failed, an id prefix, a span or trace id, a URL of a trace or "
    "a .tape file; POINT a step, a tool call (3.1), a span id prefix, main#4, start, error or end.",
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
    """Record LLM agents, inspect their runs, and replay them."""


STOPS = 128
"""Exit status: ``git bisect`` stops, because the command is wrong and not a commit."""


def is_bisecting(words: Sequence[str]) -> bool:
    """Return whether a command line uses ``--bisect``."""
    option = (word for word in words if word == "--bisect" or word.startswith("--bisect="))
    return words[:1] == ["replay"] and next(option, None) is not None


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point. Ends with the exit status of the command, or by the signal that ended it."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # A command builds one large tree and ends: collections would only walk through the tree again.
    gc.set_threshold(GC_THRESHOLD)
    fill_closed_streams()
    escape_what_streams_cannot_encode()
    sys.exit(die_as(closing(lambda: run(words), words)))


def fill_closed_streams() -> None:
    """Open the null device for closed standard streams, so that no file gets their numbers.

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
    """Run one command. Returns its exit status, negative for a signal. Errors are shown, not raised."""
    session = Session()
    if COMPLETES in os.environ:
        from playhead_cli.completion.left_out import leave_out
        from playhead_cli.completion.shells import use

        use()
        leave_out()
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


def closing(command: Callable[[], int], words: list[str]) -> int:
    """Run ``command`` and flush; ends quietly if the reader went away (``playhead ls | head``)."""
    try:
        status = command()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        discard_rest(sys.stdout)
        return PIPE_CLOSED
