"""Whether the environment switches recording off. Checked before anything else is imported."""

from __future__ import annotations

import os

VARIABLES = ("PLAYHEAD_DISABLED", "OTEL_SDK_DISABLED")
"""Variables of which the first that is set counts, as for the setting ``disabled``."""

TRUE = ("1", "true", "yes", "on")


def switched_off() -> bool:
    """Whether recording is switched off. Invalid values are handled with the settings."""
    said = next(filter(None, map(os.environ.get, VARIABLES)), "")
    return said.lower() in TRUE
