"""Any request with values of the replay in it is recognised; one that differs in more is not."""

from __future__ import annotations

import base64
import json
import random
import uuid
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.letters import LETTERS
from support.tapes.volatile import START_NS, Replay, instant, request

from playhead_core.normalize import Bijection, Unlike, pairs_of, verify
from playhead_instrumentation.replayer.volatile import Proposal

LITERALS = st.text("abcxyz ,:{}\"'\\/ü€\n", min_size=1, max_size=12)
KINDS = ("uuid", "hex", "token", "iso", "epoch", "float")


class Values:
    """Values of a recorded run and of its replay, of the same kinds, in the same order."""

    def __init__(self) -> None:
        self.replay = Replay()
        self._draw = random.Random(5)
        self._count = 0

    def make(self, kind: str) -> tuple[Any, Any]:
        self._count += 1
        if kind in ("iso", "epoch"):
            after = self._count / 64
            self.replay.reads(after / 2)
            if kind == "iso":
                return instant(after).isoformat(), instant(after / 2).isoformat()
            milliseconds = START_NS // 10**6
            return str(milliseconds + int(after * 1000)), str(milliseconds + int(after * 500))
        if kind == "float":
            now = self._draw.random()
            self.replay.handed_out.note_number(now)
            return f"{self._draw.random():.12f}", repr(now)
        was, now = self._draw.randbytes(16), self._draw.randbytes(16)
        self.replay.handed_out.note_bytes(now)
        if kind == "hex":
            return was.hex()[:20], now.hex()[:20]
        if kind == "token":
            return tuple(base64.urlsafe_b64encode(one).decode().rstrip("=") for one in (was, now))
        return tuple(str(uuid.UUID(bytes=one, version=4)) for one in (was, now))


SHAPES = st.lists(
    st.lists(st.one_of(st.sampled_from(KINDS).map(lambda kind: (kind,)), LITERALS), max_size=6),
    max_size=5,
)


def bodies(shapes: list[list[Any]]) -> tuple[Replay, list[list[Any]], list[list[Any]]]:
    """The pieces of each text, recorded and now; between two values stands at least a space."""
    values = Values()
    sides: tuple[list[list[Any]], list[list[Any]]] = ([], [])
    for shape in shapes:
        texts: tuple[list[Any], list[Any]] = ([], [])
        for piece in shape:
            is_literal = isinstance(piece, str)
            made = (piece, piece) if is_literal else values.make(*piece)
            for side, text in zip(texts, made, strict=True):
                side += [text, " "] if is_literal else [" ", text, " "]
        for side, text in zip(sides, texts, strict=True):
            side.append(text)
    return values.replay, *sides


def body(texts: list[list[Any]]) -> dict[str, Any]:
    return {"messages": [{"content": "".join(pieces)} for pieces in texts], "n": len(texts)}


@given(SHAPES)
def test_what_was_handed_out_is_recognised_and_verified(shapes: list[list[Any]]):
    replay, recorded, now = bodies(shapes)
    found = replay.compare(body(recorded), body(now))
    assert isinstance(found, Proposal), str(found)
    assert replay.volatile.accept(found) is None
    assert pairs_of(found.text) == found.pairs
    earlier = Bijection()
    assert verify(request(body(recorded)), request(body(now)), found.pairs, earlier) is None
    assert verify(request(body(recorded)), request(body(now)), found.pairs, earlier) is None
    if found.pairs:
        assert verify(request(body(recorded)), request(body(now)), found.pairs[1:]) is not None


@given(
    SHAPES.filter(lambda shapes: any(isinstance(one, str) for shape in shapes for one in shape)),
    st.data(),
)
def test_a_change_anywhere_else_is_a_difference(shapes: list[list[Any]], data: st.DataObject):
    replay, recorded, now = bodies(shapes)
    places = [
        (text, index)
        for text, shape in enumerate(shapes)
        for index, piece in enumerate(now[text])
        if piece in shape and isinstance(piece, str) and recorded[text][index] == piece
    ]
    text, index = data.draw(st.sampled_from(places))
    old = now[text][index]
    at = data.draw(st.integers(0, len(old) - 1))
    sign = data.draw(st.sampled_from("abcxyzQ09 -_.:+").filter(lambda sign: sign != old[at]))
    now[text][index] = old[:at] + sign + old[at + 1 :]
    found = replay.compare(body(recorded), body(now))
    assert isinstance(found, Unlike), found
    pairs = replay.compare(body(recorded), body(bodies(shapes)[2]))
    assert isinstance(pairs, Proposal)
    assert verify(request(body(recorded)), request(body(now)), pairs.pairs) is not None


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False)
    | st.text(LETTERS, max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(LETTERS, max_size=4), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(JSON, JSON)
def test_values_of_the_program_are_equal_or_different(recorded: Any, now: Any):
    """With nothing handed out, requests are like each other where they are equal."""
    replay = Replay()
    found = replay.compare(recorded, now)
    if json.dumps(recorded, sort_keys=True) == json.dumps(now, sort_keys=True):
        assert isinstance(found, Proposal)
    if isinstance(found, Proposal):
        assert recorded == now
    assert isinstance(replay.compare(recorded, json.loads(json.dumps(recorded))), Proposal)


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_any_bytes(recorded: bytes, now: bytes):
    found = Replay().compare(recorded, now)
    assert isinstance(found, Proposal) == (recorded == now) or recorded.lstrip()[:1] in (b"{", b"[")
