"""SIGKILL of a receiver under load, over both transports: what it acknowledged is there."""

import random
from pathlib import Path
from threading import Event

import pytest
from support.outside.senders import Sender, Standing, more, nothing_is_missing, sending

MOMENT_S = 0.03
"""Within it a receiver is killed, counted from a random number of acknowledgements."""


def kill_and_look(data_dir: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    senders = [Sender(number) for number in range(1, 5)]
    for _ in range(kills):
        standing = Standing(data_dir)
        with sending(senders, standing):
            more(senders, chance.randrange(4, 120))
            Event().wait(chance.uniform(0, MOMENT_S))
            standing.kill()
        nothing_is_missing(data_dir, senders)


def test_nothing_acknowledged_is_lost(tmp_path: Path):
    kill_and_look(tmp_path, kills=3, seed=1)


@pytest.mark.acceptance
@pytest.mark.timeout(1200)
def test_nothing_acknowledged_is_lost_in_a_hundred_kills(tmp_path: Path):
    kill_and_look(tmp_path, kills=100, seed=2)
