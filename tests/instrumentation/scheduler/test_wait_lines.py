"""Threads in line for a lock: who is late tries again, and who leaves wakes the next."""

import threading

import pytest
from support.starting.running import PATIENCE_S, until

from playhead_instrumentation.scheduler.wait_lines import Waiter, wait_in, wake_first


class Interrupted(Exception):
    """As a signal handler raises."""


def in_thread(run):
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def test_who_is_late_takes_what_the_first_in_line_has_not_taken_yet():
    line = [Waiter(None, "lock")]
    assert wait_in(line, lambda: True, 0.0)
    assert len(line) == 1


def test_the_first_in_line_tries_again_when_it_is_late():
    outcomes = [False, True]
    assert wait_in([], lambda: outcomes.pop(0), 0.0)


def test_who_leaves_the_line_wakes_the_next():
    """It was woken itself, and the lock that it did not take is free."""
    line: list[Waiter] = []
    is_free, tries, caught = [], [], []

    def interrupted() -> bool:
        tries.append(1)
        if len(tries) > 1:
            raise Interrupted
        return False

    def leaves() -> None:
        with pytest.raises(Interrupted):
            wait_in(line, interrupted, None)
        caught.append(1)

    leaving = in_thread(leaves)
    until(lambda: len(line) == 1 and tries, "the first waits")
    next_one = in_thread(lambda: wait_in(line, lambda: bool(is_free), None))
    until(lambda: len(line) == 2, "the second waits")
    is_free.append(1)
    wake_first(line)
    for thread in (leaving, next_one):
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert caught and line == []
