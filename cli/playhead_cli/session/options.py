"""Options that every command has, and the base classes of commands."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from playhead_cli.session.session import Session

F = TypeVar("F", bound=Callable[..., Any])


def _keep(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value:
            setattr(ctx.ensure_object(Session), name, value)

    return callback


def keep_flag(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Callback of an option that sets the setting of the same name."""
    if value is not None and param.name:
        ctx.ensure_object(Session).flags[param.name] = value


def common_options() -> list[click.Option]:
    """``--json --color --config --no-config --data-dir --store -v``; the session keeps their values."""
    path = click.Path(path_type=Path)
    return [
        click.Option(
            ["--json"], is_flag=True, expose_value=False, callback=_keep("as_json"), help="Print JSON."
        ),
        click.Option(
            ["--color"],
            type=click.Choice(["auto", "always", "never"]),
            expose_value=False,
            callback=_keep("color"),
            help="Color the output. Default: auto (on a terminal).",
        ),
        click.Option(
            ["--config"],
            type=path,
            expose_value=False,
            callback=_keep("config"),
            help="Use this configuration file instead of the default ones.",
        ),
        click.Option(
            ["--no-config"],
            is_flag=True,
            expose_value=False,
            callback=_keep("no_config"),
            help="Ignore configuration files.",
        ),
        click.Option(
            ["--data-dir"],
            type=click.Path(file_okay=False),
            expose_value=False,
            callback=keep_flag,
            help="Data folder of the receiver.",
        ),
        click.Option(
            ["--store"],
            metavar="URL",
            expose_value=False,
            callback=keep_flag,
            help="Database that stores the runs: postgresql://…",
        ),
        click.Option(
            ["-v", "--verbose"],
            is_flag=True,
            expose_value=False,
            callback=_keep("verbose"),
            help="Verbose output, with tracebacks.",
        ),
    ]


class PlayheadCommand(click.Command):
    """A command: its own options, which ``--help`` lists, and the common ones."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = {option for param in self.params for option in param.opts}
        self.common = [option for option in common_options() if not own.intersection(option.opts)]
        self.params += self.common

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the command's own options."""
        _list_options(self, self.common, ctx, formatter)


class CommandGroup(click.Group):
    """A command with subcommands; the common options are accepted before and after them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.common = common_options()
        self.params += self.common

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List its options, only the root the common ones, then the subcommands."""
        if ctx.parent is None:
            super().format_options(ctx, formatter)
        else:
            _list_options(self, self.common, ctx, formatter)
            self.format_commands(ctx, formatter)


def _list_options(
    command: click.Command,
    common: Sequence[click.Option],
    ctx: click.Context,
    formatter: click.HelpFormatter,
) -> None:
    """List the options of a command without the common ones, which ``playhead --help`` lists."""
    own = [param for param in command.get_params(ctx) if isinstance(param, click.Option)]
    records = [param.get_help_record(ctx) for param in own if param not in common]
    with formatter.section("Options"):
        formatter.write_dl([record for record in records if record is not None])
    formatter.write_paragraph()
    formatter.write_text("Global options: playhead --help")


class AgentCommand(PlayheadCommand):
    """A command whose line ends with an agent's command: SCRIPT, ``-m MODULE`` or ``--`` and a command.

    Everything from there on belongs to the agent and is not parsed, even if it looks like one of our
    options. It is passed to the function as ``words``, including a leading ``--``.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split off the agent's part before click parses the rest."""
        at = self._begin_of_agent(args)
        rest = super().parse_args(ctx, args[:at])
        ctx.params["words"] = tuple(args[at:])
        return rest

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """Our options, as long as the agent has not begun, and files."""
        own = [] if ctx.params.get("words") else super().shell_complete(ctx, incomplete)
        return [*own, CompletionItem(incomplete, type="file")]

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """``[OPTIONS] SCRIPT …``."""
        return [*super().collect_usage_pieces(ctx), "SCRIPT|-m MODULE|-- COMMAND [ARGS]…"]

    def _begin_of_agent(self, args: Sequence[str]) -> int:
        takes_value = {
            name
            for param in self.params
            if isinstance(param, click.Option) and not param.is_flag
            for name in (*param.opts, *param.secondary_opts)
        }
        index = 0
        while index < len(args):
            word = args[index]
            if word in ("--", "-m") or not word.startswith("-") or word == "-":
                return index
            index += 2 if word in takes_value else 1
        return len(args)


def playhead_command(name: str, **settings: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a command; its first argument is the `Session`."""
    settings.setdefault("cls", PlayheadCommand)
    settings.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})

    def decorate(function: Callable[..., Any]) -> click.Command:
        return click.command(name, **settings)(click.pass_obj(function))

    return decorate


def run_instead(
    ctx: click.Context, session: Session, command: click.Command, words: Sequence[str]
) -> int:
    """Run another command, with ``words`` as its command line. Return its exit status."""
    with command.make_context(command.name, list(words), parent=ctx.parent) as other:
        other.obj = session
        status: int | None = command.invoke(other)
        return status or 0


def option_groups(**kinds: type[Any]) -> Callable[[F], F]:
    """Pass options to a command in groups; each is a dataclass whose fields are options. Apply below
    the options.

    ``kinds``: the dataclasses by name of the argument.
    """
    names = {group: [one.name for one in dataclasses.fields(kind)] for group, kind in kinds.items()}

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def called(*args: Any, **options: Any) -> Any:
            groups = {
                group: kind(**{name: options.pop(name) for name in names[group]})
                for group, kind in kinds.items()
            }
            return function(*args, **groups, **options)

        return cast(F, called)

    return decorate


def flag_setting(option: str, help: str, **kind: Any) -> Callable[[F], F]:
    """Add an option for a setting; its value goes into the session's flags."""
    return click.option(option, expose_value=False, callback=keep_flag, help=help, **kind)


def limit_option(default: int, what: str, least: int = 1, most: int | None = None) -> Callable[[F], F]:
    """Add ``-n``, the same in every command: the largest number of lines or items."""
    return click.option(
        "-n",
        "--limit",
        type=click.IntRange(least, most),
        default=default,
        show_default=True,
        help=f"How many {what} at most.",
    )


def runs_option(what: str = "runs to read") -> Callable[[F], F]:
    """Add ``--runs``, the same in every command that analyzes many runs: how many, the newest ones."""
    return click.option(
        "--runs",
        type=click.IntRange(1, 10_000),
        default=1000,
        show_default=True,
        help=f"How many {what} at most, the newest ones.",
    )


header_option = click.option(
    "--header",
    "header_lines",
    multiple=True,
    metavar="'NAME: VALUE'",
    help="Header for requests to a service, e.g. a credential that the tape does not contain.",
)

check_option = click.option(
    "--check",
    "checks",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="File with check functions, which run on each span.",
)
