import pytest

from playhead_core.difference import (
    Difference,
    body_difference,
    first_difference,
    json_difference,
    text_difference,
)


@pytest.mark.parametrize(
    ("tape", "now", "path", "left", "right"),
    [
        (b'{"a":{"b":[1,2]}}', b'{"a":{"b":[1,3]}}', "$.a.b[1]", "2", "3"),
        (b'{"a":1}', b'{"a":1,"b":2}', "$.b", "(absent)", "2"),
        (b'{"a":1,"b":null}', b'{"a":1}', "$.b", "null", "(absent)"),
        (b"[1,2]", b"[1]", "$[1]", "2", "(absent)"),
        (b"[1]", b"[1,{}]", "$[1]", "(absent)", "{}"),
        (b'{"a":1}', b'{"a":true}', "$.a", "1", "true"),
        (b'{"a":"x"}', b'{"a":["x"]}', "$.a", '"x"', '["x"]'),
        (b"one\ntwo\n", b"one\n2\n", "line 2", "two", "2"),
        (b"one\n", b"one\ntwo\n", "line 2", "(absent)", "two"),
        (b"one\n", b"one", "line 1", "'one\\n'", "'one'"),
        (b"\xff\x00\x01", b"\xff\x00\x02", "byte 2", "01", "02"),
        (b"\xff\x00", b"\xff\x00\x02", "byte 2", "(end)", "02"),
    ],
)
def test_the_first_difference_is_named_with_both_sides(
    tape: bytes, now: bytes, path: str, left: str, right: str
):
    assert body_difference(tape, now) == Difference(path, left, right)


@pytest.mark.parametrize(("tape", "now"), [(b'{"a": 1.0}', b'{"a":1}'), (b"x", b"x"), (b"", b"")])
def test_what_is_the_same_has_no_difference(tape: bytes, now: bytes):
    assert body_difference(tape, now) is None


def test_lines_are_compared_even_where_both_texts_are_json():
    assert text_difference(b"1\n2\n", b"1\n3\n") == Difference("line 2", "2", "3")


def test_long_values_are_shortened():
    found = json_difference("x" * 1000, "y")
    assert found is not None
    assert found.tape == '"' + "x" * 199 + "…"


@pytest.mark.parametrize(
    ("tape", "now", "offset"),
    [(b"abc", b"abd", 2), (b"abc", b"ab", 2), (b"", b"a", 0), (b"xbc", b"abc", 0), (b"a", b"a", None)],
)
def test_the_first_differing_byte(tape: bytes, now: bytes, offset: int | None):
    assert first_difference(tape, now) == offset
