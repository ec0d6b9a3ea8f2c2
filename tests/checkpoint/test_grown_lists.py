"""Lists that grow: what is known of them is compared, and what has changed is not taken for known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pydantic
import pytest

from playhead_checkpoint import Lineage, SqliteCheckpoints
from playhead_checkpoint.store.engine import KnownNodes
from playhead_checkpoint.tree import ranges
from playhead_checkpoint.tree.models import ModelRow
from playhead_checkpoint.tree.packing import Packer
from playhead_checkpoint.tree.ranges import KnownRanges
from playhead_checkpoint.tree.types import Types


class Said(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    text: Any
    note: Any = None


def types(name: str = "said") -> Types:
    found = Types()
    found.register(Said, name=name)
    return found


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteCheckpoints]:
    with SqliteCheckpoints(tmp_path / "checkpoints.sqlite", types()) as found:
        yield found


def models(count: int) -> list[Any]:
    return [Said(text=f"{number} " + "word " * 40, note=1) for number in range(count)]


def put_three_times(store: SqliteCheckpoints, said: list[Any]) -> None:
    """After that the models are known by their fields."""
    for _ in range(3):
        store.put({"said": said}, Lineage(time_ns=1))


def hide(said: Said) -> None:
    object.__setattr__(said, "__pydantic_private__", {"_hidden": 1})


def told(said: Said) -> Any:
    """All of it, in which 1, 1.0 and True are not the same."""
    names = sorted(said.__pydantic_fields_set__)
    return repr((said.__dict__, names, said.__pydantic_extra__, said.__pydantic_private__))


CHANGES: dict[str, Callable[[Said], Any]] = {
    "a field": lambda said: setattr(said, "text", "edited"),
    "the type of a field": lambda said: setattr(said, "note", True),
    "a number like it": lambda said: setattr(said, "note", 1.0),
    "a field that is not declared": lambda said: setattr(said, "more", 1),
    "which fields are set": lambda said: said.__pydantic_fields_set__.discard("note"),
    "what is private": hide,
    "bytes": lambda said: setattr(said, "note", b"1"),
    "a value that is no JSON": lambda said: setattr(said, "note", {1, 2}),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("place", [0, 30, 59])
def test_a_model_that_was_changed_in_place_is_stored_as_it_is(
    store: SqliteCheckpoints, change: str, place: int
):
    said = models(60)
    row = ModelRow.of(said, types())
    assert row is not None and row.same(said, types())
    put_three_times(store, said)
    CHANGES[change](said[place])
    assert not row.same(said, types())
    after = store.put({"said": said})
    assert [*map(told, store.state(after.id)["said"])] == [*map(told, said)]


def test_models_are_stored_under_the_name_that_the_put_is_given(store: SqliteCheckpoints):
    said = models(60)
    put_three_times(store, said)
    other = types("other")
    put = store.put({"said": said}, types=other)
    assert store.state(put.id, other)["said"] == said
    assert store.state(put.id)["said"][0].name == "other"


def test_a_list_that_grows_has_one_form_and_frees_all_it_used(store: SqliteCheckpoints):
    """Also with large entries behind its last leaf, and when its store knows nothing any longer."""
    said, ids = list[Any](), list[bytes]()
    for number in range(120):
        large = number % 7 == 6
        said = [
            *said,
            {"n": number, "text": f"{number}-" * (3_000 if large else 60), "flag": number % 2 == 1},
        ]
        if number == 90:
            said[3] = {"edited": True}
        ids.append(store.put({"said": said}, Lineage(time_ns=1)).id)
        if number % 40 == 39:
            store._known = KnownNodes()  # pyright: ignore[reportPrivateUsage]
            assert store.put({"said": said}, Lineage(time_ns=1)).id == ids[-1]
    assert store.state(ids[-1])["said"] == said
    assert len(store.state(ids[60])["said"]) == 61
    assert store.damages() == []
    for some in (ids[::2], ids[1::2]):
        store.delete(some)
        assert store.damages() == []
    assert store.count() == 0
    with store._using() as database:  # pyright: ignore[reportPrivateUsage]
        assert database.execute("SELECT count(*) FROM node").fetchone()[0] == 0


def nodes_of(store: SqliteCheckpoints) -> int:
    with store._using() as database:  # pyright: ignore[reportPrivateUsage]
        return database.execute("SELECT count(*) FROM node").fetchone()[0]


def short(name: str, entries: int = 6) -> list[Any]:
    return [f"{name} {number} " + "word " * 60 for number in range(entries)]


def test_a_short_list_takes_no_node_until_a_part_of_it_is_closed(store: SqliteCheckpoints):
    ids = [store.put({"said": short("f", count), "step": count}).id for count in range(4, 8)]
    assert nodes_of(store) == 0
    assert [store.state(id)["said"] for id in ids] == [short("f", count) for count in range(4, 8)]
    assert [change.path for change in store.difference(ids[0], ids[1])] == [("said", 4), ("step",)]
    closed = store.put({"said": short("f", 9)})  # the entry 7 ends a leaf
    assert nodes_of(store) == 1
    assert store.state(closed.id)["said"] == short("f", 9)
    assert [change.path for change in store.difference(ids[0], closed.id)] == [
        ("said", 4), ("said", 5), ("said", 6), ("said", 7), ("said", 8), ("step",)
    ]  # fmt: skip


def test_of_many_short_lists_the_first_ones_take_no_node(store: SqliteCheckpoints):
    state = {"lists": {name: short(name) for name in "abcdefgh"}}
    put = store.put(state)
    assert store.state(put.id) == state
    assert nodes_of(store) == 6 + 1  # six lists, and a leaf of the first one
    assert len(store.row(put.id).packed) < 5_000


def test_what_is_like_bytes_is_found_behind_a_short_list_that_begins_the_same(store: SqliteCheckpoints):
    state = {"one": short("a"), "other": {"said": [*short("a"), bytearray(b"x")], "more": [b"y"]}}
    found = store.state(store.put(state).id)
    assert found == state
    assert [type(found["other"]["said"][-1]), type(found["other"]["more"][0])] == [bytearray, bytes]


def packed_with(known: KnownRanges, state: Any) -> Packer:
    packer = Packer(Types(), known)
    packer.state(state)
    known.add(packer.ranges)
    return packer


def test_conversations_that_begin_with_one_message_are_known_side_by_side():
    known, prompt = KnownRanges(), {"role": "system", "content": "Be kind."}
    said = [[prompt, *short(name, 30)] for name in "ab"]
    for one in said:
        assert packed_with(known, {"said": one}).ranges
    for one in said:
        assert packed_with(known, {"said": one}).ranges == []


def test_short_lists_that_are_known_take_a_bounded_room(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ranges, "_MOST_BYTES", 50_000)
    known, first = KnownRanges(), short("first")
    packed_with(known, first)
    assert packed_with(known, first).ranges == []
    for number in range(40):
        packed_with(known, short(str(number), 5))
    assert packed_with(known, first).ranges
