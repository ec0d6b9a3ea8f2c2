import json
from pathlib import Path

from support.cli import CommandLine

from playhead_replay.goldens import read_golden


def test_golden_add_writes_one_reviewable_file(playhead: CommandLine, refund_1: str, tmp_path: Path):
    folder = tmp_path / "goldens"
    done = playhead("golden", "add", "--name", "refund", "--dir", str(folder))
    assert done.status == 0
    assert done.err.startswith(f"playhead: wrote {folder}/refund.tape, ")
    assert (folder / "refund.tape").read_text().startswith("playhead tape, text 1\n")
    run, _ = read_golden(folder / "refund.tape")
    assert [exchange.key for exchange in run.exchanges][:1] == [
        "POST http://provider/v1/chat/completions"
    ]
    shown = playhead("show", str(folder / "refund.tape"))
    assert shown.lines[0].startswith("refund failure, ")


def test_golden_add_replaces_only_on_request(playhead: CommandLine, refund_1: str, tmp_path: Path):
    words = ("golden", "add", "refund-1", "--name", "refund", "--dir", str(tmp_path))
    assert playhead(*words).status == 0
    refused = playhead(*words)
    assert (refused.status, refused.err.splitlines()[0]) == (
        2,
        f"error[usage]: there is a golden at {tmp_path}/refund.tape",
    )
    done = playhead(*words, "--force", "--json")
    found = json.loads(done.out)
    assert found["path"] == str(tmp_path / "refund.tape")
    assert found["size_bytes"] == (tmp_path / "refund.tape").stat().st_size


def test_golden_add_stays_in_its_folder(playhead: CommandLine, refund_1: str, tmp_path: Path):
    for name in ("../out", "a/../../out", str(tmp_path / "out")):
        refused = playhead("golden", "add", "--name", name, "--dir", str(tmp_path / "goldens"))
        assert refused.status == 2
        assert refused.err.startswith(f"error[path-outside]: '{name}.tape' does not lie below ")
    assert not list(tmp_path.glob("**/out.tape"))
