"""``playhead note``: write a note about a run or a step, or list the notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from playhead_cli.completion.arguments import complete_run
from playhead_cli.output.step.score_text import score_lines
from playhead_cli.session.options import playhead_command
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.store_changes import send_logs, user
from playhead_cli.targets.point_argument import find_point
from playhead_cli.targets.run_argument import opened_run, parse_target
from playhead_core.errors import UsageError
from playhead_genai.notes import note_of, request_of, withdrawal_of

if TYPE_CHECKING:
    from playhead_cli.json_output.changes import PrintedNotes
    from playhead_genai.scores import Score
    from playhead_replay import Run


@playhead_command("note", short_help="Write a note about a run or a step, or list the notes")
@click.argument("target", metavar="[RUN[:POINT]]", required=False, shell_complete=complete_run)
@click.argument("text", required=False, default="")
@click.option("--score", metavar="NAME=VALUE", help="Give a score, e.g. tone=0.5.")
@click.option("--right", "label", flag_value="right", help="Mark it as right.")
@click.option("--wrong", "label", flag_value="wrong", help="Mark it as wrong.")
@click.option("--withdraw", metavar="ID", help="Withdraw a note of your own.")
def command(
    session: Session,
    target: str | None,
    text: str,
    score: str | None,
    label: str | None,
    withdraw: str | None,
) -> None:
    """Write a note about a run, or about the step at POINT. Without a text or a score, list the notes.

    A note is stored with your name and the time, as the result of an evaluation
    (gen_ai.evaluation.result): `playhead show` shows it; `playhead ls score.NAME>=0.5` and
    `playhead ls score.correct:wrong` find it.
    """
    wanted = parse_target(target)
    if wanted.is_file:
        raise UsageError("notes are written about stored runs", hint=f"playhead import {wanted.run}")
    with opened_run(session, wanted) as run:
        trace_id = run.trace_id
        point = find_point(run, wanted.point) if wanted.point else None
        span_id = point.step.span.span_id if point else ""
        known = {one.note_id: one for one in run.scores if one.note_id}
    if withdraw:
        found = known.get(withdraw)
        if found is None or found.evaluator != user():
            raise UsageError(
                f"you have written no note {withdraw}", hint=f"playhead note {run.name} --json"
            )
        send_logs(session, withdrawal_of(withdraw, trace_id, user()))
    elif text or score or label:
        name, value = _score(score)
        note = note_of(text, user(), name=name, value=value, label=label or "")
        send_logs(session, request_of(note, trace_id, span_id))
    with opened_run(session, wanted) as run:
        notes = [one for one in run.scores if one.note_id and span_id in ("", one.span_id)]
        if session.as_json:
            session.print_json(_printed(run, notes))
        elif notes:
            print_lines(session, score_lines(notes, True, run.steps_of_spans(), "Notes"))
        else:
            session.say(f"{run.name} has no notes")
            session.suggest(f'playhead note {run.name} "text"')


def _score(text: str | None) -> tuple[str, float | None]:
    """The name and the value of ``NAME=VALUE``. `UsageError`."""
    if text is None:
        return "", None
    name, _, value = text.rpartition("=")
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not name or not abs(number) < float("inf"):
        raise UsageError(f"{text} is not a score", hint="--score NAME=VALUE, e.g. tone=0.5")
    return name, number


def _printed(run: Run, notes: list[Score]) -> PrintedNotes:
    steps = run.steps_of_spans()
    return {
        "schema_version": 1,
        "run": run.name,
        "notes": [
            {
                "id": one.note_id,
                "step": steps.get(one.span_id),
                "span_id": one.span_id or None,
                "text": one.explanation,
                "name": one.name,
                "value": one.value,
                "label": one.label or None,
                "author": one.evaluator,
                "time_ns": one.time_ns,
            }
            for one in notes
        ],
    }
