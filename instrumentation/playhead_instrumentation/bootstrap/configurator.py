"""Entry point ``opentelemetry_configurator``: configures the SDK and starts the recording."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from opentelemetry.sdk._configuration import (
    _OTelSDKConfigurator,  # pyright: ignore[reportPrivateUsage]
)
from opentelemetry.sdk.environment_variables import OTEL_CONFIG_FILE

from playhead_instrumentation.bootstrap.early import switched_off

AUTOMATIC = "auto_instrumentation_version"
"""Argument that ``opentelemetry-instrument`` passes; it then loads the instrumentors."""


class PlayheadConfigurator(_OTelSDKConfigurator):
    """Configures the SDK by the ``OTEL_*`` variables, and starts the recording around it."""

    def _configure(self, **kwargs: Any) -> None:
        automatic = AUTOMATIC in kwargs
        if os.environ.get(OTEL_CONFIG_FILE):
            kwargs = {}  # the file must be the only source; the SDK warns about others
        if switched_off():
            super()._configure(**kwargs)
            return
        from playhead_instrumentation.bootstrap.sdk import other_instrumentors
        from playhead_instrumentation.bootstrap.start import start_recording

        named = [one.name for one in other_instrumentors.installed()] if automatic else []
        start_recording(configure=partial(super()._configure, **kwargs), others=named)
