"""What the one thread that writes does when a transaction fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from support.starting.running import until

from playhead_receiver.store.values.stored import Receipt
from playhead_receiver.store.writing.prepare import Prepared
from playhead_receiver.store.writing.writer import Writer
from playhead_semconv.errors import StoreUnavailable


class Away:
    """A database that is not there; attempts are counted, the first one waits."""

    name, position, away = "postgresql://nowhere/runs", 0, True

    def __init__(self) -> None:
        self.attempts: list[int] = []
        self.begun, self.go_on = threading.Event(), threading.Event()

    def write(self, batches: Sequence[Prepared]) -> list[Receipt]:
        self.attempts.append(len(batches))
        self.begun.set()
        self.go_on.wait()
        raise StoreUnavailable("the store cannot be used", cause="refused", hint="start it")

    def transact(self, action: Callable[[Any], Any], forgets: bool) -> Any:
        raise AssertionError

    def empty_log(self) -> bool:
        return True

    def close(self) -> None:
        pass


def test_who_waits_for_a_database_that_is_away_waits_for_one_attempt():
    hands = Away()
    writer: Writer[Any] = Writer(hands)
    said: list[StoreUnavailable] = []

    def write() -> None:
        with pytest.raises(StoreUnavailable) as caught:
            writer.write(Prepared([], [], {}, 0))
        said.append(caught.value)

    threads = [threading.Thread(target=write) for _ in range(9)]
    threads[0].start()
    assert hands.begun.wait(60)
    for thread in threads[1:]:
        thread.start()
    until(lambda: writer._jobs.qsize() == 8, "they wait")  # pyright: ignore[reportPrivateUsage]
    hands.go_on.set()
    for thread in threads:
        thread.join()
    writer.close()
    assert hands.attempts == [1, 8]
    assert {(one.cause, one.hint) for one in said} == {("refused", "start it")}
    assert len(set(map(id, said))) == 9
