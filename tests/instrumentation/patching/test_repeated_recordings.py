"""A process may be recorded many times: no recording leaves a layer that the next adds again."""

from __future__ import annotations

import http.client
import logging
import random
import subprocess
import uuid

import httpx
import pytest
import urllib3
from support.tapes.sessions import record

from playhead_core.boundaries import LEVELS
from playhead_core.settings import Settings
from playhead_instrumentation.patching.patches import PATCHES

IMPORTED = http.client, httpx, random, subprocess, urllib3, uuid


def layers() -> dict[str, int]:
    """How many layers each patched function has."""
    return {
        f"{getattr(target._owner, '__name__', target._owner)}.{target._name}": len(target._layers)
        for target in PATCHES._targets.values()
    }


@pytest.mark.parametrize("level", LEVELS)
def test_layers_do_not_pile_up(level: str):
    settings = Settings(quiet=True, level=level)
    counts = []
    for _ in range(3):
        record(lambda: logging.getLogger("program").warning("said"), settings=settings)
        counts.append(layers())
    grown = {name: count for name, count in counts[2].items() if count > counts[0].get(name, count)}
    assert grown == {}
