"""``playhead up``: the receiver, until it is stopped."""

from __future__ import annotations

import gc
import os
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from playhead_receiver.cli.options import gathered, keep_flag, verb
from playhead_receiver.cli.session import Session
from playhead_semconv.errors import UsageError

if TYPE_CHECKING:
    from playhead_receiver.host.listening import Tls
    from playhead_receiver.server import Receiver

FILE = click.Path(exists=True, dir_okay=False)

SCHEMA_VERSION = 1
SWITCH_S = 0.001
"""How long a thread may keep others waiting: the one that commits comes back from SQLite often."""
COLLECT_AFTER = 10_000
"""New objects until cycles are looked for; requests leave none behind."""
STOPPING = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class Place:
    """Options that say where it listens; port 0 is any free one."""

    host: str
    http_port: int
    grpc_port: int
    query_port: int


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Options that name PEM files."""

    tls_cert: str | None
    tls_key: str | None
    tls_client_ca: str | None

    def tls(self) -> Tls | None:
        """None without any of them. `UsageError` where certificate or key is missing."""
        from playhead_receiver.host.listening import Tls

        if self.tls_cert is None and self.tls_key is None and self.tls_client_ca is None:
            return None
        if self.tls_cert is None or self.tls_key is None:
            raise UsageError(
                "TLS needs a certificate and its key",
                hint="playhead up --tls-cert FILE --tls-key FILE",
            )
        return Tls(self.tls_cert, self.tls_key, self.tls_client_ca or "")


@verb("up", short_help="run the receiver until it is stopped")
@click.option("--host", default="127.0.0.1", show_default=True, help="Elsewhere needs a token.")
@click.option("--http-port", type=click.IntRange(0, 65535), default=4318, show_default=True)
@click.option("--grpc-port", type=click.IntRange(0, 65535), default=4317, show_default=True)
@click.option(
    "--query-port",
    type=click.IntRange(0, 65535),
    default=4319,
    show_default=True,
    help="Of the query API, described at /openapi.json.",
)
@click.option(
    "--forward",
    metavar="DESTINATION",
    multiple=True,
    help="Send spans on: 'URL [drop=GLOB,…] [keep=GLOB,…] [limit=4K] [sample=0.1] [tenant=NAME] …'.",
)
@click.option(
    "--blobs",
    metavar="URL",
    expose_value=False,
    callback=keep_flag,
    help="Large bodies go here: s3://BUCKET/PREFIX.",
)
@click.option("--tls-cert", type=FILE, help="Speak TLS with this certificate chain (PEM).")
@click.option("--tls-key", type=FILE, help="Its private key (PEM).")
@click.option(
    "--tls-client-ca", type=FILE, help="Clients have to show a certificate that this has signed."
)
@click.option(
    "--max-request-mib",
    type=click.IntRange(1, 1024),
    default=64,
    show_default=True,
    help="Largest OTLP request, after decompression.",
)
@gathered(place=Place, files=TlsFiles)
def command(
    session: Session, place: Place, files: TlsFiles, forward: tuple[str, ...], max_request_mib: int
) -> None:
    """Take OTLP from anybody on this machine and keep it, until ^C. Port 0 is any free one.

    As soon as the data folder has a token (playhead token create), it is open to those who bring one.
    """
    from playhead_receiver.faces.shown import Limits
    from playhead_receiver.forward import destinations_of
    from playhead_receiver.host.memory import return_large_blocks
    from playhead_receiver.server import Receiver
    from playhead_receiver.store.content.references import References
    from playhead_receiver.store.keeping.retention import policy_of
    from playhead_receiver.store.keeping.service_history import history_of
    from playhead_receiver.store.runs.costs import load_prices

    settings = session.settings
    forward = forward or (settings.forward,)
    return_large_blocks()
    sys.setswitchinterval(SWITCH_S)
    receiver = Receiver(
        session.data_dir,
        store=settings.store,
        blobs=settings.blobs,
        http_port=place.http_port,
        grpc_port=place.grpc_port,
        query_port=place.query_port,
        host=place.host,
        forward=forward,
        token=settings.token,
        guarded=True,
        tls=files.tls(),
        limit_bytes=max_request_mib << 20,
        policy=policy_of(settings.retention),
        history=history_of(settings.process_history),
        faces=Limits(
            settings.jaeger_attribute_bytes, settings.tempo_attribute_bytes, settings.public_url
        ),
        references=References.named(settings.references),
        apart=(os.cpu_count() or 1) > 1,
        search=settings.search,
        say=session.say,
    )
    # Held back before the receiver starts its threads, so that the signal comes to this line.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        with receiver:
            _announce(session, receiver, [one.endpoint for one in destinations_of(forward)])
            load_prices()
            gc.freeze()  # what is here now stays: no collection has to look at it again
            gc.set_threshold(COLLECT_AFTER)
            signal.sigwait(STOPPING)
            session.say("stopping")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _announce(session: Session, receiver: Receiver, forward: list[str]) -> None:
    http, grpc, query = receiver.http_endpoint, receiver.grpc_endpoint, receiver.query_endpoint
    if session.as_json:
        session.print_json(
            {
                "schema_version": SCHEMA_VERSION,
                "http": http,
                "grpc": grpc,
                "query": query,
                "data_dir": str(session.data_dir),
                "store": session.store_name,
                "forward": forward,
                "pid": os.getpid(),
            }
        )
        return
    session.say(f"listening at {http} and {grpc} (grpc), storing in {session.store_name}")
    session.say(f"answering at {query}/v1/runs")
    for endpoint in forward:
        session.say(f"forwarding to {endpoint}")
    session.suggest("playhead record SCRIPT")
