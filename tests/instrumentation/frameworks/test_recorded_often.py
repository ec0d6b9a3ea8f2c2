"""Twenty recordings under load have the same tree, and the same requests between agents."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from instrumentation.frameworks import test_langgraph, test_openai_agents
from instrumentation.frameworks.conftest import Recorded, names
from support.outside.load import busy_processors

TIMES = 20
PROGRAMS: dict[str, tuple[Any, str, dict[str, str]]] = {
    "hand-offs, agents as tools": (
        test_openai_agents,
        "/responses",
        {"OPENAI_AGENTS_DISABLE_TRACING": "0"},
    ),
    "nested graphs, parallel branches": (test_langgraph, "/chat/completions", {}),
}


def seen(recorded: Recorded) -> tuple[list[Any], list[Any]]:
    """The tree of a recording, and the edges between its agents."""
    edges = json.loads(recorded.home.playhead("agents", "last", "--json").stdout)["edges"]
    channels = sorted((one["source"], one["target"], one["channel"], one["requests"]) for one in edges)
    return names(recorded.spans), channels


@pytest.mark.acceptance
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("program", PROGRAMS)
def test_twenty_recordings_are_the_same(record: Callable[..., Recorded], program: str):
    tests, path, environ = PROGRAMS[program]
    with busy_processors():
        found = [seen(record(tests.PROGRAM, path, tests.answer, **environ)) for _ in range(TIMES)]
    assert found[0][1]
    assert [one == found[0] for one in found] == [True] * TIMES
