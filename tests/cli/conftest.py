from pathlib import Path

import pytest
from support.starting.cli import CommandLine, refund, store_run
from support.starting.running import PATIENCE_S

from playhead_cli.doctor import checks, sdk_entry_points
from playhead_exporter.shipping import transports


@pytest.fixture
def playhead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    """The command line on an empty data directory. Whom the doctor asks may take their time."""
    for module, name in (
        (transports, "PROBE_TIMEOUT_S"),
        (checks, "PROBE_TIMEOUT_S"),
        (sdk_entry_points, "TIMEOUT_S"),
    ):
        monkeypatch.setattr(module, name, PATIENCE_S)
    return CommandLine(tmp_path / "data", capsys)


@pytest.fixture
def refund_1(playhead: CommandLine) -> str:
    """A stored run."""
    return store_run(playhead.data_dir, refund())
