"""Record calls of `grpc.aio`, below all Python code of the library.

The patch replaces the class of channels that the library wraps. The object that the library holds as a
call (`aio_call`) replaces the call of the core. It holds back status and metadata until the gate permits
them, so that the program never sees them early. A `LiveCall` (`aio_live`) gets them from a call of the
core. If a tape or an operator may answer instead, a `RecordedCall` (`aio_recorded`) is used.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from playhead_instrumentation.libraries.common.recording import recording_requests_of_program
from playhead_instrumentation.libraries.grpc.aio_call import AioCall, AioRequest
from playhead_instrumentation.libraries.grpc.aio_live import LiveCall
from playhead_instrumentation.libraries.grpc.aio_recorded import RecordedCall
from playhead_instrumentation.libraries.grpc.exchange import Channel
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.patching.patches import PATCHES, required


def patch(module: ModuleType) -> None:
    """Make the library use our subclass of channels."""
    core: Any = required(module, "cygrpc")
    channel: Any = required(core, "AioChannel")
    if hasattr(channel, "__playhead__"):
        return
    required(channel, "call")
    AioCall.core = core
    PATCHES.put(core, "AioChannel", type("AioChannel", (_AioChannel, channel), {"__playhead__": True}))


class _AioChannel(Channel):
    """Channel of the core whose calls are recorded or replayed."""

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Make a call. It begins later."""
        original: Any = super()
        return PATCHES.call(self._called, original.call, *args, **kwargs)

    def _called(self, call: Any, method: bytes, deadline: Any, *more: Any) -> Any:
        session = recording_requests_of_program()
        if session is None:
            return call(method, deadline, *more)
        request = AioRequest(session, self.playhead_target, method.decode(), deadline)

        def make() -> Any:
            with Shadow():
                return call(method, request.deadline, *more)

        if session.driver.closed or session.driver.control is not None:
            return RecordedCall(request, make)
        return LiveCall(request, make())
