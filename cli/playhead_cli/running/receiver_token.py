"""The receiver that runs on the data folder: the token for it, and reports to it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from playhead_cli.session.session import Session
from playhead_receiver.system.defaults import data_dir
from playhead_receiver.system.writer_lock import running

if TYPE_CHECKING:
    from playhead_core.settings import Settings
    from playhead_receiver.system.writer_lock import Listening


DELIVERING = ("ingest", "admin")
"""Scopes that allow to deliver."""


def token_for(settings: Settings, receiver: Listening) -> str:
    """Return the token of the settings if it may deliver; else the key of ``receiver`` (may be empty).

    A read token may be set in the same shell; it must not prevent the delivery.
    """
    if not settings.token:
        return receiver.key
    from playhead_receiver.auth import TokenBook  # imported late: mostly no token is set
    from playhead_receiver.auth.database import AccessFile

    file = AccessFile(data_dir(settings))
    try:
        token = TokenBook(file).find(settings.token)
    finally:
        file.close()
    if token is None:
        return receiver.key or settings.token
    return settings.token if set(DELIVERING).intersection(token.scopes) else receiver.key


TIMEOUT_S = 10.0


def report_result(
    session: Session, mode: str, outcome: str, seconds: float, exchanges: Mapping[str, int] | None = None
) -> None:
    """Report the result of a replay to the running receiver, for its metrics.

    ``mode``: replay, fork or resume. ``exchanges``: counts by fidelity. Without a query API nothing is
    reported: the metrics are the receiver's, not the run's.
    """
    found = running(session.data_dir)
    if found is None or not found.query:
        return
    import urllib3

    headers = {"content-type": "application/json"}
    if token := token_for(session.settings, found):
        headers["authorization"] = f"Bearer {token}"
    told = {"mode": mode, "outcome": outcome, "seconds": seconds, "exchanges": exchanges or {}}
    settings = session.settings
    pool = urllib3.PoolManager(
        ca_certs=settings.certificate or None,
        cert_file=settings.client_certificate or None,
        key_file=settings.client_key or None,
    )
    with suppress(urllib3.exceptions.HTTPError):
        pool.request(
            "POST",
            f"{found.query}/v1/replays",
            body=msgspec.json.encode(told),
            headers=headers,
            timeout=TIMEOUT_S,
            retries=False,
            redirect=False,
        )
