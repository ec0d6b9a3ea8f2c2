"""A credential that is sent in pieces is found as if it were sent at once."""

from __future__ import annotations

import json

import pytest

from playhead_instrumentation.redaction import Redactor
from playhead_instrumentation.redaction.pieces import HELD_BYTES, Body, Messages

KNOWN = "zq77opaquevaluewithoutashape5521"
FIELD = "UNKNOWNunderitsname9876543210abc"
SHAPE = "sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
TEXT = json.dumps(
    {"a": KNOWN, "password": FIELD, "note": f"use {SHAPE} now", "plain": "as it was"}
).encode()
FORM = f"a=1&client_secret={FIELD}&code=shortcode&b=2".encode()


def redactor() -> Redactor:
    made = Redactor()
    made.learn(KNOWN)
    return made


def sent(pieces: list[bytes]) -> bytes:
    body = Body(redactor())
    return b"".join([*[body.add(one)[0] for one in pieces], body.rest()[0], body.rest()[0]])


@pytest.mark.parametrize("text", [TEXT, FORM])
def test_a_body_in_two_pieces_is_recorded_as_one_at_once(text: bytes):
    whole, count = redactor().body(text)
    assert count >= 2
    for cut in range(len(text) + 1):
        assert sent([text[:cut], text[cut:]]) == whole
    assert sent([text[at : at + 1] for at in range(len(text))]) == whole


def test_a_long_body_is_recorded_as_it_comes_and_as_one_at_once():
    filler = b"x" * (HELD_BYTES // 2 - 100)
    text = b"".join(filler + TEXT for _ in range(6))
    whole, _ = redactor().body(text)
    for size in (999, HELD_BYTES, HELD_BYTES * 3):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert sent(pieces) == whole
    body = Body(redactor())
    seen = b"".join(body.add(text[at : at + 999])[0] for at in range(0, len(text), 999))
    assert len(whole) - len(seen) <= HELD_BYTES


@pytest.mark.parametrize("value", [KNOWN, FIELD, SHAPE])
def test_of_a_credential_in_two_messages_only_its_first_characters_are_recorded(value: str):
    begin = TEXT.index(value.encode())
    for cut in range(begin, begin + len(value)):
        messages = Messages(redactor())
        kept = b"".join(messages.add(one)[0] for one in (TEXT[:cut], TEXT[cut:]))
        assert value[14:].encode() not in kept and b"as it was" in kept, (cut, kept)
        assert not any(value[at : at + 16].encode() in kept for at in range(len(value) - 16)), (
            cut,
            kept,
        )


def test_messages_without_a_cut_are_recorded_as_bodies():
    messages = Messages(redactor())
    for _ in range(2):
        assert messages.add(TEXT) == redactor().body(TEXT)
    assert messages.add(b'{"plain": "1234567"}') == (b'{"plain": "1234567"}', 0)


def test_a_known_value_over_many_messages_leaves_one_placeholder():
    messages = Messages(redactor())
    pieces = ["say " + KNOWN[:10], KNOWN[10:20], KNOWN[20:] + " then"]
    assert [messages.add(one.encode())[0] for one in pieces] == [b"say [redacted]", b"", b" then"]
