"""Draws span ids from a separate generator, not from the one that the program may have seeded."""

from __future__ import annotations

import os
import random
from types import ModuleType

from playhead_instrumentation.patching.patches import PATCHES, Patches, required

SEED_BYTES = 32

_urandom = os.urandom


def watch(patches: Patches) -> None:
    """Give OpenTelemetry its own generator."""
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
