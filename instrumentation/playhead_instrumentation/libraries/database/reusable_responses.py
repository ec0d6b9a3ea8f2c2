"""Keep responses that later requests reuse: how a connection was opened, and what was prepared on it.

In a service a connection outlives the request that opened it, and a replay of another request has to
open it again. So a request that uses an earlier response records that response once more on its own
tape: the response is *reusable*.
"""

from __future__ import annotations

import weakref
from typing import Any, Final

from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.common.message_exchange import MessageRequest
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.recorder.gate import running_loop
from playhead_instrumentation.session.session import Session
from playhead_semconv import attributes as a

STANDS: Final = "connect"
"""Kind of reusable exchanges. They are counted separately: a replay may need more or fewer of them."""

log = Log(__name__)


def marks() -> dict[str, Any]:
    """Return the attributes of a request whose response is reusable."""
    # Which thread takes a connection from a pool is chance; among tasks of one loop it is not.
    return {a.PLAYHEAD_ASK_STANDING: "program" if running_loop() is None else "service"}


class ReusableResponse:
    """A reusable response of a server, and the runs whose tapes already hold it."""

    def __init__(self, session: Session, request: MessageRequest) -> None:
        self.parts: list[bytes] = []
        self.request = request
        self._session = session
        root = root_lane()
        self._of_request = root.of_request
        self._known: weakref.WeakSet[lanes.Lane] = weakref.WeakSet((root,))

    def used(self) -> None:
        """Record the response for the request that uses it. Never raises."""
        if not self._of_request:
            return  # from before the first request: every request has it on its tape
        root = root_lane()
        if root in self._known:
            return
        self._known.add(root)
        try:
            kind, key, body, details, effect = self.request
            call = self._session.driver.open(kind, key, body, details, effect=effect)
            for data in self.parts:
                call.part(data, None)
            call.end("complete")
        except Exception:
            log.debug("playhead could not record on what a request rests", exc_info=True)


def root_lane() -> lanes.Lane:
    """Return the lane of the request, or of the program, to which the current lane belongs."""
    lane = lanes.current()
    while lane.parent is not None:
        lane = lane.parent
    return lane
