"""Tells a receiver how a replay, fork or resume ended, for its figures."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from playhead_cli.running.receiver_token import token_for
from playhead_cli.session.session import Session
from playhead_receiver.system.writer_lock import running

TIMEOUT_S = 10.0


def tell_receiver(
    session: Session, mode: str, outcome: str, seconds: float, exchanges: Mapping[str, int] | None = None
) -> None:
    """File how one ended with the receiver that runs on the data folder, if it answers questions.

    ``mode``: replay, fork or resume. ``exchanges``: counts by fidelity. Where nobody answers nothing is
    filed: the figures are the receiver's, not the run's.
    """
    found = running(session.data_dir)
    if found is None or not found.query:
        return
    import msgspec
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
