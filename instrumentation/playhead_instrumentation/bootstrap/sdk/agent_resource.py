"""Gives a resource without a service name that of the agent; without a version, the VCS revision."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

from opentelemetry.sdk.resources import Resource

from playhead_instrumentation.patching.patches import Patches
from playhead_semconv import attributes as a

log = logging.getLogger(__name__)

UNNAMED = "unknown_service"
"""Beginning of the service name that the SDK gives where none is set."""


def name_services(patches: Patches, agent: Callable[[], str], version: Callable[[], str]) -> None:
    """Make `Resource.create` use the name and version of the ``agent`` where the program says none."""
    create: Any = Resource.create

    @functools.wraps(create)
    def created(*args: Any, **kwargs: Any) -> Any:
        resource = create(*args, **kwargs)
        try:
            said = resource.attributes
            more: dict[str, str] = {}
            if str(said.get(a.SERVICE_NAME, UNNAMED)).startswith(UNNAMED):
                more[a.SERVICE_NAME] = agent()
            if not said.get(a.SERVICE_VERSION):
                more[a.SERVICE_VERSION] = version()
            more = {name: value for name, value in more.items() if value}
            return resource.merge(Resource(more)) if more else resource
        except Exception:
            log.debug("playhead could not name a service", exc_info=True)
        return resource

    patches.put(Resource, "create", staticmethod(created))
