"""Bounds the requests of stock exporters in bytes, not only in spans."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

from opentelemetry.sdk.trace import export
from opentelemetry.util._importlib_metadata import (
    entry_points,  # pyright: ignore[reportUnknownVariableType]
)

from playhead_instrumentation.patching.patches import PATCHES

GROUP = "playhead_bounded_exporter"

log = logging.getLogger(__name__)


def bound_exporters() -> None:
    """Make every `BatchSpanProcessor` export through the byte-bounded wrapper from now on.

    Spans with whole messages would otherwise make requests that a receiver refuses, and the stock
    exporter then drops the whole batch. Does nothing where no wrapper is installed. The wrapper is
    loaded when such a processor is made, which few programs do.
    """
    PATCHES.around(export.BatchSpanProcessor, "__init__", _bounded)


def _bounded(init: Any, processor: Any, span_exporter: Any, *args: Any, **kwargs: Any) -> None:
    bounded = _wrapper()
    exporter = span_exporter if bounded is None else bounded(span_exporter)
    init(processor, exporter, *args, **kwargs)


def bound_existing(processor: Any) -> None:
    """Bound a batch processor that already exists."""
    bounded = _wrapper()
    batch = getattr(processor, "_batch_processor", None)
    if bounded is not None and isinstance(processor, export.BatchSpanProcessor):
        exporter = getattr(batch, "_exporter", None)
        if batch is not None and exporter is not None:
            batch._exporter = bounded(exporter)


@functools.cache
def _wrapper() -> Callable[[Any], Any] | None:
    for entry in entry_points(group=GROUP):
        try:
            kind: Any = entry.load()
        except Exception:
            log.warning("playhead could not load %s", entry.value, exc_info=True)
            continue

        def wrap(exporter: Any, kind: Any = kind) -> Any:
            return exporter if isinstance(exporter, kind) else kind(exporter)

        return wrap
    return None
