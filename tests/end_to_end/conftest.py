"""What several files look at, recorded once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.starting.home import Home

from playhead_cli.demo.provider import Provider

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="session")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Three example agents recorded, with their provider gone; their scripts are in the folder."""
    with Provider(pace_s=0.002) as provider:
        home = Home(tmp_path_factory.mktemp("examples"), provider.environment)
        for agent in ("weather", "research", "refund"):
            script = shutil.copy(EXAMPLES / f"{agent}_agent.py", home.folder)
            done = home.playhead("record", script)
            assert done.returncode == 0, done.stderr
            assert f"playhead: {agent}_agent-1 success, " in done.stderr
    yield home
