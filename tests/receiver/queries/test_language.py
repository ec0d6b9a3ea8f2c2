"""Mistakes in a query are said in a way that leads on."""

import pytest

from playhead_core.errors import UsageError
from playhead_receiver.queries.language import FIELDS, read_language


@pytest.mark.parametrize("text", ["agnt:refund", "stat>=3", "cost:3", "tool>=3", "fild:x"])
def test_an_unknown_field_names_all_fields(text: str):
    with pytest.raises(UsageError) as caught:
        read_language(text)
    for field in FIELDS:
        assert f" {field}" in caught.value.cause
    assert "duration>= duration<" in caught.value.cause


@pytest.mark.parametrize(("text", "meant"), [("agnt:refund", "agent"), ("stats:x", "status")])
def test_a_field_that_is_near_is_named(text: str, meant: str):
    with pytest.raises(UsageError, match=f"did you mean {meant}\\?"):
        read_language(text)


def test_the_fields_are_those_that_are_understood():
    values = {"status": "success", "mode": "all", "errors": "yes", "mark": "held"}
    for field in FIELDS:
        for sign in (">=", "<"):
            if field in ("duration", "cost"):
                read_language(f"{field}{sign}{'3s' if field == 'duration' else '0.5'}")
        if field not in ("duration", "cost"):
            read_language(f"{field}:{values.get(field, '2d')}")
