"""``playhead show``: show a run as a tree of steps, or one step in detail."""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from playhead_cli.completion.arguments import complete_run
from playhead_cli.output.plain import run_object, step_object, tool_call_object
from playhead_cli.output.step.overview import step_lines
from playhead_cli.output.step.score_text import run_scores
from playhead_cli.output.step.tool_call import tool_call_lines
from playhead_cli.output.step.wire import wire_lines
from playhead_cli.output.tree import tree_lines
from playhead_cli.output.words import count
from playhead_cli.session.options import option_groups, playhead_command, run_instead
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.targets.point_argument import Point, find_point, find_tool_call
from playhead_cli.targets.run_argument import (
    Target,
    opened_with_store,
    origin_name,
    parse_target,
    reading,
)
from playhead_core.errors import UsageError
from playhead_core.untrusted.shown_text import visible
from playhead_receiver.archive.late_values import late_marks, late_values, redaction_key
from playhead_receiver.storage.values.run_summaries import Query

if TYPE_CHECKING:
    from playhead_receiver.storage.api.store import Store
    from playhead_replay import Run
    from playhead_replay.timeline.tool_calls import ToolCallStep


BRANCHES = ("fork", "resume")
MOST_PLACES = 4
"""Places of late credentials that are named at most."""


@dataclass(frozen=True, slots=True)
class RunPart:
    """Options that print what another command prints for the same target; at most one is set."""

    state: bool
    events: bool
    logs: bool
    files: bool
    checkpoints: bool
    artifacts: bool

    def chosen(self) -> list[str]:
        """Return names of the options that are set."""
        return [name for name, is_set in asdict(self).items() if is_set]


@dataclass(frozen=True, slots=True)
class ShowOptions:
    """Options for the form and length of the output."""

    everything: bool
    wire: bool
    raw: str | None


@playhead_command("show", short_help="Show a run as a tree of steps, or one step in detail")
@click.argument("target", metavar="[RUN[:POINT]]", required=False, shell_complete=complete_run)
@click.option("--at", metavar="POINT", help="The point to show; same as RUN:POINT.")
@click.option("--all", "everything", is_flag=True, help="Show all spans, without folding.")
@click.option("--wire", is_flag=True, help="Show headers, bodies and chunks of every attempt.")
@click.option(
    "--raw",
    type=click.Choice(["request", "response"]),
    is_flag=False,
    flag_value="response",
    help="Print the raw bytes of the last attempt: response (default) or request.",
)
@click.option(
    "--custody", is_flag=True, help="Check the integrity of the run and list later changes to it."
)
@click.option("--state", is_flag=True, help="Show the state at POINT, as playhead state does.")
@click.option("--events", is_flag=True, help="List the facts, as playhead events does.")
@click.option("--logs", is_flag=True, help="List the log records, as playhead logs does.")
@click.option("--files", is_flag=True, help="Show the files at POINT, as playhead workspace does.")
@click.option("--checkpoints", is_flag=True, help="List the checkpoints, as playhead checkpoints does.")
@click.option("--artifacts", is_flag=True, help="List the artifacts, as playhead artifacts does.")
@option_groups(how=ShowOptions, part=RunPart)
@click.pass_context
def command(
    ctx: click.Context,
    session: Session,
    target: str | None,
    at: str | None,
    custody: bool,
    how: ShowOptions,
    part: RunPart,
) -> None:
    """Show a run as a tree of steps, or, with POINT, one step with its messages.

    RUN defaults to the latest run. The name of an agent selects its latest run. The commands state,
    events, logs, workspace, checkpoints and artifacts show a part of a run with more options.
    """
    wanted = parse_target(target, at)
    if parts := part.chosen():
        others = {"custody": custody, "wire": how.wire, "raw": how.raw}
        others["all"] = how.everything and not part.state
        both = [*parts, *(name for name, is_set in others.items() if is_set)]
        if len(both) > 1:
            raise UsageError(f"--{both[0]} and --{both[1]} exclude each other")
        _show_part(ctx, session, parts[0], wanted, everything=how.everything)
        return
    if custody:
        from playhead_cli.integrity.of_run import show_custody

        show_custody(session, wanted)
        return
    with without_collections(), opened_with_store(session, wanted) as (run, store):
        if wanted.point:
            _show_step(session, run, wanted.point, how)
        elif how.raw or how.wire:
            option = "--raw" if how.raw else "--wire"
            raise UsageError(
                f"{option} shows the bytes of one step", hint=f"playhead show {run.name}:1 {option}"
            )
        else:
            _show_run(session, run, store, how.everything)


