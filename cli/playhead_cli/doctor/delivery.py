"""Checks of ``playhead doctor``: delivery from the spool to the store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from playhead_cli.doctor import ReportLine
from playhead_cli.output.words import count, size
from playhead_cli.running.agent import delivering_to
from playhead_cli.session.session import Session
from playhead_core.errors import PlayheadError
from playhead_core.settings import Settings
from playhead_exporter.push import pending
from playhead_exporter.shipping.endpoint_answers import Accepted, TryLater, Unwelcome
from playhead_exporter.shipping.transports import probe
from playhead_exporter.spool.folders import REJECTED, SpoolFolders
from playhead_receiver.maintenance.background import FAR_BEHIND
from playhead_receiver.storage import open_store
from playhead_receiver.storage.api.maintenance import Statistics
from playhead_receiver.storage.api.search import Search
from playhead_receiver.storage.api.store import needed
from playhead_receiver.system.writer_lock import Listening, running

MEANWHILE = "agents keep their records in the spool meanwhile"


def check_receiver(session: Session) -> Iterator[ReportLine]:
    """Yield the receiver on the data folder, and whether it accepts recordings of this machine."""
    found = running(session.data_dir)
    if found is None:
        yield ReportLine("good", "no receiver runs: playhead record embeds one")
    elif not found.http:
        holds = f"process {found.pid} writes to {session.data_dir} and does not listen"
        yield ReportLine("warning", f"receiver: {holds}", f"wait for it, or end it: kill {found.pid}")
    else:
        where = " and ".join(one for one in (found.http, found.grpc) if one)
        reason = _problem(delivering_to(session.settings, found))
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            unasked = f"listens at {where}; its certificate is for other names, so it was not asked"
            yield ReportLine("warning", f"receiver: process {found.pid} {unasked}")
        elif reason:
            yield ReportLine(
                "bad",
                f"receiver: process {found.pid} should take records at {where}: {reason}",
                f"see what it says; end it: kill {found.pid}",
            )
        else:
            yield ReportLine("good", f"receiver: process {found.pid} takes records at {where}")


def check_endpoint(session: Session) -> Iterator[ReportLine]:
    """Yield the endpoint of the settings, used by agents that `playhead record` does not start."""
    settings, origin = session.settings, session.resolved.origins["endpoint"]
    with_token = "with PLAYHEAD_TOKEN" if settings.token else "without a token"
    try:
        answer = probe(settings)
    except PlayheadError as problem:
        yield ReportLine("bad", problem.what, problem.hint)
        return
    except OSError as problem:
        yield ReportLine("bad", f"{settings.endpoint}: {problem}; {MEANWHILE}")
        return
    if isinstance(answer, Accepted):
        yield ReportLine("good", f"{settings.endpoint} takes records {with_token} ({origin})")
        return
    where = "" if answer.reason.startswith(settings.endpoint) else f"{settings.endpoint}: "
    if origin == "default" and isinstance(answer, TryLater):
        yield ReportLine(
            "warning",
            f"{where}{answer.reason}: agents that playhead record does not start keep their records in"
            " the spool",
            _instead(running(session.data_dir)),
        )
        return
    hint = answer.hint if isinstance(answer, Unwelcome) else "is it the right address? PLAYHEAD_ENDPOINT"
    yield ReportLine("bad", f"{where}{answer.reason} (asked {with_token}); {MEANWHILE}", hint)


def _instead(found: Listening | None) -> str:
    return (
        f"export PLAYHEAD_ENDPOINT={found.http}" if found is not None and found.http else "playhead up"
    )


def _problem(settings: Settings) -> str:
    """Return why an endpoint accepts no records; empty if it does, or would with another token."""
    try:
        answer = probe(settings)
    except (PlayheadError, OSError) as problem:
        return str(problem)
    return "" if isinstance(answer, Accepted | Unwelcome) else answer.reason


def check_store(session: Session) -> Iterator[ReportLine]:
    """Yield whether runs can be stored, read and searched."""
    if not session.settings.store and (closed := _not_writable(session.data_dir)):
        yield ReportLine("bad", f"{closed} cannot be written to: nothing is stored", "--data-dir DIR")
    if session.has_no_store:
        return
    try:
        store = open_store(session.store, read_only=True)
        try:
            held, behind = needed(store, Statistics).size_bytes(), needed(store, Search).lag().groups
        finally:
            store.close()
    except PlayheadError as problem:
        why = f": {problem.cause}" if problem.cause else ""
        yield ReportLine("bad", f"{problem.what}{why}", problem.hint)
        return
    yield ReportLine("good", f"store: {session.store_name}, {size(held)}")
    if behind:
        yield ReportLine(
            "warning" if behind > FAR_BEHIND else "good",
            f"search: {count(behind, 'group')} of spans and facts cannot be found yet",
            "playhead search makes up for it, a receiver that runs does so by itself",
        )


def check_spool(session: Session) -> Iterator[ReportLine]:
    """Yield whether agents can write to the spool, and what is not delivered."""
    spool = SpoolFolders.of(session.settings).spool
    if closed := _not_writable(spool):
        yield ReportLine(
            "bad",
            f"spool: {closed} cannot be written to: what cannot be delivered at once is lost",
            "export PLAYHEAD_SPOOL_DIR=DIR",
        )
    found = pending(session.settings)
    for alive, kind in ((True, "living"), (False, "dead")):
        left = [one for one in found if one.alive is alive]
        if not left:
            continue
        facts, spans = sum(one.facts for one in left), sum(one.spans for one in left)
        waiting = " and ".join(
            count(number, what) for number, what in ((facts, "fact"), (spans, "span")) if number
        )
        held = size(sum(one.bytes for one in left))
        owners = f"a {kind} process" if len(left) == 1 else f"{len(left)} {kind} processes"
        yield ReportLine(
            "warning",
            f"spool: {waiting} ({held}) of {owners} undelivered",
            "they deliver by themselves what the endpoint takes" if alive else "playhead spool push",
        )
    refused = _refused(spool / REJECTED)
    if refused:
        yield ReportLine(
            "warning", f"spool: {refused} refused for good, with reasons in {spool / REJECTED}"
        )
    if not found and not refused:
        yield ReportLine("good", "spool: nothing undelivered")


def _refused(folder: Path) -> int:
    """Return the number of requests that an endpoint rejected; each has a file with the reason."""
    return sum(1 for _ in folder.glob("*.txt"))


def _not_writable(folder: Path) -> str:
    """Return the folder, or the nearest that exists above it, if it cannot be written to; else empty."""
    there = next((one for one in (folder, *folder.parents) if one.exists()), folder)
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return ""
    return str(there)
