import json
from pathlib import Path

from support.starting.cli import CommandLine

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
        f"error[usage]: a golden exists at {tmp_path}/refund.tape",
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


def test_golden_ls_says_what_each_is_kept_for(playhead: CommandLine, refund_1: str, tmp_path: Path):
    folder = ("--dir", str(tmp_path / "goldens"))
    empty = playhead("golden", "ls", *folder)
    assert (empty.out, empty.err) == ("", f"playhead: no goldens in {tmp_path}/goldens\n")
    expect = ("--expect", "status=success", "--expect", "calls.search<=1")
    words = ("golden", "add", "refund-1", *folder)
    made = playhead(*words, "--name", "refund", "--description", "No order was found.", *expect)
    assert "this run does not meet: status = success; it has failure" in made.err
    assert "this run does not meet: calls.search <= 1; it has 4" in made.err
    assert playhead(*words, "--name", "test_x/plain", "--compressed").status == 0
    (tmp_path / "goldens" / "torn.tape").write_text("playhead tape, text 1\n{")
    listed = playhead("golden", "ls", *folder)
    assert [line.split()[0] for line in listed.lines] == ["NAME", "refund", "test_x/plain", "torn"]
    assert "status=success, calls.search<=1" in listed.lines[1]
    assert listed.lines[1].endswith("No order was found.")
    refund, plain, torn = json.loads(playhead("golden", "ls", "--json", *folder).out)["goldens"]
    assert (refund["steps"], refund["program"]) == (11, "agent.py --order 81")
    assert refund["expect"] == ["status=success", "calls.search<=1"]
    assert (plain["expect"], plain["problem"]) == ([], None)
    assert torn["problem"] and torn["steps"] is None


def test_golden_rm_asks_and_removes(playhead: CommandLine, refund_1: str, tmp_path: Path):
    folder = ("--dir", str(tmp_path))
    assert playhead("golden", "add", "refund-1", "--name", "test_x/refund", *folder).status == 0
    path = tmp_path / "test_x" / "refund.tape"
    asked = playhead("golden", "rm", "test_x/refund", *folder)
    assert asked.status == 2 and "confirm with --yes" in asked.err and path.exists()
    done = playhead("golden", "rm", "test_x/refund", "--yes", "--json", *folder)
    assert json.loads(done.out)["removed"] == [str(path)]
    assert not path.parent.exists()
    missing = playhead("golden", "rm", "test_x/refund", "--yes", *folder)
    assert missing.err.startswith(f"error[usage]: no golden test_x/refund in {tmp_path}")
    assert playhead("golden", "rm", "../refund", "--yes", *folder).status == 2


def test_a_condition_that_is_none_is_refused_before_anything_is_written(
    playhead: CommandLine, refund_1: str, tmp_path: Path
):
    words = ("golden", "add", "--name", "refund", "--dir", str(tmp_path), "--expect", "printd~x")
    done = playhead(*words)
    assert done.status == 2 and "did you mean printed?" in done.err
    assert list(tmp_path.glob("*.tape")) == []
