"""What is installed is said as `importlib.metadata` says it."""

import sys
from importlib import metadata
from pathlib import Path

from playhead_core.process.installed_packages import installed


def test_it_agrees_with_importlib():
    theirs = {f"{one.metadata['Name']}=={one.version}" for one in metadata.distributions()}
    assert installed(sys.path) == sorted(theirs, key=str.lower)


def test_old_and_broken_metadata(tmp_path: Path):
    (tmp_path / "old-1.egg-info").mkdir()
    (tmp_path / "old-1.egg-info" / "PKG-INFO").write_text(
        "Metadata-Version: 1.0\nName: old\nVersion: 1\n"
    )
    (tmp_path / "older-2.egg-info").write_text("Metadata-Version: 1.0\nName: older\nVersion: 2\n\nText")
    (tmp_path / "gone.dist-info").mkdir()
    (tmp_path / "torn.dist-info").mkdir()
    (tmp_path / "torn.dist-info" / "METADATA").write_bytes(b"Name: torn\n\nVersion: 3\n")
    (tmp_path / "odd.dist-info").mkdir()
    (tmp_path / "odd.dist-info" / "METADATA").write_bytes(b"Name: odd\xff\nVersion: 4\n")
    assert installed([str(tmp_path), str(tmp_path / "nowhere")]) == [
        "odd\ufffd==4",
        "old==1",
        "older==2",
    ]
