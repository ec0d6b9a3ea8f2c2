"""Damaged and hostile tapes, goldens and spools in great number: nothing runs, nothing is touched."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from support.hostile.mutants_run import LONGEST_S, Tried

from playhead_cli.demo.provider import Provider
from playhead_core.facts import Fact
from playhead_core.tape.frames import WHOLE, Footer, Header, encode
from playhead_replay.tape_files.tape_file import read_tape_file

TESTS = Path(__file__).parents[2]


def survive(folder: Path, seed: int, count: int, module: str = "tape_mutants") -> None:
    words = [sys.executable, "-m", f"support.hostile.{module}", str(seed), str(count), str(folder)]
    environ = {**os.environ, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(words, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_hostile_tapes_run_nothing_and_touch_nothing(tmp_path: Path):
    survive(tmp_path, 1000, 200)


@pytest.mark.acceptance
@pytest.mark.parametrize("seed", range(12))
def test_six_thousand_hostile_tapes(tmp_path: Path, seed: int):
    survive(tmp_path, seed, 500)


@pytest.mark.acceptance
def test_tapes_made_by_hand_to_run_code_run_nothing(tmp_path: Path):
    words = [sys.executable, "-m", "support.hostile.evil_tapes", str(tmp_path)]
    environ = {**os.environ, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(words, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_replays_of_damaged_tapes_run_only_the_program(tmp_path: Path):
    survive(tmp_path / "run", 1, 4, "mutants_run")


@pytest.mark.acceptance
def test_goldens_that_are_damaged_run_only_the_program(tmp_path: Path):
    survive(tmp_path / "run", 3, 100, "golden_mutants")


def test_checkpoints_and_blobs_that_are_damaged_run_nothing(tmp_path: Path):
    survive(tmp_path, 4, 60, "store_mutants")


@pytest.mark.acceptance
@pytest.mark.parametrize("seed", range(4))
def test_many_damaged_checkpoints_and_blobs(tmp_path: Path, seed: int):
    survive(tmp_path, seed, 150, "store_mutants")


@pytest.mark.acceptance
def test_many_replays_forks_and_resumes_of_damaged_tapes(tmp_path: Path):
    survive(tmp_path / "run", 2, 300, "mutants_run")


def without_arrivals(whole: Path) -> bytes:
    """The tapes of ``whole``; what was received by pipes has lost the position of its arrival."""

    def damaged(fact: Fact) -> Fact:
        received = fact.name == "playhead.exchange.data" and fact.exchange is not None
        lost = received and fact.exchange.kind == "pipe"
        return msgspec.structs.replace(fact, delivery=None) if lost else fact

    frames: list[bytes] = []
    count = 0
    for tape in read_tape_file(whole).tapes:
        facts = list(tape.facts())
        assert any(damaged(fact) is not fact for fact in facts)
        frames += [encode(Header(facts[0].instance, 1)), *map(encode, map(damaged, facts))]
        count += len(facts)
    return WHOLE + b"".join([*frames, encode(Footer(count, 0))])


def test_a_fork_of_a_tape_without_an_arrival_ends(tmp_path: Path):
    with Provider(pace_s=0.0) as provider:
        tried = Tried(tmp_path / "run", provider)
        agent = tmp_path / "run" / "agent"
        assert tried.run("record", "--level", "causal", "agent.py")[0] == 0
        assert tried.run("export", "-o", "whole.tape")[0] == 0
        (agent / "damaged.tape").write_bytes(without_arrivals(agent / "whole.tape"))
        status, output = tried.run("fork", "--offline", "--trust", "damaged.tape")
    assert status is not None, f"the fork waited for {LONGEST_S} s: {output}"
    assert "the tape ends before this was answered" in output