@contextmanager
def without_collections() -> Generator[None]:
    """Suspend garbage collections, which would only walk through the spans of a long run."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _show_part(
    ctx: click.Context, session: Session, part: str, target: Target, *, everything: bool
) -> None:
    """Run the command of an option of `RunPart`."""
    name = "workspace" if part == "files" else part
    words = [target.run]
    if target.point and part in ("state", "files"):
        words += ["--at", target.point]
    elif target.point:
        words = [f"{target.run}:{target.point}"]
    words += ["--all"] * everything
    command = import_module(f"playhead_cli.commands.inspect.{name}").command
    run_instead(ctx, session, command, words)


def _show_run(session: Session, run: Run, store: Store | None, everything: bool) -> None:
    if session.as_json:
        session.print_json(run_object(run))
        return
    tree, scores = tree_lines(run, everything, session.width), run_scores(run, everything)
    lines = chain(tree, scores, _late(run), _relatives(session, run, store))
    print_lines(session, lines, paged=True)
    if run.errors:
        session.suggest(f"playhead show {run.name}:error")
    elif run.steps:
        session.suggest(f"playhead show {run.name}:{run.steps[-1].number}")


def _late(run: Run) -> list[Any]:
    """Report where the run contains credentials that were recognized only after recording started."""
    marks = late_marks(run)
    if not marks:
        return []
    key = redaction_key()
    if key is None:
        said = "the key that finds them here is not on this machine: "
        return [_recognized_late(len(marks), f"{said}playhead redact {run.name} --values FILE")]
    found = list(late_values(run, marks, key, until_ns=max(marks.values())))
    places = list(dict.fromkeys(visible(one.place) for one in found))
    if not places:
        return []
    more = f"; and {len(places) - MOST_PLACES} more" if len(places) > MOST_PLACES else ""
    where = "; ".join(places[:MOST_PLACES]) + more
    count = len({one.value for one in found})
    return [_recognized_late(count, f"in {where}: playhead redact {run.name}")]


def _recognized_late(number: int, said: str) -> Any:
    were = "was" if number == 1 else "were"
    what = f"  {count(number, 'credential')} {were} recognized only after recording started"
    return Text(f"{what}; {said}", style="dim")


def _relatives(session: Session, run: Run, its_store: Store | None) -> list[Any]:
    """Return lines with the origin of the run and its forks. ``its_store``: None for a tape file."""
    if its_store is None and session.has_no_store:
        return []
    lines: list[Any] = []
    with reading(session) if its_store is None else nullcontext(its_store) as store:
        if run.origin and run.mode in BRANCHES:
            lines.append(Text(f"  {run.mode} of {origin_name(store, run.origin)}", style="dim"))
        branches = Query(origin=run.trace_id, limit=sys.maxsize, ascending=True)
        for one in store.runs(branches) if run.trace_id else ():
            if one.mode in BRANCHES:
                step = one.origin.partition(":")[2]
                what = f"{one.mode} at {step}" if step else one.mode
                said = f"  {what}: {one.name} {one.status}, {count(one.steps, 'step')}"
                lines.append(Text(said, style="dim"))
    return lines


def _show_step(session: Session, run: Run, text: str, how: ShowOptions) -> None:
    call = find_tool_call(run, text)
    if call is not None and call.span is None:
        _show_tool_call(session, run, call, how)
        return
    point = find_point(run, text if call is None or call.span is None else call.span.span_id)
    if point.snapped:
        session.say(point.snapped)
    if how.raw:
        data = _raw(run, point, how.raw)
        if sys.stdout.isatty():
            sys.stdout.write(visible(data.decode(errors="backslashreplace")))
        else:
            sys.stdout.buffer.write(data)
        sys.stdout.flush()
        return
    if session.as_json:
        session.print_json(step_object(run, point.step, run.messages(point.step)))
        return
    if how.wire:
        lines = wire_lines(run, point.step)
    else:
        lines = step_lines(run, point.step, run.messages(point.step), how.everything)
    print_lines(session, lines, paged=True, cut=False)
    if not how.wire and run.exchanges_of(point.step):
        session.suggest(f"playhead show {run.name}:{point.step.number} --wire")


def _show_tool_call(session: Session, run: Run, call: ToolCallStep, how: ShowOptions) -> None:
    if how.raw or how.wire:
        raise UsageError(
            f"{call.number} is derived from messages and has no bytes",
            hint=f"playhead show {run.name}:{call.step.number} --wire",
        )
    if session.as_json:
        session.print_json(tool_call_object(run, call))
        return
    print_lines(session, tool_call_lines(call, how.everything), paged=True, cut=False)


def _raw(run: Run, point: Point, raw: str) -> bytes:
    exchanges = [point.exchange] if point.exchange is not None else run.exchanges_of(point.step)
    if not exchanges:
        raise UsageError(
            f"step {point.step.number} of {run.name} has no exchange, so there are no bytes",
            hint=f"playhead show {run.name}:{point.step.number}",
        )
    return exchanges[-1].request if raw == "request" else exchanges[-1].response
