import json
from pathlib import Path

import pytest
from support.starting.cli import CommandLine, store_run
from support.tapes.handmade import NOW_INSTANCE, NOW_TRACE, HandMade
from support.tapes.stage import Stage

from playhead_replay import write_tape_file


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = Stage(tmp_path)
    for name, value in stage.environ.items():
        monkeypatch.setenv(name, value)
    return stage


@pytest.fixture
def recorded(stage: Stage, playhead: CommandLine) -> str:
    return store_run(playhead.data_dir, stage.made(HandMade()))


def diverged(stage: Stage) -> None:
    made = HandMade(NOW_INSTANCE, NOW_TRACE)
    made.start(stage.script, str(stage.folder))
    made.chat()
    stage.leave(made.say("HELLO\n").exit(0))


def test_an_identical_replay_is_0(playhead: CommandLine, recorded: str):
    done = playhead("replay", recorded)
    assert (done.status, done.err) == (0, "")
    assert done.lines[0] == "exact 1/1  moved 0  changed 0  blocked 0  unused 0"
    assert done.lines[-1] == "identical (exit 0)"


def test_a_replay_that_diverges_is_1_and_says_where(playhead: CommandLine, stage: Stage, recorded: str):
    diverged(stage)
    done = playhead("replay")
    assert done.status == 1
    assert done.lines[-4:] == [
        "first divergence after step 1: stdout, line 1",
        "  - recorded: hello",
        "  + now:      HELLO",
        "diverged after step 1 (exit 1)",
    ]


def test_a_replay_that_is_blocked_is_3(playhead: CommandLine, stage: Stage, recorded: str):
    made = HandMade(NOW_INSTANCE, NOW_TRACE)
    made.start(stage.script, str(stage.folder))
    made.chat(b'{"model":"gpt-4.1"}', status=0, how="error", **{"playhead.fidelity": "blocked"})
    stage.leave(made.exit(1))
    done = playhead("replay", recorded, "--json")
    assert done.status == 3
    found = json.loads(done.out)
    assert (found["verdict"], found["exit_code"]) == ("blocked", 3)
    assert found["first_divergence"]["path"] == "$.model"
    assert (found["first_divergence"]["tape"], found["first_divergence"]["now"]) == (
        '"gpt-4o"',
        '"gpt-4.1"',
    )


def test_a_tape_file_is_a_run_too(playhead: CommandLine, stage: Stage, tmp_path: Path):
    path = tmp_path / "golden.tape"
    write_tape_file(path, stage.made(HandMade()).tape())
    done = playhead("replay", str(path), "--trust", "--python", str(stage.python), "--json")
    assert done.status == 0
    assert json.loads(done.out)["run"] == "golden"
    damaged = bytearray(path.read_bytes())
    damaged[-3] ^= 1
    path.write_bytes(damaged)
    refused = playhead("replay", str(path))
    assert refused.status == 1
    assert refused.err.startswith("error[tape-corrupt]: golden.tape is damaged at byte")


def test_what_cannot_be_replayed_is_2_with_the_reason(
    playhead: CommandLine, stage: Stage, recorded: str
):
    unknown = playhead("replay", "nightly-4")
    assert (unknown.status, unknown.err.split(":")[0]) == (2, "error[run-unknown]")
    stage.script.write_text("print('changed')\n")
    changed = playhead("replay", recorded)
    assert (changed.status, changed.out) == (2, "")
    assert changed.err.splitlines()[0] == (
        "error[script-changed]: agent.py differs from the tape's digest"
    )
    assert playhead("replay", recorded, "--force").status == 0


def test_what_the_program_printed_may_be_seen(playhead: CommandLine, recorded: str):
    assert playhead("replay", "--output").err == "said on stderr\nsaid on stdout\n"


def test_the_replays_tape_may_be_kept(playhead: CommandLine, recorded: str, tmp_path: Path):
    kept = tmp_path / "now.tape"
    assert playhead("replay", "--keep", str(kept)).status == 0
    assert playhead("show", str(kept)).lines[0].startswith("now success, 1 step")


def test_from_a_step_on_the_replay_is_shown(playhead: CommandLine, stage: Stage):
    made = stage.made(HandMade())
    recorded = store_run(playhead.data_dir, made)
    done = playhead("replay", recorded, "--from", "1")
    assert done.status == 0
    assert done.lines[0] == "  1 exact   chat gpt-4o"
    assert "stdout" in done.lines and "  hello" in done.lines
    assert done.lines[-1] == "identical (exit 0)"
    found = json.loads(playhead("replay", f"{recorded}:1", "--json").out)
    [step] = found["steps"]
    assert (step["number"], step["recorded_number"], step["fidelity"]) == (1, 1, "exact")
    assert step["printed"] == [{"stream": "stdout", "text": "hello\n"}]
    beyond = playhead("replay", recorded, "--from", "2")
    assert (beyond.status, beyond.err.splitlines()[0]) == (
        2,
        f"error[usage]: {recorded} has steps 1 to 1, not 2",
    )
