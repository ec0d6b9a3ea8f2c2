"""A disk that is full, or lets nothing be written, under load: senders try again, nothing is lost."""

import random
import resource
from pathlib import Path

import pytest
from support.running import until
from support.senders import Sender, Standing, more, nothing_is_missing, sending
from support.volumes import volume

FULL_MIB = 48


def all_are_refused(senders: list[Sender]) -> None:
    before = [sender.refused for sender in senders]
    until(
        lambda: all(sender.refused > was + 1 for sender, was in zip(senders, before, strict=True)),
        "refused",
    )


def fill_and_look(data_dir: Path, times: int, seed: int) -> None:
    chance = random.Random(seed)
    senders = [Sender(number) for number in range(1, 5)]
    with volume(data_dir, FULL_MIB) as disk:
        standing = Standing(data_dir, disk.within)
        with sending(senders, standing):
            for _ in range(times):
                more(senders, chance.randrange(4, 60))
                disk.fill()
                all_are_refused(senders)
                disk.clear()
            more(senders, 20)
            standing.kill()
        nothing_is_missing(data_dir, senders, disk.within)


def test_a_disk_that_is_full_to_the_last_byte(tmp_path: Path):
    fill_and_look(tmp_path / "disk", times=2, seed=1)


@pytest.mark.acceptance
@pytest.mark.timeout(600)
def test_a_disk_that_is_full_to_the_last_byte_many_times(tmp_path: Path):
    fill_and_look(tmp_path / "disk", times=25, seed=2)


def refuse_and_look(data_dir: Path, times: int, seed: int) -> None:
    """No file may be written to for a while: RLIMIT_FSIZE stands in for a file system gone read-only."""
    chance = random.Random(seed)
    senders = [Sender(number) for number in range(1, 5)]
    standing = Standing(data_dir)
    _, hard = resource.prlimit(standing.process.pid, resource.RLIMIT_FSIZE)
    with sending(senders, standing):
        for _ in range(times):
            more(senders, chance.randrange(4, 60))
            resource.prlimit(standing.process.pid, resource.RLIMIT_FSIZE, (0, hard))
            all_are_refused(senders)
            resource.prlimit(standing.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        more(senders, 20)
        standing.kill()
    nothing_is_missing(data_dir, senders)


def test_files_that_cannot_be_written_for_a_while(tmp_path: Path):
    refuse_and_look(tmp_path, times=2, seed=1)


@pytest.mark.acceptance
@pytest.mark.timeout(600)
def test_files_that_cannot_be_written_many_times(tmp_path: Path):
    refuse_and_look(tmp_path, times=25, seed=2)
