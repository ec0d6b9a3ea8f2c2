"""A disk that is full, or lets nothing be written, under load: senders try again, nothing is lost."""

import random
import resource
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from support.outside.senders import Sender, Standing, all_are_refused, more, nothing_is_missing, sending
from support.volumes import volume

FULL_MIB = 48
TIMES = [2, pytest.param(25, marks=[pytest.mark.acceptance, pytest.mark.timeout(600)])]


def refuse_and_look(
    data_dir: Path,
    refusing: Callable[[Standing], AbstractContextManager[None]],
    times: int,
    within: Sequence[str] = (),
) -> None:
    chance = random.Random(times)
    senders = [Sender(number) for number in range(1, 5)]
    standing = Standing(data_dir, within)
    with sending(senders, standing):
        for _ in range(times):
            more(senders, chance.randrange(4, 60))
            with refusing(standing):
                all_are_refused(senders)
        more(senders, 20)
        standing.kill()
    nothing_is_missing(data_dir, senders, within)


@pytest.mark.parametrize("times", TIMES)
def test_a_disk_that_is_full_to_the_last_byte(tmp_path: Path, times: int):
    data_dir = tmp_path / "disk"
    with volume(data_dir, FULL_MIB) as disk:
        refuse_and_look(data_dir, lambda _: disk.filled(), times, disk.within)


@contextmanager
def unwritable(standing: Standing) -> Generator[None]:
    """Every write to a file fails: a file system that is read-only for those who have it open."""
    _, hard = resource.prlimit(standing.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(standing.process.pid, resource.RLIMIT_FSIZE, (0, hard))
    yield
    resource.prlimit(standing.process.pid, resource.RLIMIT_FSIZE, (hard, hard))


@pytest.mark.parametrize("times", TIMES)
def test_files_that_cannot_be_written_for_a_while(tmp_path: Path, times: int):
    refuse_and_look(tmp_path, unwritable, times)


@pytest.mark.parametrize("times", [1, *TIMES[1:]])
def test_a_file_system_is_made_read_only_between_two_receivers_and_never_under_one(
    tmp_path: Path, times: int
):
    data_dir = tmp_path / "disk"
    senders = [Sender(number) for number in range(1, 5)]
    with volume(data_dir, FULL_MIB) as disk:
        for _ in range(times):
            standing = Standing(data_dir, disk.within)
            with sending(senders, standing):
                more(senders, 10)
                assert not disk.remount("ro")
                more(senders, 10)
                standing.kill()
            assert disk.remount("ro")
            nothing_is_missing(data_dir, senders, disk.within)
            said = Standing.refused(data_dir, disk.within)
            assert f"the data directory {data_dir} cannot be used" in said
            assert "Read-only file system" in said
            assert disk.remount("rw")
