"""Who answers code that reads something of the surroundings: the driver, or the world unrecorded.

Asked by every stand-in of a function that reads: of a clock, of entropy, of the machine, of files.
Whose code it is that reads is said by `runtime.attribution.readers`.
"""

from __future__ import annotations

import logging
import sys
from types import FrameType
from typing import Final

from playhead_instrumentation.patching.attribution.readers import AGENT, MACHINERY, PLACES, by_agent
from playhead_instrumentation.patching.patches import PATCHES
from playhead_instrumentation.recorder.reads import Reads
from playhead_instrumentation.session.session import current

getframe: Final = sys._getframe  # pyright: ignore[reportPrivateUsage]
"""``getframe(depth)`` is the frame so many calls above; ValueError where there are not so many."""

log = logging.getLogger(__name__)


def reads_of_agent(depth: int) -> Reads | None:
    """Who answers the code ``depth`` frames above the caller; None: the world does, unrecorded.

    Never raises while recording.
    """
    try:
        return reads_of(getframe(depth + 1))
    except Exception:
        if not PATCHES.forgiving:
            raise
        log.debug("playhead could not see who reads", exc_info=True)
        return None


def reads_of(frame: FrameType | None) -> Reads | None:
    """The same for the code of a frame."""
    place = None if frame is None else PLACES.get(frame.f_code.co_filename)
    if place == MACHINERY or (place != AGENT and not by_agent(frame)):
        return None
    session = current()
    return None if session is None else session.driver.reads
