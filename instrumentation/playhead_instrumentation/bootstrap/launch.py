"""A process that was not started by ``opentelemetry-instrument``, set up as if it had been."""

from __future__ import annotations

import os

from opentelemetry.instrumentation.auto_instrumentation import initialize

from playhead_instrumentation.bootstrap.children import SITE
from playhead_instrumentation.bootstrap.recording import Recording
from playhead_instrumentation.bootstrap.start import fork_of, start_recording
from playhead_semconv.plans import Plan
from playhead_semconv.tapes import IndexedTape


def launch(tape: IndexedTape | None = None, plan: Plan | None = None) -> Recording | None:
    """Configure the SDK, load every instrumentor, record; this process and its Python children.

    ``tape`` and ``plan``: it is a fork.
    """
    path = [SITE, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(path))
    if tape is not None and plan is not None:
        fork_of(tape, plan)
    initialize()
    return start_recording()
