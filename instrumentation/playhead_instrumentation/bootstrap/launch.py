"""A process that was not started by ``opentelemetry-instrument``, set up as if it had been."""

from __future__ import annotations

import os
from pathlib import Path

from opentelemetry.instrumentation.auto_instrumentation import initialize

from playhead_instrumentation.bootstrap.recording import Recording
from playhead_instrumentation.bootstrap.start import start_recording

SITE = str(Path(__file__).parent / "site")
"""A folder that makes Python children of this process record too."""


def launch() -> Recording | None:
    """Configure the SDK, load every instrumentor, record; this process and its Python children."""
    path = [SITE, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(path))
    initialize()
    return start_recording()
