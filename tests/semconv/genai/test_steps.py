"""Which of several spans that tell of one call is the step, and whose tokens count."""

from __future__ import annotations

import pytest

from playhead_semconv.genai.steps import Nesting, Role

OTHER, REQUEST, STEP, CALL, OWN = Role

TREES = {
    "an SDK's own span inside of ours": ({"a": ("", OWN), "b": ("a", CALL), "c": ("b", REQUEST)}, "a"),
    "a framework around ours": ({"a": ("", CALL), "b": ("a", OWN), "c": ("b", REQUEST)}, "b"),
    "all three": ({"a": ("", CALL), "b": ("a", OWN), "c": ("b", OTHER), "d": ("c", CALL)}, "b"),
    "a gateway": ({"a": ("", OWN), "b": ("a", REQUEST), "c": ("b", CALL)}, "c"),
    "a tool of a call asks a model": ({"a": ("", OWN), "b": ("a", STEP), "c": ("b", CALL)}, "bc"),
    "two of one framework's": ({"a": ("", CALL), "b": ("a", OWN), "c": ("a", OWN)}, "bc"),
    "a request beside the client's": ({"a": ("", CALL), "b": ("a", REQUEST), "c": ("a", OWN)}, "c"),
    "a request in a request": ({"a": ("", REQUEST), "b": ("a", REQUEST)}, "a"),
    "a request alone": ({"a": ("gone", OTHER), "b": ("a", REQUEST)}, "b"),
}


@pytest.mark.parametrize("name", TREES)
def test_one_span_of_a_call_is_the_step_in_whatever_order_they_come(name: str):
    tree, steps = TREES[name]
    spans = [(id, *one) for id, one in tree.items()]
    assert Nesting(spans).steps() == set(steps)
    for order in (spans, spans[::-1]):
        live = Nesting[str]()
        for one in order:
            live.add(*one)
        late = {"an SDK's own span inside of ours", "all three"} if order is not spans else set[str]()
        assert name in late or live.steps() == set(steps)


def test_tokens_count_once():
    spans = [("a", "", CALL), ("b", "a", OWN), ("c", "b", CALL), ("d", "c", REQUEST)]
    nesting = Nesting(spans)
    assert nesting.bearers({"a", "b", "c"}) == {"b"}
    assert nesting.bearers({"a", "c"}) == {"c"}  # ours does not know them
    assert nesting.bearers({"a", "b"}) == {"b"}
    assert nesting.bearers({"a"}) == {"a"}
    assert nesting.bearers(set()) == set()


def test_spans_in_a_ring_come_to_an_end():
    nesting = Nesting([("a", "c", CALL), ("b", "a", REQUEST), ("c", "b", CALL), ("d", "d", REQUEST)])
    assert nesting.steps() == {"d"}
