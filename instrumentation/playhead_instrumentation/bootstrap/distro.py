"""Entry point ``opentelemetry_distro``."""

from __future__ import annotations

from typing import Any

from opentelemetry.instrumentation.dependencies import DependencyConflictError
from opentelemetry.instrumentation.distro import BaseDistro


class PlayheadDistro(BaseDistro):
    """Sets no variable: without ``OTEL_TRACES_EXPORTER`` no stock exporter is used."""

    def _configure(self, **kwargs: Any) -> None:
        return

    def load_instrumentor(self, entry_point: Any, **kwargs: Any) -> None:
        """Load one instrumentor. If it fails, the others are still loaded."""
        try:
            super().load_instrumentor(entry_point, **kwargs)
        except (ImportError, DependencyConflictError):
            raise  # the caller handles these and continues
        except Exception as problem:
            from playhead_instrumentation.patching.patches import PATCHES, log

            log.warning("instrumenting of %s failed", entry_point.name, exc_info=True)
            PATCHES.failed(entry_point.name, problem)
