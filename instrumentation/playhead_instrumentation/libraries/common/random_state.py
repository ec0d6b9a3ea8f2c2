"""Record the state of the shared generator of `random`, once per process. Nothing is patched."""

from __future__ import annotations

import functools
import random
from typing import Any, Final

from playhead_instrumentation.patching.patches import Patches, required
from playhead_instrumentation.session.session import Session

STATE: Final = "entropy/random.state"


def watch(patches: Patches, session: Session) -> None:
    """Put the state on the tape; in a replay, set the generator to the recorded state."""
    patches.attempt("random state", functools.partial(restore, session))


def restore(session: Session) -> None:
    """As `watch`; also used after a fork, because Python seeds the generator again there."""
    shared: Any = required(random, "_inst")

    def state() -> list[Any]:
        version, words, gauss = shared.getstate()
        return [version, b"".join(word.to_bytes(4, "little") for word in words[:-1]), words[-1], gauss]

    version, packed, place, gauss = session.driver.reads.read(STATE, state)
    if session.driver.closed:
        words = (int.from_bytes(packed[at : at + 4], "little") for at in range(0, len(packed), 4))
        shared.setstate((version, (*words, place), gauss))
