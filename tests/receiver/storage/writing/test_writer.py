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


class Refuses(Away):
    """A database that refuses batches of more than 1 byte, and every transaction that has one."""

    away = False

    def __init__(self) -> None:
        super().__init__()
        self.written: list[int] = []
        self.closed = False

    def write(self, batches: Sequence[Prepared]) -> list[Receipt]:
        self.attempts.append(len(batches))
        self.begun.set()
        self.go_on.wait()
        sizes = [batch.size_bytes for batch in batches]
        if max(sizes) > 1:
            raise ValueError("no such batch")
        self.written += sizes
        return [Receipt(0, 0, 0)] * len(batches)

    def close(self) -> None:
        self.closed = True


def test_a_refused_batch_is_refused_alone_and_closing_waits_for_all():
    hands = Refuses()
    writer: Writer[Any] = Writer(hands)
    results: dict[int, object] = {}

    def write(number: int) -> None:
        try:
            results[number] = writer.write(Prepared([], [], {}, 2 if number == 2 else 1))
        except ValueError as problem:
            results[number] = problem

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    threads[0].start()
    assert hands.begun.wait(60)
    for thread in threads[1:]:
        thread.start()
    until(lambda: writer._jobs.qsize() == 3, "they wait")  # pyright: ignore[reportPrivateUsage]
    seen: list[bool] = []
    closing = threading.Thread(target=lambda: (writer.close(), seen.append(hands.closed)))
    closing.start()
    until(lambda: writer._jobs.qsize() == 4, "the end waits, too")  # pyright: ignore[reportPrivateUsage]
    hands.go_on.set()
    for thread in (*threads, closing):
        thread.join(60)
    assert seen == [True] and hands.written == [1, 1, 1]
    assert hands.attempts == [1, 3, 1, 1, 1]
    assert [number for number, result in results.items() if isinstance(result, ValueError)] == [2]
    with pytest.raises(StoreUnavailable):
        writer.write(Prepared([], [], {}, 0))
