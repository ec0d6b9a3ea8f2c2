"""What a replay says of packages that are not as they were recorded."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version
from pathlib import Path

from support.tapes.handmade import HandMade

from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_replay import Run
from playhead_replay.runner.environment import differences
from playhead_semconv import attributes as a


def told(folder: Path, imported: list[str], packages: list[str]) -> list[str]:
    made = HandMade().start(
        **{
            a.PLAYHEAD_RUN_PLATFORM: f"{sys.implementation.name} {sys.platform} {platform.machine()}",
            a.PLAYHEAD_RUN_PACKAGES: packages,
            a.PLAYHEAD_RUN_IMPORTED: imported,
        }
    )
    run = Run.of_tape(MemoryTape(made.exit().facts, made.instance))
    return list(differences(run.tape, run.command, folder, sys.executable))


def test_a_module_that_a_package_of_another_name_brings_is_there(tmp_path: Path):
    """`yaml` is of PyYAML; a package may be installed that is called as it is and brings nothing."""
    packages = ["yaml==1.0", f"PyYAML=={version('pyyaml')}"]
    assert told(tmp_path, ["yaml"], packages) == []


def test_a_module_that_is_nowhere_is_not_installed(tmp_path: Path):
    assert told(tmp_path, ["gone_for_good"], ["gone-for-good==1.2"]) == [
        "gone_for_good 1.2 is not installed here"
    ]


def test_another_version_is_said(tmp_path: Path):
    packages = ["PyYAML==0.1"]
    assert told(tmp_path, ["yaml"], packages) == [f"PyYAML was 0.1, now {version('pyyaml')}"]
