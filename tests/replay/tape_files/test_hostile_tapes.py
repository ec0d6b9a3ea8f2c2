"""Damaged and hostile tapes, goldens and spools in great number: nothing runs, nothing is touched."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
def test_many_replays_forks_and_resumes_of_damaged_tapes(tmp_path: Path):
    survive(tmp_path / "run", 2, 300, "mutants_run")
