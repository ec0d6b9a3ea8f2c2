"""What the one thread that writes does when a transaction fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from support.starting.running import until

from playhead_core.errors import StoreUnavailable
from playhead_receiver.storage.values.stored import Receipt
from playhead_receiver.storage.writing.prepare import Prepared
from playhead_receiver.storage.writing.writer import Writer


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


class Keeps(Away):
    """A database that notes in which order it is asked; the first write waits for `go_on`."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []

    def write(self, batches: Sequence[Prepared]) -> list[Receipt]:
        self.begun.set()
        self.go_on.wait()
        self.done.append(f"write {len(batches)}")
        return [Receipt(0, 0, 0)] * len(batches)

    def transact(self, action: Callable[[Any], Any], forgets: bool) -> Any:
        self.done.append("transact")
        return action(None)


def test_other_work_between_batches_that_wait_is_done_and_in_its_turn():
    hands = Keeps()
    writer: Writer[Any] = Writer(hands)
    results: list[str] = []
    threads: list[threading.Thread] = []

    def start(call: Callable[[], object]) -> None:
        waiting = writer._jobs.qsize()  # pyright: ignore[reportPrivateUsage]
        threads.append(threading.Thread(target=call, daemon=True))
        threads[-1].start()
        if len(threads) > 1:
            until(lambda: writer._jobs.qsize() > waiting, "it waits")  # pyright: ignore[reportPrivateUsage]
        else:
            assert hands.begun.wait(60)

    for _ in range(2):
        start(lambda: writer.write(Prepared([], [], {}, 0)))
    start(lambda: results.append(writer.run(lambda database: "done")))
    start(lambda: writer.write(Prepared([], [], {}, 0)))
    start(lambda: results.append("emptied" if writer.checkpoint() else "held"))
    hands.go_on.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    writer.close()
    assert hands.done == ["write 1", "write 1", "transact", "write 1"]
    assert sorted(results) == ["done", "emptied"]
