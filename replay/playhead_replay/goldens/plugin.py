"""The pytest plugin: ``def test_refund(tape): run = tape.replay("refund")``.

Nothing goes live unless ``--playhead-record`` or ``--playhead-live`` is given. What a test did to
goldens is stored in its report, so that it also works under xdist and in the JUnit file.
"""

from __future__ import annotations

import os

import pytest

from playhead_replay.goldens.fixture import WARM, Tapes
from playhead_replay.goldens.summary import GoldenSummary
from playhead_replay.runner.known_imports import KnownImports
from playhead_replay.runner.warm_processes import Warm

ALLOWED_IN_CI = {"record": "PLAYHEAD_PYTEST_RECORD", "live": "PLAYHEAD_PYTEST_LIVE"}
"""Variables that allow options to go live under CI."""

IMPORTS = "playhead/imports"
"""What the programs of goldens import, in pytest's cache."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, all of which begin with ``--playhead``."""
    group = parser.getgroup("playhead", "goldens of LLM agents")
    group.addoption(
        "--playhead-update",
        action="store_true",
        help="accept changed outcomes of goldens; nothing goes live",
    )
    group.addoption(
        "--playhead-record",
        choices=("missing", "all"),
        help="go live and record the goldens of the selected tests: those that are missing, or all",
    )
    group.addoption(
        "--playhead-live",
        choices=("model",),
        help="send model requests again in the selected tests; the goldens answer everything else",
    )
    group.addoption(
        "--playhead-prune",
        action="store_true",
        help="delete goldens that no test used; only after a whole run that passed",
    )
    group.addoption(
        "--playhead-trace-id",
        metavar="ID",
        help="replay this run of the store instead of the golden",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; refuse to go live unless it was requested."""
    config.addinivalue_line(
        "markers",
        "playhead(name, command=…, cwd=…, unused='fail'|'allow', outcome='same'|'changed', "
        "edited='fail'|'allow', allow=[HOST, …], checks=[FILE, …], headers={NAME: VALUE}): the golden "
        "of a test, what may differ, what has to hold, what a request is asked with",
    )
    cache = _cache(config)
    config.stash[WARM] = Warm(KnownImports.read(None if cache is None else cache.get(IMPORTS, None)))
    for option, variable in ALLOWED_IN_CI.items():
        if config.getoption(f"--playhead-{option}") and _truth("CI") and not _truth(variable):
            raise pytest.UsageError(
                f"--playhead-{option} goes live, which is refused under CI unless {variable}=1"
            )
    if config.getoption("--playhead-live") and config.getoption("--playhead-update"):
        raise pytest.UsageError(
            "--playhead-update accepts what goldens answer: to keep what models answer now,"
            " record again with --playhead-record=all"
        )


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the warm processes; keep what was imported for the next session, in pytest's cache."""
    warm = config.stash.get(WARM, None)
    if warm is None:
        return
    warm.close()
    cache = _cache(config)
    if warm.known.changed and cache is not None:
        cache.set(IMPORTS, warm.known.stored())


def _cache(config: pytest.Config) -> pytest.Cache | None:
    """What pytest keeps between sessions; None where it is told to keep nothing."""
    return getattr(config, "cache", None)


def _truth(name: str) -> bool:
    return os.environ.get(name, "").lower() not in ("", "0", "false", "no")


@pytest.fixture
def tape(request: pytest.FixtureRequest) -> Tapes:
    """The goldens of this test: ``tape.replay()`` or ``tape.replay("NAME")``."""
    return Tapes(request)


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Register the summary; not in a worker of xdist, because reports arrive at the controller."""
    if not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(GoldenSummary(session.config), "playhead-summary")
