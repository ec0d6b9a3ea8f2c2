"""Messages of the exporter to the user: through logging, which falls back to stderr, once per matter."""

from __future__ import annotations

import logging

from playhead_semconv.errors import PlayheadError
from playhead_semconv.untrusted.shown_text import visible

logger = logging.getLogger("playhead.exporter")


class DeliveryNotices:
    """Reports each matter once, until it is over. ``quiet``: errors only."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._said: set[str] = set()

    def fail(self, matter: str, problem: PlayheadError) -> None:
        """Report a problem that somebody must fix."""
        if matter not in self._said:
            self._said.add(matter)
            logger.error("%s", visible(str(problem)))

    def say(self, matter: str, text: str) -> None:
        """Report something that recovers by itself, but should be known."""
        if matter not in self._said:
            self._said.add(matter)
            if not self._quiet:
                logger.warning("playhead: %s", visible(text))

    def over(self, matter: str, text: str = "") -> None:
        """The matter is settled; ``text`` is reported if its beginning was."""
        if matter in self._said:
            self._said.discard(matter)
            if text and not self._quiet:
                logger.warning("playhead: %s", visible(text))
