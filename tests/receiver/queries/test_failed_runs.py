"""Failed runs are counted by cause; a run whose process fell silent has not failed of itself."""

from __future__ import annotations

from typing import Any

from support.tapes.handmade import HandMade, HandMadeStore

from playhead_receiver.queries.failed_runs import failure_kinds
from playhead_receiver.queries.run_paths import paths_of
from playhead_receiver.storage import Query


def test_a_run_that_fell_silent_counts_only_if_something_says_that_it_failed():
    store = HandMadeStore()
    runs = (("good", "success"), ("bad", "failure"), ("killed", "interrupted"), ("hung", "interrupted"))
    for number, (name, status) in enumerate(runs, 1):
        made = HandMade(bytes([number]) * 16, bytes([number]) * 16).start()
        error = "builtins.TimeoutError: slow" if name in ("bad", "hung") else ""
        made.tool("refund", "{}", error=error)
        if status != "interrupted":
            made.exit(status == "failure")
        store.add(made, f"{name}-1", status=status)
    any_store: Any = store
    found = failure_kinds(any_store, paths_of(any_store, store.runs(Query()), 10))
    assert (found.runs, found.failed) == (4, 2)
    assert [(kind.type, kind.code, sorted(kind.runs)) for kind in found.kinds] == [
        ("tool", "timeout", ["bad-1", "hung-1"])
    ]
