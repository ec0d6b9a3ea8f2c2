"""Which of several spans that tell of one call is the step, and whose tokens count."""

from __future__ import annotations

import pytest

from playhead_genai.steps import MOST_AROUND, CallTime, Nesting, Role

OTHER, SERVED, REQUEST, STEP, CALL, OWN = Role

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
    ring = [("a", "c", CALL), ("b", "a", REQUEST), ("c", "b", CALL), ("d", "d", REQUEST)]
    nesting = Nesting(ring)
    assert nesting.steps() == {"d"}


def test_spans_that_are_nested_without_end_are_looked_at_in_time_that_grows_with_their_number(
    monkeypatch: pytest.MonkeyPatch,
):
    looked = 0
    above = Nesting.above

    def counted(nesting: Nesting[str], id: str):
        nonlocal looked
        for one in above(nesting, id):
            looked += 1
            yield one

    monkeypatch.setattr(Nesting, "above", counted)
    nested = [(str(n), str(n - 1), CALL if n % 2 else OTHER) for n in range(1, 4000)]
    spans = [("0", "", OWN), *nested, *((f"r{n}", "3998", REQUEST) for n in range(4000))]
    steps = Nesting(spans).steps()
    assert "3999" in steps and looked < 10_000 * MOST_AROUND


GPT, CLAUDE = frozenset({"gpt-4o"}), frozenset({"claude-sonnet-5"})
OURS = CallTime("a", 10, 20, GPT)


def beside(*spans: tuple[str, str, Role], calls: list[CallTime[str]]) -> Nesting[str]:
    """Spans below a root, a chain below it, another root, and a server that the first one asks."""
    above = [("root", "", OTHER), ("chain", "root", OTHER), ("other", "", OTHER)]
    above += [("tool", "root", STEP), ("asked", "tool", OTHER)]
    return Nesting([*above, *spans], lambda: calls)


@pytest.mark.parametrize(
    ("parent", "told", "one"),
    [
        ("root", CallTime("b", 9, 21, GPT), True),
        ("chain", CallTime("b", 9, 21, GPT | CLAUDE), True),
        ("root", CallTime("b", 10, None, GPT), True),
        ("root", CallTime("b", 9, 21, CLAUDE), False),
        ("root", CallTime("b", 9, 21, frozenset()), False),
        ("root", CallTime("b", 9, 15, GPT), False),
        ("root", CallTime("b", 11, 21, GPT), False),
        ("other", CallTime("b", 9, 21, GPT), False),
        ("asked", CallTime("b", 9, 21, GPT), False),
    ],
)
def test_a_span_beside_ours_that_is_around_it_in_time_tells_of_it_too(
    parent: str, told: CallTime[str], one: bool
):
    nesting = beside(("a", "root", OWN), ("b", parent, CALL), calls=[told, OURS])
    assert nesting.steps() == ({"a", "tool"} if one else {"a", "b", "tool"})
    assert nesting.bearers({"a", "b"}) == nesting.steps() - {"tool"}
    assert nesting.bearers({"b"}) == {"b"}  # ours does not know them


def test_two_of_ours_at_one_time_are_two():
    spans = [("a", "root", OWN), ("b", "root", OWN)]
    assert beside(*spans, calls=[OURS, CallTime("b", 9, 21, GPT)]).steps() == {"a", "b", "tool"}


def test_calls_at_one_time_are_as_many_as_ours():
    ours = [CallTime(f"{at}", 10 * at, 10 * at + 30, GPT) for at in range(1, 9)]
    theirs = [CallTime(f"f{at}", 10 * at - 1, 10 * at + 31, GPT) for at in range(1, 9)]
    spans = [(one.id, "root", CALL if one in theirs else OWN) for one in (*ours, *theirs)]
    assert beside(*spans, calls=[*theirs, *ours]).steps() == {"tool", *(one.id for one in ours)}
