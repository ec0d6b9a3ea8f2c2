"""Asks an endpoint, with empty requests, whether it takes what agents send."""

from __future__ import annotations

from playhead_core.settings import Settings
from playhead_exporter.delivery.endpoint import Signal
from playhead_exporter.shipping.endpoint_answers import Accepted, Answer
from playhead_exporter.shipping.transports import transport_opener

TIMEOUT_S = 5.0


def ask(settings: Settings) -> Answer:
    """Return the first answer that is not `Accepted`, to an empty request for facts and one for spans.

    Uses the same address, token and certificates as an agent's records. Raises `ConfigurationError` if
    the settings name no endpoint, and `OSError` if a certificate cannot be read.
    """
    _, open_transport = transport_opener(settings)
    transport = open_transport()
    try:
        for signal in (Signal.LOGS, Signal.TRACES):
            answer = transport.send(signal, b"", TIMEOUT_S)
            if not isinstance(answer, Accepted):
                return answer
        return answer
    finally:
        transport.close()
