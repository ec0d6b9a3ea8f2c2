"""``playhead verify``: check the integrity of the store or of a tape."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from playhead_cli.integrity.of_file import verify_file
from playhead_cli.output.integrity import tombstone_line, tombstone_object
from playhead_cli.output.words import count
from playhead_cli.session.options import playhead_command
from playhead_cli.session.session import Session
from playhead_core.errors import RunUnknown, UsageError
from playhead_core.untrusted.shown_text import in_one_line, visible
from playhead_receiver.storage import open_store
from playhead_receiver.storage.api.maintenance import Verification
from playhead_receiver.storage.api.store import needed
from playhead_receiver.tenants.backup import tenants_in
from playhead_receiver.tenants.tenants import FOLDER

if TYPE_CHECKING:
    from playhead_cli.json_output.shown import PrintedStoreFinding, PrintedVerification
    from playhead_core.integrity.tombstones import Tombstone
    from playhead_receiver.storage import Store
    from playhead_receiver.storage.api.maintenance import Finding

MOST_SHOWN = 50
MOST_NAMED = 10


@playhead_command("verify", short_help="Check the integrity of the store or of a tape")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@click.option(
    "--key", metavar="KEY", help="Require a signature of FILE by this public key: a file, or its text."
)
def command(session: Session, file: Path | None, key: str | None) -> int:
    """Check every digest and hash chain of the store, and look for missing data.

    Includes the stores of all tenants in the data folder. A receiver may be running. With FILE,
    checks that tape against its own hash chains, without a store. Exit status 1 if something is
    wrong; stderr names the runs concerned and what to do.
    """
    if file is not None:
        return verify_file(session, file, key)
    if key is not None:
        raise UsageError("--key needs a FILE", hint="playhead verify FILE --key KEY")
    places: dict[str, str | Path] = {"": session.store}
    if not session.settings.store:
        places |= {one: session.data_dir / FOLDER / one for one in tenants_in(session.data_dir)}
    said: list[PrintedStoreFinding] = []
    not_chained = 0
    left: list[tuple[str, Tombstone]] = []
    for tenant, place in places.items():
        with closing(needed(open_store(place, read_only=True), Verification)) as store:
            found = list(store.verify())
            names = _names(store, found)
            not_chained += store.not_chained()
            left += [(tenant, one) for one in store.tombstones()]
        said += [_plain(tenant, one, names) for one in found]
        if not session.as_json:
            _say(session, tenant, found, names)
    if session.as_json:
        printed: PrintedVerification = {
            "schema_version": 1,
            "findings": said,
            "not_chained": not_chained,
            "tombstones": [{**tombstone_object(one), "tenant": tenant} for tenant, one in left],
        }
        session.print_json(printed)
        return 1 if said else 0
    if not said:
        session.say(f"{session.store_name} is whole")
    if not_chained:
        _say_not_chained(session, not_chained)
    if left:
        runs, last = sum(len(one.runs) for _, one in left), tombstone_line(left[-1][1])
        session.say(f"tombstones of {count(runs, 'run')}; the last: {in_one_line(last)}")
    return 1 if said else 0


def _say_not_chained(session: Session, processes: int) -> None:
    whose = "1 process is" if processes == 1 else f"{processes} processes are"
    session.say(
        f"{whose} not chained from the first fact on: a version without hash chains stored them, so"
        " changes cannot be detected"
    )


def _names(store: Store, found: list[Finding]) -> dict[str, str]:
    """Return the names of the runs that findings concern, by trace id; of those not listed the id."""
    names: dict[str, str] = {}
    for trace_id in dict.fromkeys(run for one in found for run in one.runs):
        try:
            names[trace_id] = store.resolve(trace_id).name
        except RunUnknown:
            names[trace_id] = trace_id
    return names


def _plain(tenant: str, one: Finding, names: dict[str, str]) -> PrintedStoreFinding:
    return {
        "what": one.what,
        "where": one.where,
        "problem": one.problem,
        "runs": [names[run] for run in one.runs],
        "tenant": tenant,
    }


def _say(session: Session, tenant: str, found: list[Finding], names: dict[str, str]) -> None:
    if not found:
        return
    whose = f"tenant {tenant}: " if tenant else ""
    for one in found[:MOST_SHOWN]:
        click.echo(visible(f"{whose}{one.what} {one.where}: {one.problem}"))
    if len(found) > MOST_SHOWN:
        session.say(f"and {len(found) - MOST_SHOWN} more")
    runs = list(names.values())
    if any(one.what == "database" for one in found):
        session.say(f"{whose}the database file is damaged: playhead restore FOLDER --data-dir NEW")
    elif runs:
        named = " ".join(runs[:MOST_NAMED]) + (" …" if len(runs) > MOST_NAMED else "")
        rest = "; all others are whole" if all(one.runs for one in found) else ""
        session.say(f"{whose}it concerns {count(len(runs), 'run')}: {named}{rest}")
        session.say(
            f"a backup may have them undamaged; to delete the damaged runs: playhead delete {named}"
        )
