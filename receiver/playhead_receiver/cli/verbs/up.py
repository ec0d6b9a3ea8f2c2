"""``playhead up``: the receiver, until it is stopped."""

from __future__ import annotations

import os
import signal
import sys

import click

from playhead_receiver.cli.options import verb
from playhead_receiver.cli.session import Session

SCHEMA_VERSION = 1
SWITCH_S = 0.001
"""How long a thread may keep others waiting: the one that commits comes back from SQLite often."""
STOPPING = (signal.SIGINT, signal.SIGTERM)


@verb("up", short_help="run the receiver until it is stopped")
@click.option("--host", default="127.0.0.1", show_default=True, help="Elsewhere needs PLAYHEAD_TOKEN.")
@click.option("--http-port", type=click.IntRange(0, 65535), default=4318, show_default=True)
@click.option("--grpc-port", type=click.IntRange(0, 65535), default=4317, show_default=True)
@click.option("--forward", metavar="URL", multiple=True, help="Send spans on to this endpoint.")
def command(
    session: Session, host: str, http_port: int, grpc_port: int, forward: tuple[str, ...]
) -> None:
    """Take OTLP from anybody on this machine and keep it, until ^C. Port 0 is any free one."""
    from playhead_receiver.server import Receiver

    sys.setswitchinterval(SWITCH_S)
    receiver = Receiver(
        session.data_dir,
        http_port=http_port,
        grpc_port=grpc_port,
        host=host,
        forward=forward,
        token=session.settings.token,
    )
    # Held back before the receiver starts its threads, so that the signal comes to this line.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        with receiver:
            _announce(session, receiver.http_endpoint, receiver.grpc_endpoint, forward)
            signal.sigwait(STOPPING)
            session.say("stopping")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _announce(session: Session, http: str, grpc: str, forward: tuple[str, ...]) -> None:
    if session.as_json:
        session.print_json(
            {
                "schema_version": SCHEMA_VERSION,
                "http": http,
                "grpc": grpc,
                "data_dir": str(session.data_dir),
                "forward": list(forward),
                "pid": os.getpid(),
            }
        )
        return
    session.say(f"listening at {http} and {grpc} (grpc), storing in {session.data_dir}")
    for endpoint in forward:
        session.say(f"forwarding to {endpoint}")
    session.suggest("playhead record SCRIPT")
