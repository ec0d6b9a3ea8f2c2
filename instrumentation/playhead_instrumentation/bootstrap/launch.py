"""A process that was not started by ``opentelemetry-instrument``, set up as if it had been."""

from __future__ import annotations

import os
from pathlib import Path

from opentelemetry.instrumentation.auto_instrumentation import initialize

from playhead_instrumentation.bootstrap.recording import Recording
from playhead_instrumentation.bootstrap.start import fork_of, start_recording
from playhead_semconv.plans import Plan
from playhead_semconv.seams import Tape

SITE = str(Path(__file__).parent / "site")
"""A folder that makes Python children of this process record too."""


def launch(tape: Tape | None = None, plan: Plan | None = None) -> Recording | None:
    """Configure the SDK, load every instrumentor, record; this process and its Python children.

    ``tape`` and ``plan``: it is a fork.
    """
    path = [SITE, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(path))
    if tape is not None and plan is not None:
        fork_of(tape, plan)
    initialize()
    return start_recording()
