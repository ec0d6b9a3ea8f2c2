"""What every `CheckpointStore` has to do, as a class of tests.

An engine is proven by a subclass that says how a store is opened, collected by pytest or run by hand::

    class TestMyEngine(CheckpointConformance):
        @pytest.fixture(autouse=True)
        def _place(self, tmp_path):
            self.place = tmp_path

        def open_store(self):
            return MyCheckpoints(self.place / "checkpoints")
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

from playhead_checkpoint.store.protocol import RESTS_ON_PARENT, Checkpoint, CheckpointStore, Lineage
from playhead_core.errors import CheckpointTaken, CheckpointUnknown, StateRefused, UsageError

RUN, OTHER_RUN = b"r" * 16, b"s" * 16
VALUES: dict[str, Any] = {
    "json": [None, True, 0, -1, 2**63, -(2**63), 1.5, float("inf"), "", "é\n", [], {}, [[1], {"a": []}]],
    "bytes": [b"", b"\x00\xff", bytearray(b"ab"), b"x" * 100_000],
    "text": ["t" * 5_000, "é" * 70_000, "\ud800"],
    "numbers": [2**64, -(2**200), -0.0, Decimal("1.10"), 1 + 2j],
    "times": [
        datetime(2020, 2, 3, 4, 5, 6, 7),
        datetime(2020, 2, 3, tzinfo=UTC, fold=1),
        datetime(2020, 2, 3, tzinfo=timezone(timedelta(hours=-3, minutes=-30), "here")),
        date(1, 1, 1),
        time(23, 59, 59, 999_999),
        timedelta(-1, 2, 3),
    ],
    "others": [
        UUID(int=7),
        (),
        (1, ("a",)),
        {1, "a"},
        set[int](),
        frozenset({(1, 2)}),
        {1: "a", (2,): {3: 4}},
    ],
    "large": [{"number": number, "text": "y" * (number % 3_000)} for number in range(300)],
    "wide": {f"key {number}": number for number in range(3_000)},
}


@contextmanager
def refuses(error: type[Exception], *words: str) -> Generator[None, None, None]:
    """Check that the block raises ``error``, and that its message has all ``words``."""
    try:
        yield
    except error as refused:
        assert all(word in str(refused) for word in words), str(refused)
    else:
        raise AssertionError(f"no {error.__name__}")


def same(one: Any, other: Any) -> bool:
    """Equal, of the same types, and dicts in the same order."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        left, right = cast(dict[Any, Any], one), cast(dict[Any, Any], other)
        return same(list(left.items()), list(right.items()))
    if isinstance(one, list | tuple):
        left, right = cast(list[Any], one), cast(list[Any], other)
        return len(left) == len(right) and all(map(same, left, right))
    return repr(one) == repr(other) if isinstance(one, float) else one == other


def conversation(length: int) -> dict[str, Any]:
    """A state as agents have it: messages, and a step."""
    messages = [
        {"role": "user", "content": f"message {number} " + "word " * (number % 50)}
        for number in range(length)
    ]
    return {"messages": messages, "step": length}


