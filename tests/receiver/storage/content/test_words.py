"""What counts as a word of a search, in the scripts and spellings that agents meet."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead_core.errors import UsageError
from playhead_receiver.storage.content.words import (
    folded_words,
    highlights,
    phrases,
    share_in,
    spaced_words,
    words,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("call search_orders(ORD-77812)", ["call", "search", "orders", "ord", "77812"]),
        ("请退还订单12345", ["请", "退", "还", "订", "单", "12345"]),
        ("東京タワー", ["東", "京", "タ", "ワ", "ー"]),
        ("주문을 취소", ["주", "문", "을", "취", "소"]),
        ("คืนเงิน", ["คื", "น", "เ", "งิ", "น"]),
        ("ｶﾞｽ", ["ガ", "ス"]),
        ("हिन्दी में", ["हनद", "म"]),
        ("Straße, CAFÉ", ["strasse", "cafe"]),
        ("𠀋字", ["𠀋", "字"]),
        ("Ελλάδα Привет مرحبا", ["ελλαδα", "привет", "مرحبا"]),
    ],
)
def test_words_of_many_scripts(text: str, expected: list[str]):
    assert folded_words(text) == expected
    assert folded_words(unicodedata.normalize("NFD", text)) == expected
    assert share_in(text, text) == 1


MIXED = st.text(st.sampled_from('aZ9_ -."\\né\u0301ßİ東ーคืงﾞ한ﬁ①Å…—\u00a0ﷺ½ªΣς')) | st.text()


@given(MIXED)
def test_the_index_gets_the_words_that_a_query_looks_for(text: str):
    def tokens(indexed: str) -> list[str]:
        """What the tokenizer ``ascii`` of SQLite makes of a text."""
        return [
            "".join(one.lower() if one.isascii() else one for one in word)
            for word in re.findall("[0-9A-Za-z\x80-\U0010ffff]+", indexed)
        ]

    assert tokens(spaced_words(text)) == tokens(" ".join(folded_words(text)))


def test_words_keep_their_positions():
    text = "un cafe\u0301 à 東京_x"
    assert [text[word.begin : word.end] for word in words(text)] == [
        "un",
        "cafe\u0301",
        "à",
        "東",
        "京",
        "x",
    ]


def test_a_part_of_a_sentence_without_spaces_is_a_phrase():
    assert phrases("訂單 ref*") == [(["訂", "單"], False), (["ref"], True)]
    assert highlights("退還訂單。訂的單", "訂單") == [(2, 4)]
    assert share_in("訂的單", "訂單") == 0


def test_overlapping_phrases_are_one_highlight():
    assert highlights("order 81 shipped late", '"81 shipped" "order 81"') == [(0, 8)]


def test_a_search_without_words_is_refused():
    with pytest.raises(UsageError, match="no word"):
        phrases('"" _ …')
