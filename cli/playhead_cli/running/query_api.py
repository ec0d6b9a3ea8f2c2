"""The query API of the data folder: that of the running receiver, else of an embedded one."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from playhead_cli.session.configuration import for_children
from playhead_cli.session.session import Session
from playhead_core.errors import StoreBusy
from playhead_receiver.config.configuration import Access, Addresses, Configuration, Programs, Storage
from playhead_receiver.storage.content.references import References
from playhead_receiver.system.writer_lock import running

TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class QueryAddress:
    """The address of a query API."""

    url: str
    token: str
    """Empty if none is needed."""
    own: bool = False
    """Whether this process serves it."""


@contextmanager
def query_api(session: Session, url: str | None = None) -> Generator[QueryAddress]:
    """The query API at ``url``; None: of the data folder. `StoreBusy`, errors of `Receiver.start`."""
    settings = session.settings
    if url:
        yield QueryAddress(url, settings.token)
        return
    found = running(session.data_dir)
    if found is not None and found.query:
        yield QueryAddress(found.query, settings.token or found.key)
        return
    if found is not None:
        raise StoreBusy(
            f"process {found.pid} writes to {session.data_dir} and has no query API",
            hint="playhead up, or wait for it to end",
        )
    from playhead_receiver.server import Receiver

    token = secrets.token_urlsafe(TOKEN_BYTES)
    configuration = Configuration(
        Addresses(http_port=0, grpc_port=None, query_port=0),
        Access(token),
        Storage(settings.store),
        references=References.named(settings.references),
        programs=programs_of(session),
        agents=settings,
    )
    with Receiver(session.data_dir, configuration) as receiver:
        yield QueryAddress(receiver.query_endpoint, token, own=True)


def programs_of(session: Session) -> Programs:
    """Return the command ``playhead`` with the settings of this session."""
    # -P: a folder that happens to hold a playhead_cli is no part of it.
    return Programs((sys.executable, "-P", "-m", "playhead_cli"), for_children(session.resolved))
