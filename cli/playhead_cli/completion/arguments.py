"""Completion of arguments and options: runs, queries, agents, goldens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.shell_completion import CompletionItem

from playhead_cli.completion.stored_words import field_values, run_names
from playhead_cli.session.session import Session
from playhead_core.errors import PlayheadError

if TYPE_CHECKING:
    import click

WORDS = ("last", "failed")
"""Names that stand for a run."""
POINTS = ("start", "error", "end")
FIELDS = (
    *(
        "agent:",
        "agent_type:",
        "version:",
        "release:",
        "env:",
        "conversation:",
        "session:",
        "user:",
        "tag:",
    ),
    *("prompt:", "prompt_version:", "model:", "provider:", "tool:", "error:", "failure:"),
    *("status:", "mode:", "errors:", "loop:", "stuck:", "mark:", "level:", "since:", "until:"),
    *("duration>=", "cost>=", "tokens>=", "steps>="),
)
"""Fields of a query. A test compares them with those of the query language."""

VALUES = {
    "status": ("running", "success", "failure", "partial", "interrupted"),
    "mode": ("record", "fork", "resume", "replay", "service", "all"),
    "errors": ("yes", "no"),
    "loop": ("yes", "no"),
    "stuck": ("yes", "no", "loop", "silent_stream", "hung_tool", "no_answer", "no_progress"),
    "level": ("trace", "debug", "info", "warning", "error", "fatal"),
    "mark": ("held", "flagged", "test", "imported"),
    "since": ("1h", "1d", "7d"),
    "until": ("1h", "1d", "7d"),
}
"""Values of fields that are always the same."""


def complete_run(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem[Any]]:
    """Complete RUN[:POINT]: names of runs, newest first, and files; after a colon, common points."""
    run, colon, point = incomplete.rpartition(":")
    if colon:
        return _items(f"{run}:{one}" for one in POINTS if one.startswith(point))
    names = [one for one in WORDS if one.startswith(incomplete)]
    return _items([*run_names(_data_dir(ctx), incomplete), *names], files=incomplete)


def complete_query(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem[Any]]:
    """Complete QUERY: fields, and after a colon their values."""
    field, colon, value = incomplete.partition(":")
    if not colon:
        return _items(one for one in FIELDS if one.startswith(incomplete))
    named = {"env": "environment", "session": "conversation"}.get(field, field)
    known = [one for one in VALUES.get(field, ()) if one.startswith(value)]
    return _items(f"{field}:{one}" for one in known or field_values(_data_dir(ctx), named, value))


def complete_run_or_query(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem[Any]]:
    """Complete RUN or QUERY."""
    is_query = incomplete.partition(":")[0] in {one.rstrip(":>=") for one in FIELDS}
    if ":" in incomplete and is_query:
        return complete_query(ctx, param, incomplete)
    return [*complete_run(ctx, param, incomplete), *complete_query(ctx, param, incomplete)]


def complete_agent(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem[Any]]:
    """Complete the name of an agent."""
    return _items(field_values(_data_dir(ctx), "agent", incomplete))


def complete_golden(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem[Any]]:
    """Complete the name of a golden in the folder of ``--dir``, or the default one."""
    folder = Path(ctx.params.get("folder") or "tests/goldens")
    names = {
        str(path.relative_to(folder)).removesuffix(".gz").removesuffix(".tape")
        for path in folder.rglob("*.tape*")
    }
    return _items(sorted(name for name in names if name.startswith(incomplete)))


def _items(words: Any, files: str | None = None) -> list[CompletionItem[Any]]:
    """Make completion items. ``files``: the beginning of a path, if a file is valid too."""
    found = [CompletionItem(word) for word in words]
    return found if files is None else [*found, CompletionItem(files, type="file")]


def _data_dir(ctx: click.Context) -> Path:
    session = ctx.find_object(Session) or Session()
    try:
        return Path("/nowhere") if session.settings.store else session.data_dir
    except PlayheadError:
        return Path("/nowhere")
