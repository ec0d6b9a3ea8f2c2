"""Stores of older versions, made by the code of their time, and what each of them holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from support.tapes.batches import facts_of, span_of
from support.whole_store import WholeStore

from playhead_receiver.storage import Batch, Query

STORES = Path(__file__).parent / "stores"
INSTANCE, TRACE = b"i" * 16, b"f" * 16
EARLY = [span_of(TRACE, number, text=f"first {number} " * 30) for number in range(2, 5)]
LATER = span_of(TRACE, 1, text="later", end_ns=1_800_000_000_000_000_000)


def versions(ending: str) -> list[int]:
    """Of which there is a store, ascending."""
    return sorted(int(path.name[6:].partition(".")[0]) for path in STORES.glob(f"store-*{ending}"))


def is_brought_to_this_version(
    store: WholeStore, again: Callable[[], WholeStore], chained: bool
) -> None:
    """All of it is there and goes on being used; ``again`` opens it for writing.

    ``chained``: it is of a version that had chains.
    """
    assert list(store.tape(INSTANCE).facts()) == facts_of(INSTANCE, range(40))
    assert list(store.spans(INSTANCE)) == [span_of(INSTANCE, one, text="second") for one in (1, 2)]
    assert list(store.spans(TRACE)) == [*EARLY, LATER]
    assert {run.name for run in store.runs(Query())} == {"refund-1", "run-1"}
    assert [change.position for change in store.changes(42)] == [44, 45, 46, 47]
    store.close()
    writer = again()
    assert list(writer.verify()) == []
    assert writer.not_chained() == (0 if chained else 1)
    assert writer.commit(Batch([*EARLY, LATER, span_of(TRACE, 9)])).spans_new == 1
    while writer.index():
        pass
    assert {hit.trace_id for hit in writer.search("later")} == {TRACE.hex()}
    assert writer.delete([TRACE]).spans == 5
    assert list(writer.verify()) == []
    assert [run.name for run in writer.runs(Query())] == ["run-1"]
    writer.close()
