"""``playhead checkpoints``: list the checkpoints of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from playhead_cli.completion.arguments import complete_run
from playhead_cli.output.step.moment import checkpoint_lines
from playhead_cli.session.options import playhead_command
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.targets.run_argument import opened_run, parse_target, reading
from playhead_receiver.storage.api.maintenance import StoredCheckpoints
from playhead_replay.timeline import checkpoints_of
from playhead_replay.timeline.checkpoints import checkpoint_object
from playhead_replay.timeline.restoring import restored

if TYPE_CHECKING:
    from playhead_cli.json_output.moments import (
        PrintedCheckpoints,
        PrintedRestored,
        PrintedStoredState,
    )
    from playhead_cli.targets.run_argument import Target
    from playhead_replay import Run
    from playhead_replay.json_objects.recorded import StoredCheckpoint
    from playhead_replay.timeline import MarkedCheckpoint, StoredState


_MOST_SENT = 1_000
"""Largest number of checkpoints of other senders that are listed, the newest."""


@playhead_command("checkpoints", short_help="List the checkpoints of a run")
@click.argument("target", metavar="[RUN]", required=False, shell_complete=complete_run)
@click.option(
    "--into",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the copies of checkpoint stores to a new SQLite file.",
)
def command(session: Session, target: str | None, into: Path | None) -> None:
    """List the checkpoints of a run.

    Checkpoints are created by playhead.checkpoint(), by PlayheadSaver and PlayheadSession, and by
    programs that write to a checkpoint store. Each one is a POINT, by its number or by its id in the
    store: playhead state RUN:c1, playhead fork RUN --checkpoint c1, playhead rollback RUN --to c1.

    The tape has a copy of each state, without credentials. If the store is lost, --into writes the
    copies to a new one that the program can continue from.

    Checkpoints that other senders stored for the run (PUT /v1/checkpoints/ID/state, or log records)
    are listed after these. A POINT cannot name them.
    """
    parsed = parse_target(target)
    with opened_run(session, parsed) as run:
        if into is not None:
            _restore(session, run, into)
            return
        found = checkpoints_of(run)
        sent = _sent(session, parsed, run, found)
        if session.as_json:
            session.print_json(_object(run, found, sent))
            return
        print_lines(session, checkpoint_lines(run, found, sent), paged=True)
        if found:
            session.suggest(f"playhead state {run.name}:{found[-1].name}")


def _sent(
    session: Session, target: Target, run: Run, found: list[MarkedCheckpoint]
) -> list[StoredCheckpoint]:
    """Return the checkpoints of a run in the receiver's store that no tape reports, in order of time."""
    if target.is_file or session.has_no_store:
        return []
    with reading(session) as store:
        kept = store.existing_checkpoints() if isinstance(store, StoredCheckpoints) else None
        if kept is None:
            return []
        stored = kept.checkpoints(bytes.fromhex(run.trace_id), limit=_MOST_SENT)
    recorded = {one.stored.id for one in found if one.stored is not None}
    others = [checkpoint_object(one) for one in stored if one.id.hex() not in recorded]
    return sorted(others, key=lambda one: one["time_ns"])


def _restore(session: Session, run: Run, into: Path) -> None:
    found = restored(run, into)
    if session.as_json:
        printed: PrintedRestored = {
            "schema_version": 1,
            "run": run.name,
            "file": str(into),
            "checkpoints": found.checkpoints,
            "left_out": found.left_out,
        }
        session.print_json(printed)
        return
    for one in found.left_out:
        session.say(f"left out: {one}")
    session.say(f"{found.checkpoints} checkpoints of {run.name} are in {into}")


def _object(run: Run, found: list[MarkedCheckpoint], sent: list[StoredCheckpoint]) -> PrintedCheckpoints:
    return {
        "schema_version": 1,
        "run": run.name,
        "trace_id": run.trace_id,
        "checkpoints": [
            {
                "name": one.name,
                "kind": one.kind,
                "label": one.label or None,
                "step": one.step,
                "span_id": one.span_id or None,
                "time_ns": one.time_ns,
                "states": list(one.states),
                "stored": None if one.stored is None else _stored_object(one.stored),
            }
            for one in found
        ],
        "sent": sent,
    }


def _stored_object(one: StoredState) -> PrintedStoredState:
    return {
        "id": one.id,
        "parent": one.parent or None,
        "thread": one.thread,
        "name": one.name,
        "size_bytes": one.size_bytes,
        "digest": one.digest,
        "copied": one.copy is not None,
    }
