"""Split text into the words of the full text index. Index, query and highlights use the same words.

A word is a run of letters and digits; case and accents do not matter. In scripts that put no spaces
between words, and in Korean, whose words carry their particles, each character is a word, so that
any part of a sentence is found as a phrase.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from playhead_core.errors import UsageError

_UNSPACED = (
    "\u0e00-\u0edf"  # Thai, Lao
    "\u0f40-\u0fbc"  # Tibetan
    "\u1000-\u109f\ua9e0-\ua9fe\uaa60-\uaa7f"  # Myanmar
    "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    "\u1780-\u17dd"  # Khmer
    "\u1950-\u19df\u1a20-\u1aad"  # Tai
    "\u2e80-\u2fd5\u3005-\u3007\u3021-\u3029\u3041-\u312f\u31a0-\u31bf\u31f0-\u31ff"  # Chinese, Japanese
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uffdc\U00016fe0-\U00018cff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Blocks of scripts without spaces between words, as ranges of a character class."""
_UNSPACED_WORD = re.compile(f"[{_UNSPACED}]")


_NOT_ASCII = re.compile("[^\x00-\x7f][0-9A-Za-z\x80-\U0010ffff]*")
"""From a character that is not ASCII to the next one that ends a word for certain."""
_ASCII_WORD = frozenset(string.ascii_letters + string.digits)

REMEMBERED = 16_384
"""Maximum number of cached words, and of cached stretches around characters that are not ASCII."""
PART = 128
"""Number of characters that are checked at once for being ASCII."""
LONGEST_REMEMBERED = 64
"""Maximum length of cached words, in characters. Longer ones rarely repeat."""


class Word(NamedTuple):
    """A word, folded, and its position in the text: ``text[begin:end]``."""

    folded: str
    begin: int
    end: int


def words(text: str) -> Iterator[Word]:
    """The words of a text, in order.

    >>> [word.folded for word in words("Search_orders: Café")]
    ['search', 'orders', 'cafe']
    """
    for found in _word_pattern().finditer(text):
        yield Word(_folded(found[0]), found.start(), found.end())


def folded_words(text: str) -> list[str]:
    """The words of a text in any of its Unicode forms; without positions."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return [_folded(word) for word in _word_pattern().findall(text)]


def spaced_words(text: str) -> str:
    """Return a text that has the words of `folded_words` between spaces or other ASCII characters.

    Case of ASCII letters is as in the text. Most texts have few characters that are not ASCII: only the
    stretches of letters and digits around these are folded. No word reaches beyond its stretch, so it
    has the words that it would have in the whole text.

    >>> spaced_words("A-b: Café!")
    'A-b:  cafe !'
    """
    if text.isascii():
        return text
    parts: list[str] = []
    at = 0
    for begin, end in _stretches(text):
        while begin > at and text[begin - 1] in _ASCII_WORD:
            begin -= 1
        parts += (text[at:begin], _words_of(text[begin:end]))
        at = end
    return " ".join((*parts, text[at:]))


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    """Where `_NOT_ASCII` matches. The pattern is slow, so parts that are all ASCII are skipped first."""
    at = 0
    while at < len(text):
        if text[at : at + PART].isascii():
            at += PART
        elif (found := _NOT_ASCII.search(text, at)) is not None:
            yield found.span()
            at = found.end()


def _words_of(stretch: str) -> str:
    return (_remembered_words if len(stretch) <= LONGEST_REMEMBERED else _folded_stretch)(stretch)


def _folded_stretch(text: str) -> str:
    return " ".join(folded_words(text))


_remembered_words = lru_cache(REMEMBERED)(_folded_stretch)


def phrases(text: str) -> list[tuple[list[str], bool]]:
    """Parse a search text: for each word and each quoted phrase its words; True for a prefix (``*``).

    `UsageError` if there is no word.

    >>> phrases('"Order 81" ref*')
    [(['order', '81'], False), (['ref'], True)]
    """
    found = _phrases(text)
    if not found:
        raise UsageError("no word to search for")
    return found


def _phrases(text: str) -> list[tuple[list[str], bool]]:
    parsed = [
        (folded_words(phrase or word), word.endswith("*"))
        for phrase, word in re.findall(r'"([^"]*)"|(\S+)', text)
    ]
    return [(phrase, is_prefix) for phrase, is_prefix in parsed if phrase]


def highlights(text: str, search: str) -> list[tuple[int, int]]:
    """Positions of the words and phrases of a search text in a text, in order, without overlaps.

    >>> highlights("Order 81, reorder", '"order 81"'), highlights("reorder", "re*")
    ([(0, 8)], [(0, 2)])
    """
    said, wanted = list(words(text)), _phrases(search)
    found: list[tuple[int, int]] = []
    at = 0
    while at < len(said):
        ends = [_end(said, at, *one) for one in wanted if _is_at(said, at, *one)]
        if ends:
            found.append((said[at].begin, max(ends)))
        at += 1
        while ends and at < len(said) and said[at].begin < max(ends):
            at += 1
    return found


def share_in(text: str, search: str) -> float:
    """The share of the words and phrases of a search text that occur in a text; 1: all do.

    >>> share_in("Order 81, reorder", "81 order"), share_in("Order 81", 'order "81 order"')
    (1.0, 0.5)
    """
    wanted = phrases(search)
    said = [Word(word, 0, 0) for word in folded_words(text)]
    held = [any(_is_at(said, at, *one) for at in range(len(said))) for one in wanted]
    return sum(held) / len(wanted)


def _end(said: list[Word], at: int, phrase: list[str], is_prefix: bool) -> int:
    """The index after the last matching character of a phrase that begins at the index of a word."""
    last = said[at + len(phrase) - 1]
    return min(last.end, last.begin + len(phrase[-1])) if is_prefix else last.end


def _is_at(said: list[Word], at: int, phrase: list[str], is_prefix: bool) -> bool:
    """Whether a phrase begins at the index of a word."""
    last = at + len(phrase) - 1
    if last >= len(said) or any(said[at + i].folded != word for i, word in enumerate(phrase[:-1])):
        return False
    word = said[last].folded
    return word.startswith(phrase[-1]) if is_prefix else word == phrase[-1]


def _folded(word: str) -> str:
    if word.isascii():
        return word.lower()
    return (_remembered if len(word) <= LONGEST_REMEMBERED else _folded_letters)(word)


def _folded_letters(word: str) -> str:
    if _UNSPACED_WORD.match(word):  # its marks are vowels, tones and voicing, no accents
        return unicodedata.normalize("NFKC", word)
    plain = unicodedata.normalize("NFKD", word.casefold())
    return "".join(one for one in plain if unicodedata.category(one)[0] != "M")


_remembered = lru_cache(REMEMBERED)(_folded_letters)


@cache
def _word_pattern() -> re.Pattern[str]:
    """A word with its combining marks, which regular expressions do not take for letters."""
    marks = "".join(
        one for one in map(chr, range(0x300, 0x20000)) if unicodedata.category(one)[0] == "M"
    )
    letter = rf"[^\W_{_UNSPACED}]"
    return re.compile(rf"{letter}+(?:[{marks}]+{letter}*)*|(?=\w)[{_UNSPACED}][{marks}]*")
