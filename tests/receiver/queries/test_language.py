"""Mistakes in a query are said in a way that leads on."""

import pytest

from playhead_core.errors import UsageError
from playhead_receiver.queries.language import FIELDS, read_language
from playhead_receiver.storage.values.run_summaries import AttributeCondition


@pytest.mark.parametrize("text", ["agnt:refund", "stat>=3", "cost:3", "tool>=3", "fild:x"])
def test_an_unknown_field_names_all_fields(text: str):
    with pytest.raises(UsageError) as caught:
        read_language(text)
    for field in FIELDS:
        assert f" {field}" in caught.value.cause
    assert "duration>= duration<" in caught.value.cause


@pytest.mark.parametrize(
    ("text", "meant"),
    [("agnt:refund", "agent"), ("stats:x", "status"), ("usr:x", "user"), ("step>=3", "steps")],
)
def test_a_field_that_is_near_is_named(text: str, meant: str):
    with pytest.raises(UsageError, match=f"did you mean {meant}\\?"):
        read_language(text)


def test_the_fields_are_those_that_are_understood():
    values = {"status": "success", "mode": "all", "errors": "yes", "mark": "held", "level": "error"}
    values |= {"loop": "yes", "stuck": "silent_stream"}
    bounds = {"duration": "3s", "cost": "0.5", "tokens": "100", "steps": "10"}
    for field in FIELDS:
        for sign in (">=", "<"):
            if field in bounds:
                read_language(f"{field}{sign}{bounds[field]}")
        if field not in bounds:
            read_language(f"{field}:{values.get(field, '2d')}")


def test_counts_are_compared():
    query = read_language("tokens>=100 tokens<=2000 steps>3 steps<10").query
    assert (query.tokens_from, query.tokens_below) == (100, 2001)
    assert (query.steps_from, query.steps_below) == (4, 10)
    for text in ("tokens>=many", "steps<-1", "steps>=1.5"):
        with pytest.raises(UsageError, match="is not a number of"):
            read_language(text)
    assert read_language(f"tokens<{'9' * 50}").query.tokens_below == (1 << 63) - 1


def test_fields_with_several_values_may_be_given_several_times():
    query = read_language('user:anna tag:beta tag:"big spender" prompt_version:3').query
    assert query.words == (
        ("user", "anna"),
        ("tag", "beta"),
        ("tag", "big spender"),
        ("prompt_version", "3"),
    )
    with pytest.raises(UsageError, match="conversation: is given twice"):
        read_language("session:a conversation:b")


def test_a_name_with_a_dot_is_an_attribute():
    query = read_language('customer.tier:"very gold" .plan:pro http.response.status_code>=500').query
    assert query.attributes == (
        AttributeCondition("customer.tier", ":", "very gold"),
        AttributeCondition("plan", ":", "pro"),
        AttributeCondition("http.response.status_code", ">=", "500"),
    )
    assert read_language('"app.py:12"').query.attributes == ()
    with pytest.raises(UsageError, match="gold is not a number"):
        read_language("customer.tier>=gold")
    with pytest.raises(UsageError, match="customer_id: is not a field") as caught:
        read_language("customer_id:7")
    assert ".customer_id:" in caught.value.hint