class CheckpointConformance:
    """Tests of a store; each opens it again, empty."""

    def open_store(self) -> CheckpointStore:
        """The store of this test; each time the same."""
        raise NotImplementedError

    @contextmanager
    def store(self) -> Generator[CheckpointStore, None, None]:
        """The store, while a test uses it; nothing in it may be damaged afterwards."""
        store = self.open_store()
        try:
            yield store
            assert store.damages() == []
        finally:
            store.close()

    def test_it_has_the_methods_of_a_store(self) -> None:
        with self.store() as store:
            assert isinstance(store, CheckpointStore)

    def test_every_value_comes_back_as_it_was(self) -> None:
        with self.store() as store:
            for name, value in VALUES.items():
                found = store.state(store.put(value).id)
                assert same(found, value), name

    def test_states_outlive_the_store_object(self) -> None:
        with self.store() as store:
            put = store.put(VALUES, Lineage(RUN, b"s" * 8, "auto", b"p" * 16, 5, ("a", "é")))
        with self.store() as store:
            assert store.checkpoint(put.id) == put
            assert same(store.state(put.id), VALUES)
            assert put.lineage == Lineage(RUN, b"s" * 8, "auto", b"p" * 16, 5, ("a", "é"), put.id)

    def test_a_state_is_a_copy(self) -> None:
        with self.store() as store:
            value = {"list": [1], "twice": [VALUES["large"]] * 2}
            put = store.put(value)
            value["list"].append(2)
            first = store.state(put.id)
            assert first["list"] == [1]
            first["twice"][0].clear()
            assert first["twice"][1] == VALUES["large"]
            assert store.state(put.id)["list"] == [1]

    def test_the_same_put_is_the_same_checkpoint(self) -> None:
        with self.store() as store:
            lineage = Lineage(RUN, time_ns=7)
            put = store.put(conversation(50), lineage)
            assert store.put(conversation(50), lineage) == put
            assert store.checkpoints() == [put]
            named = store.put([1], Lineage(id=b"i" * 16))
            assert store.put([1], Lineage(id=b"i" * 16)) == named

    def test_an_id_stands_for_one_checkpoint(self) -> None:
        with self.store() as store:
            put = store.put([1], Lineage(RUN, id=b"i" * 16))
            with refuses(CheckpointTaken, (b"i" * 16).hex()):
                store.put([2], Lineage(RUN, id=b"i" * 16))
            with refuses(CheckpointTaken):
                store.put([1], Lineage(OTHER_RUN, id=b"i" * 16))
            assert store.checkpoints() == [put]

    def test_a_replaced_checkpoint_keeps_its_notes_and_frees_its_nodes(self) -> None:
        with self.store() as store:
            lineage = Lineage(RUN, id=b"i" * 16, time_ns=1)
            first = store.put(conversation(300), lineage, replace=True)
            store.note(first.id, {"key": "said"})
            with refuses(StateRefused):
                store.put([object()], lineage, replace=True)
            assert store.contents(first.id) == (first, conversation(300), {"key": "said"})
            then = store.put({"other": ["word " * 500] * 9}, lineage, replace=True)
            assert store.checkpoints() == [then]
            assert store.contents(first.id) == (then, {"other": ["word " * 500] * 9}, {"key": "said"})
            again = store.put(conversation(300), lineage, replace=True)
            assert (again.digest, store.state(again.id)) == (first.digest, conversation(300))

    def test_contents_are_all_of_one_checkpoint(self) -> None:
        with self.store() as store:
            put = store.put(VALUES, Lineage(RUN, labels=("a",)))
            assert store.contents(put.id).notes == {}
            store.note(put.id, {"b": VALUES, "a": [1]})
            found = store.contents(put.id)
            assert found.checkpoint == put and list(found.notes) == ["b", "a"]
            assert same(found.state, VALUES) and same(found.notes, {"b": VALUES, "a": [1]})
            found.notes["b"]["large"].clear()
            assert same(store.contents(put.id).notes["b"], VALUES)
            with refuses(CheckpointUnknown):
                store.contents(b"x" * 16)

    def test_equal_states_have_equal_digests(self) -> None:
        with self.store() as store:
            one, other = store.put(conversation(300)), store.put(conversation(300), Lineage(RUN))
            assert one.digest == other.digest and one.id != other.id
            assert store.put(conversation(301)).digest != one.digest
            for left, right in (
                (1, True),
                (1, 1.0),
                (0.0, -0.0),
                ("a", b"a"),
                ([1], (1,)),
                ({1}, frozenset({1})),
            ):
                assert store.put(left).digest != store.put(right).digest

    def test_an_impossible_lineage_is_refused(self) -> None:
        with self.store() as store:
            for lineage in (
                Lineage(b"r"),
                Lineage(span=b"s"),
                Lineage(kind=cast(Any, "other")),
                Lineage(parent=b"p"),
                Lineage(id=b"i"),
                Lineage(time_ns=-1),
                Lineage(labels=("a" * 257,)),
                Lineage(labels=("a",) * 65),
            ):
                with refuses(UsageError, "cannot be stored"):
                    store.put(None, lineage)
            assert store.checkpoints() == []

    def test_what_cannot_be_stored_is_named_and_leaves_nothing(self) -> None:
        with self.store() as store:
            with refuses(StateRefused, "state['tools'][1]", "builtins.object"):
                store.put({"tools": [conversation(300), object()]})
            circle: list[Any] = []
            circle.append(circle)
            with refuses(StateRefused, "contains itself"):
                store.put(circle)
            assert store.checkpoints() == []

    def test_an_unknown_id_is_said_to_be_unknown(self) -> None:
        with self.store() as store:
            known = store.put(1).id
            calls: list[Callable[[], Any]] = [
                lambda: store.checkpoint(b"x" * 16),
                lambda: store.state(b"x" * 16),
                lambda: store.contents(b"x" * 16),
                lambda: store.difference(known, b"x" * 16),
                lambda: store.checkpoints(before=b"x" * 16),
            ]
            for call in calls:
                with refuses(CheckpointUnknown, (b"x" * 16).hex()):
                    call()

    def test_checkpoints_are_listed_from_the_last_one_on(self) -> None:
        with self.store() as store:
            puts = [store.put(number, Lineage((RUN, OTHER_RUN)[number % 2])) for number in range(6)]
            assert store.checkpoints() == puts[::-1]
            assert store.checkpoints(RUN) == [puts[4], puts[2], puts[0]]
            assert store.checkpoints(RUN, limit=2) == [puts[4], puts[2]]
            assert store.checkpoints(RUN, before=puts[2].id) == [puts[0]]
            assert store.latest(OTHER_RUN) == puts[5]
            assert store.latest(b"t" * 16) is None

    def test_a_step_takes_what_it_changed(self) -> None:
        with self.store() as store:
            earlier = store.put(conversation(2_000), Lineage(OTHER_RUN))
            store.put(conversation(2_001), Lineage(RUN))
            freed = store.delete_run(RUN)
            assert freed.checkpoints == 1 and freed.nodes < 16 and freed.stored_bytes < 16_384
            assert store.state(earlier.id) == conversation(2_000)

    def test_a_change_in_the_middle_takes_what_it_changed(self) -> None:
        with self.store() as store:
            state = conversation(2_000)
            store.put(state, Lineage(OTHER_RUN))
            state["messages"].insert(1_000, {"role": "tool"})
            del state["messages"][0]
            put = store.put(state, Lineage(RUN))
            assert store.state(put.id) == state
            assert store.delete_run(RUN).nodes < 32

    def test_the_difference_names_paths(self) -> None:
        with self.store() as store:
            before, after = conversation(2_000), conversation(2_000)
            after["messages"][700]["content"] = "other"
            del after["messages"][5]
            after["messages"].append("new")
            after["flag"], after["step"] = True, (1, 2)
            one, other = store.put(before), store.put(after)
            found = {(change.path, change.kind): change for change in store.difference(one.id, other.id)}
            assert set(found) == {
                (("messages", 5), "removed"),
                (("messages", 699, "content"), "changed"),
                (("messages", 1_999), "added"),
                (("flag",), "added"),
                (("step",), "changed"),
            }
            changed = found[("messages", 699, "content"), "changed"]
            assert (changed.before, changed.after) == (before["messages"][700]["content"], "other")
            assert found[("step",), "changed"].after == (1, 2)
            assert store.difference(one.id, one.id) == []

    def test_deleting_keeps_what_others_use(self) -> None:
        with self.store() as store:
            puts = [store.put(conversation(length), Lineage(RUN)) for length in range(0, 400, 20)]
            kept = puts[7]
            freed = store.delete([put.id for put in puts if put is not kept] + [b"x" * 16])
            assert freed.checkpoints == len(puts) - 1
            assert same(store.state(kept.id), conversation(140))
            assert store.checkpoints() == [kept]
            last = store.delete([kept.id])
            assert last.nodes > 0
            assert store.delete([kept.id]).checkpoints == 0
            again = store.put(conversation(140))
            assert same(store.state(again.id), conversation(140))

    def test_deleting_a_run_keeps_other_runs(self) -> None:
        with self.store() as store:
            store.put(VALUES, Lineage(RUN))
            kept = store.put(VALUES, Lineage(OTHER_RUN))
            freed = store.delete_run(RUN)
            assert (freed.checkpoints, freed.nodes) == (1, 0)
            assert same(store.state(kept.id), VALUES)
            assert store.delete_run(OTHER_RUN).nodes > 10

    def test_deleting_a_run_keeps_what_checkpoints_of_other_runs_rest_on(self) -> None:
        last = b""
        puts: list[Checkpoint] = []
        with self.store() as store:
            for number, run in enumerate((RUN, RUN, RUN, OTHER_RUN, RUN)):
                rests = (RESTS_ON_PARENT,) if number in (2, 3) else ()
                lineage = Lineage(run, parent=last, labels=rests, thread="t", name=str(number))
                puts.append(store.put(conversation(number), lineage))
                last = puts[-1].id
            assert store.delete_run(RUN).checkpoints == 2
            assert store.of_thread("t") == puts[3:0:-1]
            assert store.delete_run(OTHER_RUN).checkpoints == 1
            assert store.delete_run(RUN).checkpoints == 2
            assert store.damages() == []

    def test_a_store_notices_what_another_one_deleted(self) -> None:
        with self.store() as store, self.store() as other:
            first = store.put(conversation(500))
            other.delete([first.id])
            again = store.put(conversation(501))
            assert same(other.state(again.id), conversation(501))

    def test_a_thread_has_its_checkpoints_by_name(self) -> None:
        with self.store() as store:
            for thread, name in (("t", "b"), ("t", "c"), ("t", "a"), ("tt", "d"), ("", "e")):
                store.put([thread, name], Lineage(thread=thread, name=name))
            assert [one.lineage.name for one in store.of_thread("t")] == ["c", "b", "a"]
            assert [one.lineage.name for one in store.of_thread("t", limit=1)] == ["c"]
            assert [one.lineage.name for one in store.of_thread("t", before="c", limit=1)] == ["b"]
            assert store.of_thread("") == store.of_thread("x") == store.of_thread("t", limit=0) == []
            assert (store.threads(), store.threads("tt"), store.threads("u")) == (
                ["t", "tt"],
                ["tt"],
                [],
            )
            assert store.state(store.of_thread("tt")[0].id) == ["tt", "d"]

    def test_notes_come_in_any_order_and_the_first_of_a_key_stays(self) -> None:
        id, long = b"n" * 16, ["entry " * 100] * 50
        with self.store() as store:
            store.note(id, {"early": (1, 2)})
            store.put("state", Lineage(id=id))
            store.note(id, {"early": long, "late": [long]})
            assert store.notes(id) == {"early": (1, 2), "late": [long]}
            store.note(id, {"early": long}, replace=True)
            assert store.notes(id) == {"early": long, "late": [long]}
            store.note(id, {"early": None, "late": None}, replace=True)
            assert store.notes(id) == {"early": None, "late": None}
            assert store.notes(b"o" * 16) == {}
            assert store.damages() == []

    def test_a_refused_note_leaves_nothing(self) -> None:
        with self.store() as store:
            with refuses(StateRefused, "object"):
                store.note(b"n" * 16, {"one": 1, "two": object()})
            assert store.notes(b"n" * 16) == {}

    def test_notes_go_with_their_checkpoint(self) -> None:
        long = [{"entry": "word " * 100, "number": number} for number in range(100)]
        with self.store() as store:
            one, other = (store.put(number, Lineage(RUN)) for number in (1, 2))
            store.note(one.id, {"key": long})
            store.note(other.id, {"key": long})
            assert store.delete([one.id]).nodes == 0
            assert (store.notes(one.id), store.notes(other.id)) == ({}, {"key": long})
            assert store.delete_run(RUN).nodes > 0
            assert store.damages() == []
            store.note(one.id, {"key": long})
            assert store.notes(one.id) == {"key": long}

    def test_many_writers(self) -> None:
        with self.store() as store, self.store() as other:
            failures: list[BaseException] = []

            def work(number: int) -> None:
                mine = (store, other)[number % 2]
                run = bytes([number]) * 16
                try:
                    for length in range(0, 60, 3):
                        put = mine.put(conversation(length), Lineage(run))
                        assert same(mine.state(put.id), conversation(length))
                    if number % 3 == 0:
                        assert mine.delete_run(run).checkpoints == 20
                except BaseException as failure:
                    failures.append(failure)

            threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert not failures, failures[0]
            assert len(store.checkpoints(limit=1_000)) == 80
