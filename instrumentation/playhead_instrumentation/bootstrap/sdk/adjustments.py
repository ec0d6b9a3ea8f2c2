"""Adjustments of the OpenTelemetry SDK: size of export requests, service name, span ids.

* Stock exporters get requests that are bounded in bytes, not only in spans.
* A resource without a service name gets the agent's name; without a version, the VCS revision.
* Span ids come from a separate generator, not from the one that the program may have seeded.
* A forked process is described without threads: under gevent, the start of a thread would let the
  greenlets of the program continue in the child.
"""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

from opentelemetry.sdk import resources
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import export
from opentelemetry.util._importlib_metadata import (
    entry_points,  # pyright: ignore[reportUnknownVariableType]
)

from playhead_core.process.own_messages import Log
from playhead_instrumentation.patching.patches import PATCHES, Patches, required
from playhead_semconv import attributes as a

GROUP = "playhead_bounded_exporter"

log = Log(__name__)


def bound_exporters() -> None:
    """Make every `BatchSpanProcessor` export through the byte-bounded wrapper from now on.

    Spans with whole messages would otherwise make requests that a receiver refuses, and the stock
    exporter then drops the whole batch. Does nothing if no wrapper is installed. The wrapper is
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


UNNAMED = "unknown_service"
"""Prefix of the service name that the SDK sets by default."""


def name_services(patches: Patches, agent: Callable[[], str], version: Callable[[], str]) -> None:
    """Make `Resource.create` add ``agent`` as name and ``version``, unless the program sets them."""
    create: Any = Resource.create

    @functools.wraps(create)
    def created(*args: Any, **kwargs: Any) -> Any:
        resource = create(*args, **kwargs)
        try:
            present = resource.attributes
            more: dict[str, str] = {}
            if str(present.get(a.SERVICE_NAME, UNNAMED)).startswith(UNNAMED):
                more[a.SERVICE_NAME] = agent()
            if not present.get(a.SERVICE_VERSION):
                more[a.SERVICE_VERSION] = version()
            more = {name: value for name, value in more.items() if value}
            return resource.merge(Resource(more)) if more else resource
        except Exception:
            log.debug("playhead could not name a service", exc_info=True)
        return resource

    patches.put(Resource, "create", staticmethod(created))


def describe_forks_without_threads(patches: Patches) -> None:
    """Run the detectors that the SDK's fork hook asks for in the thread that forked."""
    patches.around(resources, "get_aggregated_resources", _in_this_thread)


def _in_this_thread(aggregate: Any, detectors: Any, *args: Any, **kwargs: Any) -> Resource:
    if not all(detector.is_process_dependent() for detector in detectors):
        return aggregate(detectors, *args, **kwargs)
    resource = aggregate([], *args, **kwargs)
    for detector in detectors:
        try:
            resource = resource.merge(detector.detect())
        except Exception:
            if detector.raise_on_error:
                raise
            log.warning("resource detector %s failed", detector, exc_info=True)
    return resource


SEED_BYTES = 32

_urandom = os.urandom


def separate_span_ids(patches: Patches) -> None:
    """Give OpenTelemetry a generator of its own, so that span ids do not change the program's draws."""
    patches.when_imported("opentelemetry.sdk.trace.id_generator", "span ids", _separate)


def _separate(generator: ModuleType) -> None:
    required(generator, "random")
    own = random.Random()

    def seed() -> None:
        own.seed(_urandom(SEED_BYTES))

    seed()
    if hasattr(os, "register_at_fork"):
        # In the parent too: the child may have drawn before its own handler reseeded it.
        os.register_at_fork(after_in_parent=seed, after_in_child=seed)
    PATCHES.put(generator, "random", own)
