"""Exclude requests from recording: health checks, and those that the settings exclude."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Generator
from typing import Any, Final

from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.inbound.exchange import InboundRequest
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.session.session import Session
from playhead_instrumentation.tracing.processor import UNRECORDED
from playhead_semconv import attributes as a

log = Log(__name__)

NONE: Final = "none"
"""Value of the setting that excludes nothing."""

DEFAULT: Final = r"^[a-z]+://[^/]*/(health|healthz|ready|readyz|livez|metrics|favicon\.ico)/?$"
"""The pattern used if no setting gives one."""

FRAMEWORKS: Final = ("fastapi", "starlette", "flask", "django", "falcon", "pyramid")
"""Packages whose applications have a variable of their own, from OpenTelemetry's instrumentors."""


class Excluded:
    """Decides which requests to one application are excluded."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._pattern: re.Pattern[str] | None = None
        self._of: Session | None = None

    def has(self, session: Session, asked: InboundRequest) -> bool:
        """Return whether this request is excluded. Never raises."""
        try:
            if self._of is not session:
                self._of = session  # look it up once, even if that fails
                self._pattern = pattern_of(self._app, session.settings.excluded_urls)
            return self._pattern is not None and self._pattern.search(_url(asked)) is not None
        except Exception:
            log.debug("playhead could not look whether a request is excluded", exc_info=True)
            return False


@contextlib.contextmanager
def unrecorded() -> Generator[None]:
    """Context manager: record nothing that runs inside, nor what it starts."""
    token = UNRECORDED.set(True)
    try:
        with lanes.Shadow():
            yield
    finally:
        with contextlib.suppress(ValueError):  # closed in another context than it ran in
            UNRECORDED.reset(token)


def pattern_of(app: Any, setting: str) -> re.Pattern[str] | None:
    """Return the pattern for ``app``: its framework's variable, the setting, or `DEFAULT`; None: none.

    A framework's variable that is not a list of regular expressions is reported in the log and skipped.
    """
    for name in dict.fromkeys(one.__module__.partition(".")[0] for one in type(app).__mro__):
        if name not in FRAMEWORKS:
            continue
        variable = f"OTEL_PYTHON_{name.upper()}_EXCLUDED_URLS"
        if given := os.environ.get(variable):
            try:
                return _compiled(given)
            except re.error as problem:
                log.warning("playhead: %s is not a list of regular expressions: %s", variable, problem)
        break
    return _compiled(setting)


def _compiled(setting: str) -> re.Pattern[str] | None:
    if setting.strip() == NONE:
        return None
    wanted = [one.strip() for one in setting.split(",") if one.strip()]
    return re.compile("|".join(wanted) or DEFAULT)


def _url(asked: InboundRequest) -> str:
    host = next((value for name, value in asked.headers if name.lower() == b"host"), b"")
    place = host.decode("latin-1") or str(asked.details.get(a.SERVER_ADDRESS, ""))
    return f"{asked.details.get(a.URL_SCHEME, 'http')}://{place}{asked.path}"
