"""Asks an endpoint, with empty requests, whether it takes what agents send."""

from __future__ import annotations

from playhead_exporter.shipping.answers import Accepted, Answer
from playhead_exporter.shipping.endpoint import Signal
from playhead_exporter.shipping.transports import transport_opener
from playhead_semconv.settings import Settings

TIMEOUT_S = 5.0


def ask(settings: Settings) -> Answer:
    """Its answer to an empty request for facts and to one for spans: the first that is no `Accepted`.

    Goes the way of an agent's records: same address, token, certificates. `ConfigurationError` if the
    settings name no endpoint; `OSError` if a certificate cannot be read.
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
