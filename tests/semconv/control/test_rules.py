"""Rules in words."""

import pytest

from playhead_core.control.rules import read_rule, read_rules, rules_of_setting
from playhead_core.errors import UsageError


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("tool=send_email", "pause tool=send_email"),
        ("pause model=gpt-*", "pause model=gpt-*"),
        ("stop cost>1", "stop cost>1"),
        ("  stop   tokens>50000 ", "stop tokens>50000"),
        ("seconds>0.5", "pause seconds>0.5"),
        ("error", "pause error"),
        ("stop lost", "stop lost"),
        ("tool=pause it", "pause tool=pause it"),
    ],
)
def test_a_rule_is_an_action_and_a_condition(text: str, read: str):
    assert str(read_rule(text)) == read
    assert str(read_rule(read)) == read


@pytest.mark.parametrize(
    "text",
    ["", "pause", "tool=", "tool= x", "cost>", "cost>-1", "cost=1", "cost>1e9", "x" * 400, "stop it"],
)
def test_what_is_no_rule_is_refused(text: str):
    with pytest.raises(UsageError, match="is not a rule"):
        read_rule(text)


def test_the_nearest_condition_is_named():
    with pytest.raises(UsageError) as refused:
        read_rule("tokns>5")
    assert refused.value.hint.startswith("did you mean tokens?")


def test_too_many_rules_are_refused():
    with pytest.raises(UsageError, match="101 rules"):
        read_rules(["error"] * 101)


@pytest.mark.parametrize(
    ("value", "rules"),
    [
        ("", None),
        ("off", None),
        ("on", []),
        ("on; stop cost>1", ["stop cost>1"]),
        ("tool=x ; stop cost>1;", ["pause tool=x", "stop cost>1"]),
    ],
)
def test_a_setting_is_on_off_or_rules(value: str, rules: list[str] | None):
    found = rules_of_setting(value)
    assert (None if found is None else [str(rule) for rule in found]) == rules
