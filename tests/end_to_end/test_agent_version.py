"""The version of an agent is the commit that it is of, where nothing else says one."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.starting.home import Home

COMMIT = "0123456789abcdef0123456789abcdef01234567"

AGENT = """
import playhead

@playhead.tool(effect="read")
def look(number):
    return number

look(81)
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home in which an agent lies in a repository of its own."""
    git = tmp_path / "agents" / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "refs" / "heads" / "main").write_text(f"{COMMIT}\n")
    (tmp_path / "agents" / "agent.py").write_text(AGENT)
    return Home(tmp_path, {})


@pytest.mark.parametrize(
    ("variable", "version"),
    [("", COMMIT), ("service.version=1.2,service.name=desk", "1.2")],
)
def test_a_run_has_the_version_of_its_agent(home: Home, variable: str, version: str):
    environ = {**home.bare, **({"OTEL_RESOURCE_ATTRIBUTES": variable} if variable else {})}
    done = home.playhead("record", "agents/agent.py", env=environ)
    assert done.returncode == 0, done.stderr
    [run] = home.runs(f"version:{version}")
    assert run["version"] == version


def test_outside_of_a_repository_there_is_none(home: Home):
    (home.folder / "agent.py").write_text(AGENT)
    assert home.playhead("record", "agent.py").returncode == 0
    [run] = home.runs()
    assert run["version"] == ""
