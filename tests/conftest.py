"""What holds for every test."""

import faulthandler
import gc
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, settings

# A shell that runs the suite in the background ignores SIGINT, and so would each program of the tests.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Whom clients trust by default. Each reads that anew: a hundred authorities take longer than most tests.
# The key of this one is gone.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).parent / "support" / "nobody.pem")

# LangGraph's packages stand apart: a plugin of pytest is among them, which every program would load.
sys.path.append(str(Path(__file__).parents[1] / ".venv" / "apart-langgraph"))

# A quarter of the collection of tests would be the collection of garbage, of which there is none.
gc.disable()

# How long an example takes says how busy the machine is. A test takes what holds where it is defined.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

# So does how long an answer takes. These limits are those of every request that names none.
limits = httpx.get.__kwdefaults__["timeout"]
limits.connect = limits.read = limits.write = limits.pool = 60.0


def pytest_collection_finish() -> None:
    """All SDKs are imported now, and are never garbage: no collection of a test looks at them again."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """End a worker whose test hangs although its time is over, for example in an ``__exit__``.

    The test fails, its stacks are printed, and a new worker goes on with the others.
    """
    limit = item.get_closest_marker("timeout")
    seconds = float(limit.args[0] if limit and limit.args else item.config.getini("timeout"))
    faulthandler.dump_traceback_later(2 * seconds, exit=True, file=sys.__stderr__)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-outputs", action="store_true", help="Write the outputs of tests/cli/outputs anew."
    )
