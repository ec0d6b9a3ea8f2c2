"""Records a process that was not started by ``opentelemetry-instrument`` as if it had been."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from playhead_core.errors import ConfigurationError
from playhead_instrumentation.bootstrap.configuration import settings_of_process
from playhead_instrumentation.bootstrap.early import with_site
from playhead_instrumentation.bootstrap.recording import Recording
from playhead_instrumentation.bootstrap.sdk import other_instrumentors
from playhead_instrumentation.bootstrap.start import fork_of, start_recording
from playhead_instrumentation.session.options import start_of
from playhead_semconv import attributes as a

if TYPE_CHECKING:
    from playhead_core.rerun.plans import Plan
    from playhead_core.tape.indexed_tapes import IndexedTape


def launch(tape: IndexedTape | None = None, plan: Plan | None = None) -> Recording | None:
    """Record this process and its Python children.

    The SDK is configured if any ``OTEL_*`` variable concerns it. Only the requested instrumentors are
    loaded. ``tape`` and ``plan``: the recording is a fork, with the instrumentors of its origin.
    """
    os.environ["PYTHONPATH"] = with_site(os.environ)
    if tape is not None and plan is not None:
        fork_of(tape, plan)
        names = other_instrumentors.recorded(start_of(tape).get(a.PLAYHEAD_RUN_INSTRUMENTORS))
    else:
        names = _chosen()
    recording = start_recording(configure=_configure if _is_configured() else None, others=names)
    other_instrumentors.load(names)
    return recording


def _chosen() -> list[str]:
    try:
        return other_instrumentors.chosen(settings_of_process().instrumentors)
    except ConfigurationError:
        return []  # nothing is recorded; `start_recording` reports it


def _is_configured() -> bool:
    """Whether any variable configures the SDK; the value ``none`` (no exporter) does not count."""
    return any(name.startswith("OTEL_") and value != "none" for name, value in os.environ.items())


def _configure() -> None:
    from opentelemetry.sdk._configuration import (
        _OTelSDKConfigurator,  # pyright: ignore[reportPrivateUsage]
    )

    _OTelSDKConfigurator().configure()
