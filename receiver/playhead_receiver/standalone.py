"""A receiver in a process of its own: made from settings, and served until a signal ends it."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable
from importlib.util import find_spec

from playhead_core.settings import Settings
from playhead_receiver.config.configuration import (
    Access,
    Addresses,
    CompatibilityLimits,
    Configuration,
    IntakeOptions,
    Programs,
    Storage,
    Watching,
)
from playhead_receiver.ingest.reading_process import return_large_blocks
from playhead_receiver.server import Receiver, Say
from playhead_receiver.storage.content.references import References
from playhead_receiver.storage.retention import history_of, policy_of
from playhead_receiver.storage.runs.costs import load_prices
from playhead_receiver.system.defaults import ListenAddress, data_dir
from playhead_receiver.system.listening import Tls
from playhead_receiver.system.price_file import use_prices

SWITCH_S = 0.001
"""Seconds until a thread must yield: the committing thread returns from SQLite often."""
COLLECT_AFTER = 10_000
"""New objects between two searches for cycles; requests leave no cycles behind."""
STOPPING = (signal.SIGINT, signal.SIGTERM)
WITHOUT_GRPC = "no gRPC, for OTLP or for Jaeger: pip install 'playhead[grpc]'"


def receiver_of(
    settings: Settings,
    place: ListenAddress,
    say: Say,
    tls: Tls | None = None,
    max_request_mib: int = 64,
    programs: Programs | None = None,
) -> Receiver:
    """The receiver that ``settings`` describe, not started yet; without gRPC if it is not installed.

    ``say`` hears of destinations that nothing gets through to. ``max_request_mib``: the largest request,
    after decompression. ``programs``: how runs are executed again; None: not at all.
    `ConfigurationError` for a setting that cannot be understood.
    """
    use_prices(settings.prices)
    grpc_port = place.grpc_port if find_spec("grpc") is not None else None
    configuration = Configuration(
        Addresses(place.http_port, grpc_port, place.query_port, place.host, tls),
        Access(settings.token, guarded=True),
        Storage(
            settings.store,
            settings.blobs,
            policy_of(settings.retention),
            history_of(settings.process_history),
            settings.search,
        ),
        IntakeOptions(max_request_mib << 20, separate_process=(os.cpu_count() or 1) > 1),
        (settings.forward,),
        CompatibilityLimits(
            settings.jaeger_attribute_bytes, settings.tempo_attribute_bytes, settings.public_url
        ),
        References.named(settings.references),
        programs or Programs(),
        Watching(
            settings.stuck_after_s, settings.silent_stream_s, settings.alerts, settings.alert_secret
        ),
        settings,
    )
    return Receiver(data_dir(settings), configuration, say=say)


def serve(receiver: Receiver, on_ready: Callable[[], None], say: Say) -> None:
    """Serve until SIGINT or SIGTERM, in the main thread of a process that does nothing else.

    ``on_ready`` is called when connections are taken. Errors of `Receiver.start`.
    """
    return_large_blocks()
    sys.setswitchinterval(SWITCH_S)
    # Held back before the receiver starts its threads, so that the signal comes to this line.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        with receiver:
            on_ready()
            load_prices()
            gc.freeze()  # what is here now stays: no collection has to look at it again
            gc.set_threshold(COLLECT_AFTER)
            signal.sigwait(STOPPING)
            say("stopping")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
