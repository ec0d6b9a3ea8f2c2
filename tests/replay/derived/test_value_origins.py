"""A value is found in what the program was given before, also in another spelling, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from playhead_replay.derived.value_origins import Source, origins_of


def source(text: str, time_ns: int = 1) -> Source:
    return Source("file", f"at {time_ns}", "", time_ns, lambda: text)


@pytest.mark.parametrize(
    ("value", "text", "exact"),
    [
        ("mia@x.example", "Write to mia@x.example.", True),
        ("Café Oslo", '{"at": "Caf\\u00e9 Oslo"}', True),
        ("two\nlines", '{"at": "two\\nlines"}', True),
        ("a b&c", "q=a+b%26c", True),
        (81, '{"order": 81}', True),
        ("DE89370400440532013000", "DE89 3704 0044 0532 0130 00", False),
        ("order_number", "Order number: 7", False),
        ("straße", "STRASSE 7", False),
        (1234.5, "It costs 1,234.50.", False),
        (1234.5, "Es kostet 1.234,50 €", False),
        ("+491701234567", "Call +49 170 123-45 67.", False),
        ("Tom & Jerry", "Tom &amp; Jerry", True),
        ("2026-11-29", "due on 29 November 2026", False),
        ("2026-11-29", "Nov. 29th, 2026", False),
        ("29.11.2026", "at 2026-11-29T10:00", False),
        ("\uff11\uff12\uff13\uff14x", "the code 1234X", False),
    ],
)
def test_a_value_is_found_in_its_spellings(value: Any, text: str, exact: bool) -> None:
    [[origin]] = origins_of([source(text)], [value], before_ns=2)
    assert origin.exact == exact


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (81, "1814 or 8.1 or 18:81a"),
        ("to", "together"),
        (12.5, "12,345 and 125"),
        ("ab", "a b"),
        (1234567, "1.234.568 or 12 34567 8"),
        ("2026-11-29", "29 October 2026, 11/29/26"),
        ("", "anything"),
        ("x" * 2_000, "y" * 2_000),
    ],
)
def test_other_values_are_not_taken_for_it(value: Any, text: str) -> None:
    assert origins_of([source(text)], [value], before_ns=2) == [[]]


def test_the_earliest_source_comes_first_and_later_ones_do_not_count() -> None:
    def unreadable() -> str:
        raise ValueError("damaged")

    sources = [
        Source("database", "broken", "", 1, unreadable),
        source("nothing", 2),
        source("order 81", 3),
        source("81 again", 4),
        source("81 after it", 5),
    ]
    [found, none] = origins_of(sources, [81, "82"], before_ns=5)
    assert [one.name for one in found] == ["at 3", "at 4"]
    assert found[0].quote == "order 81"
    assert none == []
