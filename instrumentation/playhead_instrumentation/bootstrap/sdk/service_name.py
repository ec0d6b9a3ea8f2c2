"""Gives a resource without a service name that of the agent."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

from opentelemetry.sdk.resources import Resource

from playhead_instrumentation.runtime.patching import Patches
from playhead_semconv import attributes as a

log = logging.getLogger(__name__)

UNNAMED = "unknown_service"
"""Beginning of the service name that the SDK gives where none is set."""


def name_services(patches: Patches, agent: Callable[[], str]) -> None:
    """Make `Resource.create` use the name of the ``agent`` where the SDK would name none."""
    create: Any = Resource.create

    @functools.wraps(create)
    def created(*args: Any, **kwargs: Any) -> Any:
        resource = create(*args, **kwargs)
        try:
            name = agent()
            if name and str(resource.attributes.get(a.SERVICE_NAME, UNNAMED)).startswith(UNNAMED):
                return resource.merge(Resource({a.SERVICE_NAME: name}))
        except Exception:
            log.debug("playhead could not name a service", exc_info=True)
        return resource

    patches.put(Resource, "create", staticmethod(created))
