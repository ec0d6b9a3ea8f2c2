import random
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead_checkpoint import StateChange, Types
from playhead_checkpoint.tree import difference
from playhead_checkpoint.tree.difference import StateComparison
from playhead_checkpoint.tree.packing import Packer
from playhead_core.errors import CorruptTape


class Pair:
    """Two states in memory, and what is read to compare them."""

    def __init__(self, before: Any, after: Any, types: Types | None = None) -> None:
        self.nodes: dict[bytes, bytes] = {}
        self.types = types or Types()
        self.before, self.after = map(self.pack, (before, after))
        self.read = 0

    def pack(self, state: Any) -> bytes:
        packer = Packer(self.types)
        packed = packer.state(state)
        self.nodes |= packer.kept
        return packed

    def load(self, digests: Any) -> dict[bytes, bytes]:
        self.read += len(digests)
        return {digest: self.nodes[digest] for digest in digests if digest in self.nodes}

    def changes(self) -> list[StateChange]:
        return list(StateComparison(self.load, self.types).changes(self.before, self.after))


def changes(before: Any, after: Any) -> list[StateChange]:
    return Pair(before, after).changes()


def test_scalars_and_kinds():
    assert changes(1, 1) == []
    assert changes(1, 2) == [((), "changed", 1, 2)]
    assert changes({"a": 1}, [1]) == [((), "changed", {"a": 1}, [1])]
    assert changes({"a": 1}, {"a": True}) == [(("a",), "changed", 1, True)]
    assert changes({"a": 1, "b": 2}, {"b": 2, "a": 1}) == []
    assert changes((1, 2), (1, 3)) == [((1,), "changed", 2, 3)]
    assert changes({1, 2}, {1, 3}) == [((), "changed", {1, 2}, {1, 3})]
    assert changes("t" * 9_000, "t" * 9_001) == [((), "changed", "t" * 9_000, "t" * 9_001)]


def test_nested_paths_are_those_of_their_state():
    before = [1, 2, {"list": [3, 4, 5]}, {"same": 1}]
    after = [2, {"list": [3, 5, 6]}, {"same": 1}]
    assert changes(before, after) == [
        ((0,), "removed", 1, None),
        ((2, "list", 1), "removed", 4, None),
        ((1, "list", 2), "added", None, 6),
    ]


def test_fields_of_registered_types_are_compared():
    @dataclass
    class Tool:
        name: str
        uses: list[int]

    types = Types()
    types.register(Tool)
    pair = Pair({"tool": Tool("a", [1])}, {"tool": Tool("a", [1, 2])}, types)
    assert pair.changes() == [(("tool", "uses", 1), "added", None, 2)]


def applied(before: dict[str, list[Any]], found: list[StateChange]) -> dict[str, list[Any]]:
    """The second state of a dict of flat lists, made of the first and the differences."""
    made = {key: list(values) for key, values in before.items()}
    for path, kind, was, _ in reversed(found):
        if kind == "removed":
            values: Any = made if len(path) == 1 else made[path[0]]
            assert values.pop(path[-1]) == was
    for path, kind, was, now in found:
        values = made if len(path) == 1 else made[path[0]]
        if kind == "added" and isinstance(values, list):
            values.insert(path[-1], now)
        elif kind != "removed":
            assert kind == "added" or values[path[-1]] == was
            values[path[-1]] = now
    return made


lists = st.lists(st.integers(0, 5), max_size=12) | st.integers(0, 2_000).map(
    lambda size: list(range(size))
)
states = st.dictionaries(st.sampled_from("abc"), lists)


@settings(max_examples=300, deadline=None)
@given(states, states)
def test_the_differences_make_one_state_of_the_other(before: Any, after: Any):
    assert applied(before, changes(before, after)) == after


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(1, 4))
def test_edits_of_a_large_list_are_found_by_reading_little(seed: int, edits: int):
    chance = random.Random(seed)
    before = [f"entry {number} " + "x" * (number % 300) for number in range(6_000)]
    after = list(before)
    for number in range(edits):
        at = chance.randrange(len(after))
        match chance.randrange(3):
            case 0:
                after[at] = f"changed {number}"
            case 1:
                after.insert(at, f"inserted {number}")
            case _:
                del after[at]
    pair = Pair({"list": before}, {"list": after})
    found = pair.changes()
    assert applied({"list": before}, found) == {"list": after}
    assert len(found) <= 2 * edits
    assert pair.read < 12 * (edits + 1) < len(pair.nodes)


def test_edits_of_a_large_dict_are_found_by_reading_little():
    before = {f"key {number}": {"value": number} for number in range(20_000)}
    after = {**before, "key 77": 1, "new": 2}
    del after["key 4000"]
    pair = Pair(before, after)
    assert pair.changes() == [
        (("key 77",), "changed", {"value": 77}, 1),
        (("key 4000",), "removed", {"value": 4_000}, None),
        (("new",), "added", None, 2),
    ]
    assert pair.read < 80 < len(pair.nodes)


def test_a_list_that_grew_out_of_its_place_is_compared():
    assert changes(["x" * 500], ["x" * 500, "y" * 4_000]) == [((1,), "added", None, "y" * 4_000)]
    assert changes({"a": "x" * 500}, {"a": "x" * 500, "b": "y" * 4_000}) == [
        (("b",), "added", None, "y" * 4_000)
    ]
    assert changes([["y" * 4_000, 1]], [[]]) == [
        ((0, 0), "removed", "y" * 4_000, None),
        ((0, 1), "removed", 1, None),
    ]


def test_lists_that_have_nothing_in_common_are_compared_by_position(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(difference, "MOST_COMPARED", 10)
    assert changes(list("abcde"), list("vwxyz")) == [
        ((at,), "changed", was, now) for at, (was, now) in enumerate(zip("abcde", "vwxyz", strict=True))
    ]


def test_a_missing_node_is_said_to_be_missing():
    pair = Pair(list(range(9_000)), list(range(1, 9_000)))
    pair.nodes.clear()
    with pytest.raises(CorruptTape, match="missing"):
        pair.changes()
