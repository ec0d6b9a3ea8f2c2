"""What a replay at level ``exchanges`` needs of the Claude Agent SDK, which talks to a command line.

The SDK gives each of its requests a random id, and the command line repeats it in its answer. So the
ids are recorded, and the exchange of the process has its input as well as its output. The higher levels
record the input of every child, and the entropy and files of the program.
"""

from __future__ import annotations

import functools
import os
import types
from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.common.recording import recording
from playhead_instrumentation.libraries.subprocess.observed import Observed
from playhead_instrumentation.libraries.subprocess.start import OBSERVED
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.session.session import current

_urandom: Final = os.urandom


def patch_requests(module: ModuleType) -> None:
    """Record the ids of requests, unless all entropy is recorded."""
    session = current()
    if session is not None and not session.has("entropy"):
        own = types.ModuleType("os", os.__doc__)
        own.__dict__.update(required(module, "os").__dict__)
        own.__dict__["urandom"] = _drawn
        PATCHES.put(module, "os", own)


def _drawn(size: int) -> bytes:
    live = functools.partial(_urandom, size)
    session = recording()
    return live() if session is None else session.driver.reads.read(REQUEST_ID, live)


REQUEST_ID: Final = "entropy/claude_agent_sdk.request_id"


def patch_transport(module: ModuleType) -> None:
    """Record where the command line is, and what is sent to it."""
    transport = required(module, "SubprocessCLITransport")
    PATCHES.around(transport, "_find_cli", _find_cli)
    PATCHES.around(transport, "connect", _connect)


def _find_cli(find: Any, transport: Any) -> Any:
    session = recording()
    if session is None or session.has("files"):
        return find(transport)
    return session.driver.reads.read("file_search/claude", functools.partial(find, transport))


async def _connect(connect: Any, transport: Any) -> None:
    await connect(transport)
    observed = _observed(transport)
    if observed is not None and not isinstance(transport._stdin_stream, ObservedInput):
        transport._stdin_stream = ObservedInput(transport._stdin_stream, observed)


def _observed(transport: Any) -> Observed | None:
    """Return the exchange of the command line; None if it is not observed."""
    process: Any = getattr(getattr(transport, "_process", None), "_process", None)
    child: Any = getattr(getattr(process, "_transport", None), "_proc", None)
    return getattr(child, "__dict__", {}).get(OBSERVED)


class ObservedInput:
    """The stream to a child, whose exchange gets what goes through it."""

    def __init__(self, stream: Any, child: Observed) -> None:
        self._stream: Final = stream
        self._child: Final = child

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def send(self, text: str) -> None:
        """Send ``text``. Raises what the stream raises."""
        self._child.wrote(text.encode())
        await self._stream.send(text)
