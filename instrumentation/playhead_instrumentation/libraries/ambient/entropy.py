"""Entropy: the program's draws from ``os.urandom`` and from what is built on it.

Values that cannot be computed are recorded: bytes of the system, seeds, names of temporary files, ids of
``uuid1``. Values that a generator computes from its seed are not. The exception are the draws of a
request from the module-wide generator, because earlier draws from it do not belong to the run of that
request. Draws of `secrets`, `ssl`, cryptography libraries and `random.SystemRandom` are on no tape,
unless the boundary ``secrets`` is chosen.
"""

from __future__ import annotations

import functools
import os
import random
import sys
import tempfile
import uuid
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.ambient.stand_ins import (
    AmbientEntropy,
    AmbientOf,
    noted,
    reads_of,
)
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.attribution import readers
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.patching.patches import PATCHES, Patches, calling, required
from playhead_instrumentation.recorder.reads import Reads
from playhead_instrumentation.session.session import Session

SEED_BYTES = 32

UUIDS = ("uuid1", "uuid4", "uuid6", "uuid7")
"""Functions of ``uuid_utils``, which does not get time and entropy from Python."""

_urandom: Final = os.urandom

on_draw: Callable[[str, tuple[Any, ...]], None] | None = None
"""Called with each draw from the shared generator: name of the function and its arguments."""


def watch(patches: Patches, session: Session) -> None:
    """Patch the sources of entropy."""
    readers.look_through_secrets(session.has("secrets"))
    patches.attempt("os.urandom", _cover_urandom)
    patches.attempt("random", _cover_random)
    patches.attempt("random draws", _cover_draws)
    patches.attempt("tempfile", _cover_tempfile)
    patches.attempt("uuid", functools.partial(_cover_uuids, uuid, ("uuid1",)))
    patches.when_imported("uuid_utils", "uuid_utils", lambda module: _cover_uuids(module, UUIDS))
    patches.when_imported(
        "uuid_utils.compat", "uuid_utils.compat", lambda module: _cover_uuids(module, UUIDS)
    )


def _cover_urandom() -> None:
    if isinstance(os.urandom, AmbientOf):
        return

    def drawn(reads: Reads, live: Any, size: Any) -> Any:
        if readers.draws_secrets(calling()):
            return noted(reads, live(size))
        return reads.read("entropy/os.urandom", functools.partial(live, size))

    covered = AmbientEntropy(_urandom, drawn)
    covered.__module__ = "os"
    PATCHES.put(os, "urandom", covered)
    getrandom: Any = getattr(os, "getrandom", None)
    if getrandom is not None:

        def system(reads: Reads, live: Any, *arguments: Any, **more: Any) -> Any:
            if readers.draws_secrets(calling()):
                return noted(reads, live(*arguments, **more))
            return reads.read("entropy/os.getrandom", functools.partial(live, *arguments, **more))

        asked = AmbientEntropy(getrandom, system)
        asked.__module__ = "os"
        PATCHES.put(os, "getrandom", asked)
    if getattr(random, "_urandom", None) is _urandom:
        PATCHES.put(random, "_urandom", covered)


def _cover_random() -> None:
    shared = required(random, "_inst")
    if not PATCHES.covers(random.Random, "seed"):
        PATCHES.around(random.Random, "seed", _seed)
        PATCHES.put(random, "seed", shared.seed)


def _seed(seed: Any, generator: Any, a: Any = None, version: int = 2) -> None:
    reads = reads_of(calling()) if a is None else None
    if reads is not None:
        a = reads.read("entropy/random.seed", lambda: _urandom(SEED_BYTES))
        version = 2
    seed(generator, a, version)


def _cover_draws() -> None:
    shared = required(random, "_inst")
    for name in ("random", "getrandbits"):
        original = required(shared, name)
        if not isinstance(original, AmbientOf):
            covered = AmbientOf(original, functools.partial(_drawn, f"entropy/random.{name}"))
            covered.__module__ = "random"
            # All other functions of the module draw through these two.
            PATCHES.put(shared, name, covered)
            PATCHES.put(random, name, covered)


def _drawn(kind: str, reads: Reads, live: Any, *arguments: Any) -> Any:
    if on_draw is not None:
        on_draw(kind.rpartition(".")[2], arguments)
    if not lanes.current().of_request:
        return reads.drew(live(*arguments))
    return reads.read(kind, functools.partial(live, *arguments))


def _cover_tempfile() -> None:
    PATCHES.around(required(tempfile, "_RandomNameSequence"), "__next__", _named)


def _named(following: Any, names: Any) -> str:
    asks = calling()
    # Names that only probe for a writable folder are drawn once per process.
    probing = asks is not None and asks.f_code.co_name == "_get_default_tempdir"
    reads = None if probing else reads_of(asks)
    if reads is None:
        return following(names)
    return reads.read("entropy/tempfile.name", functools.partial(following, names))


def patch_numpy(module: ModuleType) -> None:
    """Record the seeds of numpy's generators: drawn from `secrets`, but not secret."""
    PATCHES.around(module, "randbits", _randbits)


def _randbits(randbits: Any, k: int) -> int:
    reads = reads_of(calling())
    if reads is None:
        return randbits(k)
    size = (k + 7) // 8
    drawn = reads.read("entropy/numpy.randbits", lambda: randbits(k).to_bytes(size, "big"))
    return int.from_bytes(drawn, "big")


def patch_kombu(module: ModuleType) -> None:
    """Record the names of clients of Celery, which kombu makes of addresses in memory."""
    PATCHES.around(module, "generate_oid", _oid)


def _oid(generate: Any, *parts: Any) -> str:
    reads = reads_of(calling())
    if reads is None:
        return generate(*parts)
    return reads.read("entropy/kombu.oid", lambda: generate(*parts))


def _cover_uuids(module: ModuleType, names: tuple[str, ...]) -> None:
    for name in names:
        original: Any = getattr(module, name, None)
        if original is not None and not PATCHES.covers(module, name):
            kind = f"entropy/{module.__name__}.{name}"
            PATCHES.around(module, name, functools.partial(_identify, original, kind))


def _identify(original: Any, kind: str, make: Any, *args: Any, **kwargs: Any) -> Any:
    reads = None if args or kwargs else reads_of(calling())
    if reads is None:
        return make(*args, **kwargs)
    made: list[Any] = []

    def live() -> list[Any]:
        with Shadow():  # uuid1 may start a program to find the machine's address
            made.append(make())
        return [made[0].bytes, getattr(getattr(made[0], "is_safe", None), "value", None)]

    data, safe = reads.read(kind, live)
    return made[0] if made else _uuid(original, data, safe)


def _uuid(original: Any, data: bytes, safe: int | None) -> Any:
    if original.__module__ == "uuid_utils" or type(original).__name__ == "builtin_function_or_method":
        found: Any = sys.modules["uuid_utils"]
        return found.UUID(bytes=data)
    return uuid.UUID(bytes=data, is_safe=uuid.SafeUUID(safe))
