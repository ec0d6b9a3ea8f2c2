"""``playhead redact`` and ``playhead rederive``: remove credentials; derive spans again."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from playhead_cli.completion.arguments import complete_query, complete_run
from playhead_cli.output.words import count
from playhead_cli.session.options import limit_option, playhead_command
from playhead_cli.session.session import Session
from playhead_cli.store_changes import carry_out, send_file, user
from playhead_cli.targets.run_argument import parse_target, reading, searchable
from playhead_core.errors import UsageError
from playhead_core.integrity.tombstones import Why
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_receiver.archive.late_values import late_marks, late_values, redaction_key, told_in_spans
from playhead_receiver.archive.redacted_runs import Redaction
from playhead_receiver.archive.run_files import Material
from playhead_receiver.integrity import FileChains, redacted_chain
from playhead_receiver.maintenance.jobs import Delete, Rederive
from playhead_receiver.queries.language import read_language
from playhead_receiver.queries.matching_runs import ask_runs
from playhead_receiver.storage import Query
from playhead_receiver.storage.retention import named_to_go
from playhead_replay.tape_files.tape_file import standing_alone, write_tape_file

if TYPE_CHECKING:
    from playhead_cli.json_output.changes import PrintedRedaction, PrintedRederivation
    from playhead_core.integrity import Link


SHORTEST = 6


@playhead_command("redact", short_help="Remove credentials from a stored run")
@click.argument("run", metavar="RUN", shell_complete=complete_run)
@click.option(
    "--values",
    type=click.File("r"),
    help="File with values to remove, one per line; - reads standard input.",
)
@click.option("--dry-run", is_flag=True, help="Report what would be removed, without changing the run.")
def command(session: Session, run: str, values: TextIO | None, dry_run: bool) -> int:
    """Remove credentials from a run: from facts, bodies, spans, log records and the search index.

    Removes values with a credential's name or shape, values that the program later used as a
    credential, and the values given with --values. The run is rewritten under a new name and the old
    data is overwritten; the new run records when and by whom.
    """
    target = parse_target(run)
    if target.is_file or target.point:
        raise UsageError("a stored run can only be redacted as a whole", hint="playhead redact RUN")
    given = [line.strip() for line in values or () if line.strip()]
    short = [one for one in given if len(one) < SHORTEST]
    if short:
        raise UsageError(
            f"a value of fewer than {SHORTEST} characters also occurs in unrelated data",
            hint="give whole values, one per line",
        )
    handle, name = tempfile.mkstemp(dir=session.data_dir, prefix="redacted-", suffix=".tape")
    os.close(handle)
    path, kept = Path(name), False
    try:
        with reading(session) as store:
            (summary,) = named_to_go(store, [target.run])
            done = _write(Material.of_store(store, summary.trace_id), path, given)
        if done.places and not dry_run:
            kept = True  # from here on this file is all there is of the run
            deleted = carry_out(session, Delete([summary.trace_id], user(), Why.REDACTED)).deleted
            rejected, names = send_file(session, path)
            kept = bool(rejected)
        else:
            deleted, names = None, {}
    finally:
        if not kept:
            path.unlink(missing_ok=True)
        else:
            session.say(f"the redacted run is in {path}: playhead import {path}")
    now = next(iter(names.values()), summary.name)
    said = f"{count(done.places, 'place')} in {count(done.facts, 'fact')}"
    if session.as_json:
        printed: PrintedRedaction = {
            "schema_version": 1,
            "run": summary.name,
            "name": now,
            "places": done.places,
            "facts": done.facts,
            "values": done.values,
            "wiped": deleted is not None and deleted.wiped,
        }
        session.print_json(printed)
    elif not done.places:
        session.say(f"nothing was found in {summary.name}")
    elif deleted is None:
        session.say(f"{said} would be redacted")
    else:
        session.say(f"redacted {said}; {summary.name} is {now} now")
        if not deleted.wiped:
            session.say("some deleted data is not overwritten yet; a receiver does it later")
    return 0


def _write(material: Material, path: Path, given: list[str]) -> Redaction:
    """Write the run without its credentials to ``path``."""
    tapes = [(tape, list(standing_alone(tape))) for tape in material.tapes]
    wanted = set(late_marks(material.run))
    values, key = set(given), redaction_key()
    if wanted and key is not None:
        values |= {one.value for one in late_values(material.run, wanted, key)}
        values |= told_in_spans(material.spans, material.logs, wanted, key)
    redaction = Redaction(sorted(values), knows_late=key is not None)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    done = f"{now} {user()}: {len(values)} named values"
    cleaned: list[IndexedTape] = []
    chains: dict[bytes, list[Link]] = {}
    for tape, facts in tapes:
        if facts:
            redacted = redaction.tape(tape, facts, done)
            cleaned.append(IndexedTape(redacted))
            chains[tape.instance] = redacted_chain(material.chains, facts, redacted, user())
    spans = [redaction.span(one) for one in material.spans]
    keeper = FileChains(chains) if any(chains.values()) else None
    resources = {one: redaction.values_of(named) for one, named in material.resources.items()}
    write_tape_file(path, cleaned, spans, resources, keeper, map(redaction.log, material.logs))
    return redaction


@playhead_command("rederive", short_help="Re-derive model, tokens and cost from stored requests")
@click.argument("words", metavar="[QUERY]", nargs=-1, shell_complete=complete_query)
@limit_option(1_000_000, "runs")
def rederive_command(session: Session, words: tuple[str, ...], limit: int) -> int:
    """Re-derive model, tokens and cost of stored requests that no instrumentation described.

    The receiver does this once, on arrival. Use this command for runs stored earlier, or stored by a
    version that knew fewer providers. QUERY selects runs as in playhead ls. A receiver running on the
    data folder does the work.
    """
    asked = read_language(" ".join(words), Query(mode=None, limit=limit))
    if asked.text:
        with closing(searchable(session)) as found:
            traces = [run.trace_id for run in ask_runs(found, asked)]
    else:
        with reading(session) as store:
            traces = [run.trace_id for run in store.runs(asked.query)]
    calls = carry_out(session, Rederive(traces)).calls if traces else 0
    if session.as_json:
        printed: PrintedRederivation = {"schema_version": 1, "runs": len(traces), "calls": calls}
        session.print_json(printed)
    else:
        session.say(
            f"looked at {count(len(traces), 'run')}: {count(calls, 'call')} identified from requests"
        )
    return 0
