"""Descriptors of playhead's own: a program may close their numbers and use them again at any moment."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from playhead_core.process.own_descriptors import OwnDescriptor, identity, moved_up


def open_file(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT)


def test_a_number_that_the_program_uses_meanwhile_stays_open(tmp_path: Path):
    number, programs = open_file(tmp_path / "own"), open_file(tmp_path / "program's")

    def is_own(status: os.stat_result) -> bool:
        os.dup2(programs, number)  # the program closes the number and opens its file
        return True

    high = moved_up(number, is_own)
    assert high > number and identity(number) == identity(programs) != identity(high)
    for each in (number, programs, high):
        os.close(each)


def test_a_number_that_means_another_file_is_left_to_the_program(tmp_path: Path):
    number = open_file(tmp_path / "program's")
    seen: list[int] = []

    def is_own(status: os.stat_result) -> bool:
        seen.extend(one for one in map(int, os.listdir("/proc/self/fd")) if identity(one) == own)
        return False

    own = identity(number)
    with pytest.raises(OSError) as caught:
        OwnDescriptor(number, is_own)
    assert caught.value.errno == errno.EBADF
    copies = [one for one in seen if one != number]
    assert identity(number) == own and len(copies) == 1 and identity(copies[0]) != own
    os.close(number)
