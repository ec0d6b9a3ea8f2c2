"""Opens the transport that the settings name, and probes its endpoint."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable

from playhead_core import zstd_frames
from playhead_core.errors import ConfigurationError
from playhead_core.settings import Settings
from playhead_exporter.delivery import Endpoint, Signal, Trust
from playhead_exporter.shipping.endpoint_answers import Accepted, Answer, Transport

PROBE_TIMEOUT_S = 5.0


def transport_opener(settings: Settings) -> tuple[Endpoint, Callable[[], Transport]]:
    """Return the endpoint and a function that opens a transport to it; opens and imports nothing yet.

    Raises `ConfigurationError` if the settings name no endpoint.
    """
    endpoint = Endpoint.parse(settings.endpoint, settings.protocol)
    if endpoint.protocol == "grpc" and importlib.util.find_spec("grpc") is None:
        raise ConfigurationError("protocol grpc needs grpcio", hint="pip install 'playhead-agent[grpc]'")
    trust = Trust(settings.certificate, settings.client_certificate, settings.client_key)

    def open_transport() -> Transport:
        if endpoint.protocol == "grpc":
            from playhead_exporter.shipping.grpc import GrpcTransport

            return GrpcTransport(endpoint, settings.token, trust)
        from playhead_exporter.shipping.http import HttpTransport

        return HttpTransport(endpoint, settings.token, trust, destination=settings.destination)

    return endpoint, open_transport


def import_all(endpoint: Endpoint) -> None:
    """Import the modules that delivery to ``endpoint`` would otherwise import on first use."""
    kind = "grpc" if endpoint.protocol == "grpc" else "http"
    ours = (f"{__package__}.{kind}", f"{__package__}.requests")
    for name in (*ours, "google.rpc.status_pb2", "encodings.idna"):
        importlib.import_module(name)
    zstd_frames.library()


def probe(settings: Settings) -> Answer:
    """Return the first answer that is not `Accepted`, to an empty request for facts and one for spans.

    Uses the same address, token and certificates as an agent's records. Raises `ConfigurationError` if
    the settings name no endpoint, and `OSError` if a certificate cannot be read.
    """
    _, open_transport = transport_opener(settings)
    transport = open_transport()
    try:
        for signal in (Signal.LOGS, Signal.TRACES):
            answer = transport.send(signal, b"", PROBE_TIMEOUT_S)
            if not isinstance(answer, Accepted):
                return answer
        return answer
    finally:
        transport.close()
