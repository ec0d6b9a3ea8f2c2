"""Shared by commands that import a run from a file into the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from playhead_cli.session.session import Session

if TYPE_CHECKING:
    from playhead_receiver.archive.run_files import Incoming


def send(session: Session, found: Incoming) -> int:
    """Send the content of a file to the receiver of the data folder.

    Returns the number of rejected records.
    """
    from playhead_cli.running.agent import delivering_to
    from playhead_cli.running.receiver_for_run import receiver_for
    from playhead_exporter.shipping.transports import transport_opener

    with receiver_for(session.settings) as house:
        settings = delivering_to(session.settings, house.listening())
        _, open_transport = transport_opener(settings)
        transport = open_transport()
        try:
            return found.send(transport)
        finally:
            transport.close()


def send_file(session: Session, path: Path) -> tuple[int, dict[str, str]]:
    """Send a tape file.

    Returns the number of rejected records, and the names of its runs by trace id.
    """
    from playhead_receiver.archive.run_files import incoming

    found = incoming(path)
    return send(session, found), names_of(session, found.trace_ids)


def names_of(session: Session, trace_ids: set[str]) -> dict[str, str]:
    """Names of the runs of these traces, by trace id."""
    from playhead_core.errors import RunUnknown
    from playhead_receiver.storage import open_store

    store = open_store(session.store, read_only=True)
    names: dict[str, str] = {}
    try:
        for trace_id in sorted(trace_ids):
            try:
                names[trace_id] = store.resolve(trace_id).name
            except RunUnknown:
                continue
    finally:
        store.close()
    return names
