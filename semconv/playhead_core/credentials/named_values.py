"""Finds the value that the name of a credential introduces: in JSON, settings, forms, XML, options.

Where the syntax leaves no doubt (a JSON field, a line of settings, a form), every value is a credential
but placeholders and sentences. In code and prose, a value has to look like one. Every search ends after
a bounded number of bytes, so that a text of repeated names is searched in linear time.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final, NamedTuple

from playhead_core.lazy_patterns import lazy

_IN_STRING: Final = {
    b'"': lazy(rb'(?:[^"\\]|\\.)*\\?', re.DOTALL),
    b"'": lazy(rb"(?:[^'\\]|\\.)*\\?", re.DOTALL),
}


def end_ofstring_value(data: bytes, at: int, escape: bytes, quote: bytes) -> tuple[int, bool]:
    """Return where the string ends that begins at ``at``, and whether its end is in ``data``.

    ``escape``: the backslashes before its quotes.
    """
    if not escape:
        found = _IN_STRING[quote].match(data, at)
        end = at if found is None else found.end()
        return end, data[end : end + 1] == quote
    end = string_end(data, at, escape + quote)
    return (len(data), False) if end is None else (end, True)


def string_end(data: bytes, at: int, closing: bytes, escapes: int = 0) -> int | None:
    """Return where a string ends that ``closing`` ends: a quote, after backslashes in a nested string.

    None: its end is not in ``data``. ``escapes``: backslashes of the string directly before ``at``,
    where it may end. A level of JSON doubles each backslash and puts one before a quote, so the number
    of backslashes before a quote tells to which level it belongs.
    """
    depth, quote = len(closing) - 1, closing[-1:]
    end = data.find(quote, at)
    while end >= 0:
        begin = end
        while begin > at and data[begin - 1] == 0x5C:
            begin -= 1
        count = end - begin + (escapes if begin == at else 0)
        if count % (2 * depth + 2) == depth:
            return end - depth
        end = data.find(quote, end + 1)
    return None


class Kind(IntEnum):
    """How a credential was found."""

    KNOWN = 0
    """A known value."""
    BEGUN = 1
    """The data ends within a known value; ``rest`` is the missing part."""
    SHAPE = 2
    """A shape. ``rest``: what ends a private key, where the data ends within it; else empty."""
    FIELD = 3
    """The value of a field. ``rest``: what closes it, where the data ends within it; empty: complete."""
    ADDRESS = 4
    """The userinfo of a URL, before the host."""
    MASK = 5
    """A mask of a credential: nothing to learn."""
    PIECE = 6
    """A known value begins here, or a string ends with its beginning: another may hold the rest."""
    UNSURE = 7
    """The data ends within what may become a shape."""


class CredentialSpan(NamedTuple):
    """Position of a credential: first byte, and the byte after the last."""

    begin: int
    end: int
    kind: Kind
    rest: bytes = b""


LONGEST: Final = 512
"""Bytes of a value without quotes that are matched; what continues it belongs to it."""

FOLLOWS_NAME: Final = frozenset(bytes((one,)) for one in b"\"'\\=:>%<]& \t\r\n")
"""Characters after a name that can introduce a value: the ``token`` in ``max_tokens`` has none."""

_PARTS: Final = {
    b"Q": rb"\\*[\"']",
    b"LINE": rb"(?:\r?\n|\\+(?:r\\+)?n)",
    b"SCHEME": rb"(?:Bearer|Basic|Token|ApiKey|Digest|token|bearer|basic)(?:\s{1,8}|%20)",
    b"E": rb"&(?:quot|apos|#34|#39);",
    b"SIGN": rb"(?:\]|%5[Dd])?\s{0,8}(?:=>|:=|[:=>]|%3[DdAa])\s{0,8}",
    b"TAG": rb"(?:(?:!!|&)[\w-]{1,32}[ \t]{1,8}){0,2}",
    b"FIELD": rb"\\*[\"'][\w-]{1,32}\\*[\"']\s{0,8}:\s{0,8}(?:\\*\"[^\"\\]{0,64}\\*\"|[\w.]{1,16})",
}


def pattern(text: bytes) -> re.Pattern[bytes]:
    """Compile ``text``; ``<Q>`` (a quote), ``<LINE>``, … stand for parts that several patterns share."""
    for name, part in _PARTS.items():
        text = text.replace(b"<%b>" % name, part)
    return lazy(text)


_OPENS_STRING: Final = pattern(
    rb"(?:\])?(\\*)[\"'](?:\s{0,8}(?::|=>)"
    rb"|(?:\s{0,8},\s{0,8}<FIELD>){0,3}\s{0,8},\s{0,8}<Q>(?:[vV]alue|stringValue)<Q>\s{0,8}:"
    rb"|[^<>]{0,64}?\s[vV]alue\s{0,8}=|\]\s{0,8}=(?![=~]))"
    rb"\s{0,8}(?:\{\s{0,8}<Q>(?:value|stringValue)<Q>\s{0,8}:\s{0,8})?(?:\[\s{0,64})?[bru]?(\\*)([\"'])"
)
"""What follows the name of a JSON field (or of a key in a dictionary as Python prints it), of a pair
``{"name": …, "value": …}``, of an XML element with ``value=``, or of an item that is assigned."""
_VALUE_BEFORE: Final = pattern(
    rb"[vV]alue(?:<Q>\s{0,8}:|\s{0,8}=)\s{0,8}(\\*[\"'])([^\"'\\\r\n]{1,512})\1\s{0,8},?\s{0,8}"
    rb"(?:<FIELD>\s{0,8},\s{0,8})?(?:<Q>)?(?:[nN]ame|[kK]ey)(?:<Q>\s{0,8}:|\s{0,8}=)\s{0,8}<Q>[\w.-]{0,64}\Z"
)
"""What precedes a name in a pair whose value comes first."""
_NEXT_WORD: Final = pattern(rb"(\\*)[\"']\s{0,8},\s{0,8}(\\*)([\"'])")
"""What follows an option, or the name of a header, in a list of words."""
_NAMED: Final = lazy(rb"(?:name|key)\s?=\s?\\*[\"'][^\"'\r\n<>]{0,64}\Z")
"""What precedes a name that an attribute holds, in XML or in the head of a multipart part."""
_NUMBER: Final = lazy(rb"\\*[\"']\s{0,8}:\s{0,8}(-?[0-9]{4,512})(?![\w.])")
"""What follows the name of a JSON field with a number."""
_ASSIGNED: Final = pattern(
    rb"[\"']?<SIGN><TAG>(?:<SCHEME>)?"
    rb"(?:(\\*)(?:\"([^\"\r\n]{1,512}?)\1\"|'([^'\r\n]{1,512}?)\1')"
    rb"|`([^`\s]{1,512})`|([^\s\"'&;,<>(){}\[\]\\|`]{1,512}))"
)
"""What follows the name of a setting: ``NAME=value``, ``name: value``, ``<name>value``."""
_TYPED: Final = lazy(
    rb"\s{0,8}:\s{0,8}[\w.\[\]<>|&' ]{1,40}?\s{0,8}=\s{0,8}"
    rb"(\\*)(?:\"([^\"\r\n]{1,512}?)\1\"|'([^'\r\n]{1,512}?)\1')"
)
"""What follows the name of a variable with a type."""
_ESCAPED: Final = pattern(
    rb"<E>\s{0,8}[:=]\s{0,8}<E>((?:(?!<E>)[^\r\n]){1,512})<E>|&gt;((?:(?!&lt;)[^\r\n]){1,512})&lt;/"
)
"""What follows a name in JSON or XML whose quotes and brackets are escaped for HTML."""
_CONTINUED: Final = lazy(rb"[^\s\"'&;,<>(){}\[\]\\|`]*")
_ELEMENT: Final = lazy(
    rb"(?:\s[^<>]{0,255})?>\s{0,64}(?:<!\[CDATA\[)?([^<>\r\n]{1,512}?)(?:\]\]>)?\s{0,64}</"
)
"""What follows the name of an XML element."""
_ELEMENT_VALUE: Final = lazy(
    rb"(?:\s[^<>]{0,128})?\s[vV]alue\s{0,8}=\s{0,8}(?:\"([^\"]{1,512})\"|'([^']{1,512})')"
)
"""What follows the name of an XML element whose value is an attribute."""
_ATTRIBUTE: Final = pattern(rb"<Q>[^<>]{0,128}>\s{0,64}(?:<value>)?([^<>\r\n]{1,512})</")
"""What follows a name in an attribute of the XML element that holds the value."""
_NEXT_ELEMENT: Final = lazy(
    rb"\s{0,8}</(?:\w{1,16}:)?(?:name|key)>\s{0,64}<(?:\w{1,16}:)?(?:value|string)>([^<>\r\n]{1,512})</",
    re.IGNORECASE,
)
"""What follows a name that is itself the text of an XML element."""
_NEXT_LINE: Final = pattern(
    rb"(?:<Q>)?[ \t]{0,8}<LINE>[ \t]{0,64}[vV]alue:[ \t]{1,8}(?:<Q>)?([^\s\"'\\]{1,512})"
)
"""What follows a name in a pair in YAML."""
_BLOCK: Final = pattern(
    rb":[ ]{1,8}<TAG>[|>][+-]?[0-9]?[ \t]{0,8}<LINE>([ \t]{1,64})"
    rb"([^\s\\][^\r\n\\]{0,511}(?:<LINE>\1[^\r\n\\]{1,512}){0,64})"
)
"""What follows a name with a block of lines in YAML."""
_WHOLE_LINE: Final = pattern(
    rb"(?:=|: <TAG>)(?:<SCHEME>)?((?:(?!!!|[&;][\w.%\[\]-]{1,64}=)[^\s\"'\\]){1,512})"
    rb"(?=[ \t]{0,64}(?:[\r\n&;]|\\+[rn]|[\"']|\Z))"
)
"""What follows a name that begins a line of settings (``.env``, YAML)."""
_SPACED_LINE: Final = pattern(
    rb"[ \t]{1,8}=[ \t]{1,8}([^\s\"'\\()\[\]{}]{1,512})(?=[ \t]{0,64}(?:[\r\n]|\\+[rn]|[\"']|\Z))"
)
"""As `_WHOLE_LINE`, with spaces (ini, TOML), where the value may also be a name in code."""
_FORM: Final = pattern(rb"(?:\]|%5[Dd])?=(?!=)(?:<SCHEME>)?([^\s\"'\\&;]{1,512})")
"""What follows a name in a form, a query, a connection string or a shell command."""
_QUOTED_IN_URL: Final = lazy(
    rb"%22(?:%20|\+)?(?::|%3[Aa])(?:%20|\+)?%22((?:[^%\"&\s]|%(?!22)[0-9A-Fa-f]{2}){1,512})%22"
)
"""What follows a name in JSON that is encoded for a URL."""
_PART: Final = pattern(
    rb"\\*\"(?:;[^\r\n\\]{0,255})?<LINE>(?:[^\r\n\\]{1,512}<LINE>){0,8}<LINE>([^\r\n\\]{1,4096})"
)
"""What follows the name of a multipart part."""
_OPTION: Final = lazy(rb"\s{1,8}(?:(\\*[\"'])([^\"'\\\r\n]{1,512})\1|([^\s\"'\\-][^\s\"'\\]{0,511}))")

HARMLESS: Final = lazy(
    rb"(?:\$[A-Z_]+[0-9]?|\$\{\w+\}|\$\([^()]*\)|\$?\{\{[^{}]*\}\}|\{[A-Za-z_.\[\]]*[0-9]?\}"
    rb"|<[A-Za-z][A-Za-z _-]*>|(?:%[A-Za-z][:/@.]{0,3})+|%[A-Z_]+%|%\(\w+\)s|\[[A-Za-z _-]*\]"
    rb"|\*+|\.{3,}|[xX]{3,}"
    rb"|(?i:your[ _-][a-z _-]*|change[_-]?me|string|str|text|number|integer|int|bool|boolean|object|none"
    rb"|null|nil|true|false|bearer|basic|token|required|optional|password|secret|hidden|redacted|undefined"
    rb"|example|any|bytes|char|unknown|empty|env|secretstr))\Z",
    re.DOTALL,
)
"""References, placeholders and words that are no credential; a value that only begins like one is."""
_IDENTIFIER: Final = lazy(rb"[A-Za-z_][A-Za-z_.]*[0-9]?\Z")
_OPAQUE: Final = lazy(rb"(?=.*[0-9])(?=.*[A-Za-z])[\w.~+/=-]{16,}\Z", re.DOTALL)
_PATH: Final = lazy(rb"(?:~|\.{1,2})?/(?:[a-z][a-z0-9._-]*/)*[a-z0-9._-]*\Z")
_CODE: Final = lazy(rb"\s*[),\]};]")
"""The text between two string literals, the first of which ends with a name and a colon."""
_PAGING: Final = lazy(rb"(?:page|next|cursor|continuation|sync)[_.-]?\Z", re.IGNORECASE)
"""What precedes ``token`` in the name of a place in a list."""

_LETTERS: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
_QUOTES: Final = (b'"', b"'")
_WORDS: Final = frozenset((b"password", b"passwd", b"pwd", b"passphrase", b"passcode", b"secret"))
"""Names that people use as a password, too; elsewhere a value that ends with its name is a name."""
_LINE_BEGINS: Final = (b"\n", b"\t", b"\\", b"- ", b"  ", b"rt ", *_QUOTES)
"""What precedes a name that begins a line; also ``\\n`` in JSON, YAML items, ``export``, a quote."""


def value_under(data: bytes, begin: int, end: int, alone: bool) -> CredentialSpan | None:
    """Return the value under the name ``data[begin:end]``; None if it is not a credential.

    ``alone``: the name marks an opaque value only, and in JSON only without a prefix.
    """
    start = max(0, begin - 64)
    start += len(data[start:begin].rstrip(_LETTERS))
    span = _introduced(data, begin, end, start, alone)
    if span is None:
        return None
    name, value = data[begin:end].lower(), data[span.begin : span.end]
    if name == b"pwd" and value[:1] in (b"/", b"~"):
        return None  # a folder
    name = data[start:end] if name in _WORDS else name
    return None if name.lower() not in _WORDS and _letters(value).endswith(_letters(name)) else span


def _letters(text: bytes) -> bytes:
    return re.sub(rb"[^a-z]", b"", text.lower()) if len(text) < 64 else text


def _introduced(data: bytes, begin: int, end: int, start: int, alone: bool) -> CredentialSpan | None:
    """As `value_under`, for whatever value. ``start``: where the word begins that ends with the name."""
    after = data[end : end + 1]
    if alone and (_PAGING.search(data, start, begin) or data[begin - 1 : begin].isalnum()):
        return None
    if after in _QUOTES or after == b"\\" or data.startswith((b']"', b"]'", b"]\\"), end):
        if alone and data[begin - 1 : begin] not in _QUOTES:
            return None
        opening = _OPENS_STRING.match(data, end)
        if opening is not None and opening[1] == opening[2]:
            return string_value(data, opening, data[begin:end], alone)
        span = _in_quotes(data, begin, end, start, alone)
        if span is not None or after == b"\\":
            return span
    span = _setting(data, begin, end, start, alone)
    if span is not None:
        return span
    found = _TYPED.match(data, end) or _ASSIGNED.match(data, end)
    if found is not None:
        return _assigned(data, found, alone)
    if after in b" \t" and data.startswith(b"-", start):
        found = _OPTION.match(data, end)
        if found is not None and not HARMLESS.match(found[2] or found[3]):
            return _span(found)
    return None


def _span(found: re.Match[bytes]) -> CredentialSpan:
    """Return the group of ``found`` that matched last."""
    return CredentialSpan(*found.span(found.lastindex or 0), Kind.FIELD)


def _in_quotes(data: bytes, begin: int, end: int, start: int, alone: bool) -> CredentialSpan | None:
    """Return the value of a name that a quote ends, where no string follows as the value of a field."""
    number = None if alone else _NUMBER.match(data, end)
    if number is not None:
        return _span(number)
    word = _NEXT_WORD.match(data, end)
    if word is not None and word[1] == word[2]:
        return _word(data, word, start, end, alone)
    if data[begin - 1 : begin] in _QUOTES or data[start - 1 : start] in _QUOTES:
        before = _VALUE_BEFORE.search(data, max(0, begin - 700), begin)
        if before is not None and not alone and not HARMLESS.match(before[2]):
            return _span(before)
    found = _NEXT_LINE.match(data, end)
    if found is None and _NAMED.search(data, max(0, begin - 80), begin):
        found = _PART.match(data, end) or _ATTRIBUTE.match(data, end)
    return None if found is None or HARMLESS.match(found[1]) else _span(found)


def _word(
    data: bytes, opening: re.Match[bytes], start: int, name_end: int, alone: bool
) -> CredentialSpan | None:
    """Return the value after an option, a header in a pair, or the name of a variable in a call."""
    at = opening.end()
    end, closed = end_ofstring_value(data, at, opening[2], opening[3])
    value = data[at:end]
    if not closed or len(value) > LONGEST or not value or HARMLESS.match(value):
        return None
    around = data[start - 2 - len(opening[1]) :][:1] + data[end + 1 + len(opening[2]) :][:1]
    is_pair = not alone and around in (b"[]", b"()") and _OPAQUE.match(value) is not None
    in_call = (
        not alone and around == b"()" and data[start:name_end].isupper() and not _IDENTIFIER.match(value)
    )
    if data.startswith(b"-", start) or in_call or is_pair:
        return CredentialSpan(at, end, Kind.FIELD)
    return None


def _setting(data: bytes, begin: int, end: int, start: int, alone: bool) -> CredentialSpan | None:
    """Return the value of a name in a place that holds nothing but settings, whatever it looks like."""
    after, before = data[end : end + 1], data[max(0, start - 3) : start]
    found: re.Match[bytes] | None = None
    if after == b"&":
        found = _ESCAPED.match(data, end)
    elif after == b"%" and data.startswith(b"%22", end):
        found = _QUOTED_IN_URL.match(data, end)
    elif after in b"<\r\n":
        found = (_NEXT_ELEMENT if after == b"<" else _NEXT_LINE).match(data, end)
    elif data[max(0, begin - 64) : start].rstrip(_LETTERS + b":").endswith(b"<"):
        found = _ELEMENT.match(data, end) or _ELEMENT_VALUE.match(data, end)
    elif after in b"=]%: \t":
        word = data[start:end]
        in_form = before.endswith((b"&", b"?", b";", b"[")) or word.startswith((b"--", b"5B", b"5b"))
        if in_form or (after == b"=" and word.isupper()):
            found = _FORM.match(data, end)
            telling = found is not None and word.isupper() and is_plausible(found[1])
            alone = alone and not telling
        if found is None and (start == 0 or before.endswith(_LINE_BEGINS)):
            found = _BLOCK.match(data, end) or _WHOLE_LINE.match(data, end)
            if found is not None and found[1][-1:] in b",;(){}[]:" and found[1][:2] != b"${":
                return None  # code
            found = found or _spaced(data, end)
    if found is None:
        return None
    span = _span(found)
    value = data[span.begin : span.end]
    if HARMLESS.match(value) or _prose(value) or (alone and not _OPAQUE.match(value)):
        return None
    return _whole(data, span)


def _spaced(data: bytes, end: int) -> re.Match[bytes] | None:
    """Match a setting with spaces around ``=``, whose value is no name of a variable and no count."""
    found = _SPACED_LINE.match(data, end)
    if found is None or _IDENTIFIER.match(found[1]) or found[1].isdigit():
        return None
    return None if found[1][-1:] in b",;:" else found


def _assigned(data: bytes, found: re.Match[bytes], alone: bool) -> CredentialSpan | None:
    """Return the value of an assignment, which may be code, or a word in a sentence."""
    span = _span(found)
    value = data[span.begin : span.end]
    quoted = found.lastindex in (2, 3)
    given = quoted and not alone and len(value) > 2 and not _CODE.match(value)
    if given and not HARMLESS.match(value) and not _prose(value):
        return span
    if data[span.end : span.end + 1] in (b"(", b"[") and not quoted:
        return None  # code
    if not is_plausible(value) or (quoted and b" " in value) or (alone and not _OPAQUE.match(value)):
        return None
    return span if quoted else _whole(data, span)


def _whole(data: bytes, span: CredentialSpan) -> CredentialSpan:
    """Return ``span`` with what continues it, if it is as long as a pattern matches."""
    if span.end - span.begin < LONGEST:
        return span
    rest = _CONTINUED.match(data, span.end)
    return span if rest is None else CredentialSpan(span.begin, rest.end(), Kind.FIELD)


def _prose(value: bytes) -> bool:
    """Whether a value is a sentence. A pass phrase has a few words and no full stop.

    >>> _prose(b"The password of the user."), _prose(b"correct horse battery staple")
    (True, False)
    """
    spaces = value.count(b" ")
    return spaces > 5 or (spaces > 1 and value.rstrip()[-1:] in b".!?:,")


_SCHEME: Final = pattern(rb"<SCHEME>")


def string_value(
    data: bytes, opening: re.Match[bytes], name: bytes, alone: bool
) -> CredentialSpan | None:
    """Return the value of the JSON field ``name``, which begins behind ``opening``."""
    at, escape, quote = opening.end(), opening[2], opening[3]
    end, closed = end_ofstring_value(data, at, escape, quote)
    scheme = _SCHEME.match(data, at, end)
    if scheme is not None:
        at = scheme.end()
    value = data[at:end]
    if not value:
        return None
    if closed:
        prose = _prose(value) and not value.startswith(b"-----") and name.lower() != b"passphrase"
        if prose or HARMLESS.match(value) or (alone and _OPAQUE.match(value) is None):
            return None
    elif alone and _OPAQUE.match(value) is None:
        return None
    return CredentialSpan(at, end, Kind.FIELD, b"" if closed else escape + quote)


def is_plausible(value: bytes) -> bool:
    """Whether a value in plain text, outside of JSON, can be a credential.

    >>> is_plausible(b"hunter2hunter2"), is_plausible(b"config.api_key"), is_plausible(b"must")
    (True, False, False)
    """
    if len(value) < 8 or HARMLESS.match(value) or _IDENTIFIER.match(value) or _PATH.match(value):
        return value.startswith(b"[redacted]")
    return not value.isalpha() and not (value.isdigit() and len(value) < 12)
