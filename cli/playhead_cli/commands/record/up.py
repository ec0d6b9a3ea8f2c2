"""``playhead up``: run the receiver until it is stopped."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from playhead_cli.running.query_api import programs_of
from playhead_cli.session.options import keep_flag, option_groups, playhead_command
from playhead_cli.session.session import Session
from playhead_core.errors import UsageError
from playhead_receiver.forward import destinations_of
from playhead_receiver.system.defaults import GRPC_PORT, HTTP_PORT, QUERY_PORT, ListenAddress
from playhead_receiver.system.listening import Tls, is_loopback

if TYPE_CHECKING:
    from playhead_cli.json_output.environment import PrintedReceiver
    from playhead_receiver.server import Receiver

FILE = click.Path(exists=True, dir_okay=False)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Options that name PEM files."""

    tls_cert: str | None
    tls_key: str | None
    tls_client_ca: str | None

    def tls(self) -> Tls | None:
        """None without any of them. `UsageError` if certificate or key is missing."""
        if self.tls_cert is None and self.tls_key is None and self.tls_client_ca is None:
            return None
        if self.tls_cert is None or self.tls_key is None:
            raise UsageError(
                "TLS needs a certificate and its key",
                hint="playhead up --tls-cert FILE --tls-key FILE",
            )
        return Tls(self.tls_cert, self.tls_key, self.tls_client_ca or "")


@playhead_command("up", short_help="Run the receiver until it is stopped")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. Other addresses need a token.",
)
@click.option("--http-port", type=click.IntRange(0, 65535), default=HTTP_PORT, show_default=True)
@click.option("--grpc-port", type=click.IntRange(0, 65535), default=GRPC_PORT, show_default=True)
@click.option(
    "--query-port",
    type=click.IntRange(0, 65535),
    default=QUERY_PORT,
    show_default=True,
    help="Port of the query API, described at /openapi.json.",
)
@click.option(
    "--forward",
    metavar="DESTINATION",
    multiple=True,
    help="Forward spans: 'URL [drop=GLOB,…] [keep=GLOB,…] [limit=4K] [sample=0.1] [tenant=NAME] …'.",
)
@click.option(
    "--alert",
    metavar="RULE",
    multiple=True,
    help="Report loops, stuck runs and failures: 'loop -> URL', 'failure:tool/timeout -> COMMAND'.",
)
@click.option(
    "--blobs",
    metavar="URL",
    expose_value=False,
    callback=keep_flag,
    help="Object storage for large bodies: s3://BUCKET/PREFIX.",
)
@click.option("--tls-cert", type=FILE, help="TLS certificate chain (PEM).")
@click.option("--tls-key", type=FILE, help="TLS private key (PEM).")
@click.option("--tls-client-ca", type=FILE, help="Require client certificates signed by this CA (PEM).")
@click.option(
    "--max-request-mib",
    type=click.IntRange(1, 1024),
    default=64,
    show_default=True,
    help="Largest OTLP request after decompression, in MiB.",
)
@click.option(
    "--programs/--no-programs",
    default=None,
    help="Allow the pages to start replays and forks, with your rights. Default: only if "
    "--host is this machine.",
)
@option_groups(place=ListenAddress, files=TlsFiles)
def command(
    session: Session,
    place: ListenAddress,
    files: TlsFiles,
    forward: tuple[str, ...],
    alert: tuple[str, ...],
    max_request_mib: int,
    programs: bool | None,
) -> None:
    """Receive OTLP on this machine and store it until ^C. Port 0 selects a free port.

    Once the data folder has a token (playhead token create), every client needs one.
    """
    from playhead_receiver.standalone import receiver_of, serve

    settings = session.settings
    if forward:
        settings = replace(settings, forward=";".join(forward))
    if alert:
        settings = replace(settings, alerts="\n".join(alert))
    wanted = is_loopback(place.host) if programs is None else programs
    receiver = receiver_of(
        settings,
        place,
        session.say,
        files.tls(),
        max_request_mib,
        programs_of(session) if wanted else None,
    )
    onward = [one.endpoint for one in destinations_of((settings.forward,))]
    serve(receiver, lambda: _announce(session, receiver, onward), session.say)


def _announce(session: Session, receiver: Receiver, forward: list[str]) -> None:
    from playhead_receiver.standalone import WITHOUT_GRPC

    http, grpc, query = receiver.http_endpoint, receiver.grpc_endpoint, receiver.query_endpoint
    if session.as_json:
        printed: PrintedReceiver = {
            "schema_version": 1,
            "http": http,
            "grpc": grpc,
            "query": query,
            "data_dir": str(session.data_dir),
            "store": session.store_name,
            "forward": forward,
            "pid": os.getpid(),
        }
        session.print_json(printed)
        return
    both = f"{http} and {grpc} (grpc)" if grpc else http
    session.say(f"listening at {both}, storing in {session.store_name}")
    if not grpc:
        session.say(WITHOUT_GRPC)
    session.say(f"answering at {query}/v1/runs")
    session.say(f"pages: {query}/ (playhead open)")
    for endpoint in forward:
        session.say(f"forwarding to {endpoint}")
    session.suggest("playhead record SCRIPT")
