from pathlib import Path

import pytest
from support.starting.cli import CommandLine, refund, store_run


@pytest.fixture
def playhead(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """The command line on an empty data directory."""
    return CommandLine(tmp_path / "data", capsys)


@pytest.fixture
def refund_1(playhead: CommandLine) -> str:
    """A stored run."""
    return store_run(playhead.data_dir, refund())
