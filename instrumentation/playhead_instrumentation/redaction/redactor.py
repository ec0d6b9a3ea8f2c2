"""Finds credentials anywhere in the data, remembers them, and removes them.

A credential is recognized by the name under which it appears, or by its shape. A value that was found
once is removed wherever it appears again. In what the program sends, a placeholder replaces it, so that
a replay with other credentials sends the same. In what the program receives, a mask of the same number
of bytes replaces it, so that chunks keep their lengths.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote_plus

import blake3

from playhead_core.credentials import (
    FIELDS,
    SHAPES,
    CredentialSpan,
    Finder,
    SecretField,
    Shape,
    is_field,
    replaced,
)
from playhead_core.credentials.codings import codec
from playhead_core.credentials.masks import BEGINS, masked, united
from playhead_core.credentials.named_values import Kind
from playhead_core.credentials.responses import scrubbers
from playhead_core.credentials.rules import RULES, Rule, SecretNames, Where
from playhead_core.credentials.scrubbing import PlainScrubber, Scrubber
from playhead_core.credentials.spellings import keyed_digest, spellings
from playhead_core.lazy_patterns import lazy
from playhead_core.process.environment import Places
from playhead_core.rerun.headers import PLACEHOLDER
from playhead_core.settings import Settings

SHORTEST = 8
"""A shorter value is replaced only where its name marks it; it is not searched for elsewhere."""

MOST_KNOWN = 4000
"""How many spellings of values are searched for; beyond that the oldest are forgotten."""

NEAR_BYTES = 256
"""Bytes of old data that a search includes at least, to find values across the border to the new."""

SIGNED = "AWS4-"
"""Beginning of the schemes of AWS that sign one request: its signature is worth nothing elsewhere."""

MOST_SEEN = 500
"""Headers and URLs whose redacted form is cached."""

MOST_LATE = 100
"""Values learned late that one report holds at most."""

LARGEST: Final = (1 << 63) - 1
"""The largest number of an attribute."""

MOST_PACKED_BYTES = 1 << 20
"""A larger compressed body is not decompressed for the search."""

_PACKINGS: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5": "zstd"}
_PACKED: Final = (b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd")
"""How compressed bodies begin."""

_JSON: Final = (b"{", b"[")
"""How JSON begins."""

HIDDEN: Final = frozenset((Kind.KNOWN, Kind.SHAPE, Kind.FIELD, Kind.ADDRESS, Kind.MASK))
"""What is replaced in a whole body or text."""
_LEARNT: Final = frozenset((Kind.SHAPE, Kind.FIELD, Kind.ADDRESS))

_BEHIND_PATH = lazy(r"(?<=\S)[?#]\S*")
_QUERY = lazy(r"(?<=[?&#])([^=&#\s]+)=([^&#\s]*)")
_FORM = lazy(rb"\A[\w.~%+-]+=[^\s\"{]*\Z")
_FORM_FIELD = lazy(rb"(?:\A|(?<=&))([^=&]+)=([^&]*)")
_OPAQUE = lazy(r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9_+/=]{20,}\Z")
_MIXED = lazy(r"(?=.*\d)(?=.*[A-Z])(?=.*[a-z])\S{20,}\Z")
_WORD = lazy(
    r"[\d.,:-]{0,15}|(?i:development|production|staging|testing|localhost|password|passphrase|changeme|undefined"
    r"|disabled|enabled|required|optional|redacted|anonymous|username|authorization|credentials?|secretkey)"
)
"""Values that stand for "no credential" where one is expected."""
_NUMBER = lazy(r"-?[\d.,:]{0,15}(?:ms|s|m|h|d)?\Z")
_LOGIN_OPTIONS = frozenset(("-u", "--user", "-U", "--proxy-user"))


Header = tuple[str | bytes, Any]
"""Name and value: text, bytes, or what a library makes a text of."""


_KeptHeader = tuple[tuple[str, str], int]
"""Name and value as they go on the tape, and how many credentials were replaced."""


def _sent(word: Any) -> str:
    """A word of a header as it is sent."""
    sent = word if isinstance(word, bytes) else str(word).encode("latin-1", "replace")
    return sent.decode("latin-1")


class Redactor:
    """Finds credentials and remembers them. Safe from any thread."""

    def __init__(
        self,
        *,
        content: bool = True,
        key: bytes | None = None,
        rules: Iterable[Rule] = RULES,
        fields: tuple[SecretField, ...] = FIELDS,
        shapes: tuple[Shape, ...] = SHAPES,
    ) -> None:
        """``content``: False is the preset ``metadata``: no body and no text is recorded.

        ``key``: 32 bytes for the digests of bodies before redaction.
        """
        self.content = content
        self._key = key or os.urandom(32)
        self._names = SecretNames(rules)
        self._finder = Finder(MOST_KNOWN, fields, shapes, dense=False)
        self._values: dict[str, None] = {}
        self.late: list[str] | None = None
        """Keyed digests of the values that were learned since the last `take_late`; None before the
        tape begins."""
        self.places = Places(())
        """Replay elsewhere: mapping from the folders of this process to those of the recorded one."""
        self._seen_headers: dict[Header, _KeptHeader] = {}
        self._urls: dict[str, str] = {}

    @classmethod
    def of_process(cls, settings: Settings) -> Redactor:
        """Return this process's redactor; it knows its environment, arguments and ``.env`` files."""
        found = cls(content=settings.content != "metadata", key=key_of_user())
        found.environment(os.environ)
        found.arguments(sys.orig_argv)
        found.env_files(Path.cwd())
        found.late = []
        return found

    def take_late(self) -> list[str]:
        """Return the credentials that the program revealed since the last call as `keyed_digest` does.

        They may be on the tape already: they were not known as credentials when they were recorded.
        """
        late = self.late
        if not late:
            return []
        self.late = []
        return late

    def learn(self, value: str, *, late: bool = True) -> bool:
        """Remove ``value`` wherever it appears from now on, also in the usual encodings.

        Numbers and common setting words are not learned: other texts contain them, too. Returns whether
        the value is new. ``late``: it may have reached the program before, and so be on the tape.
        """
        value = value.strip()
        if len(value) < SHORTEST or value in self._values or _WORD.fullmatch(value):
            return False
        if PLACEHOLDER in value or value.startswith(BEGINS.decode()):
            return False
        # The finder first: a thread that meets the value as known must find it. The caches after it:
        # what another thread redacts meanwhile goes into those that are dropped.
        if self._finder.add(spellings(value), value.encode("utf-8", "surrogatepass")):
            self._urls, self._seen_headers = {}, {}
        self._values[value] = None
        if late and self.late is not None and len(self.late) < MOST_LATE:
            self.late.append(keyed_digest(value, self._key))
        return True

    def secret(self, where: Where, name: str) -> bool:
        """Whether the value under ``name`` in ``where`` is a credential."""
        return self._names.secret(where, name)

    def headers(self, headers: Iterable[Header]) -> tuple[list[str], int]:
        """Return name, value, name, value, … with credentials replaced, and how many were replaced."""
        flat: list[str] = []
        count = 0
        seen = self._seen_headers
        for header in headers:
            known = seen.get(header)
            if known is None:
                known = self._kept_header(header)
            flat += known[0]
            count += known[1]
        return flat, count

    def _kept_header(self, header: Header) -> _KeptHeader:
        seen = self._seen_headers
        name, text = _sent(header[0]), _sent(header[1])
        if self.secret("header", name.lower()) and not _NUMBER.match(text):
            kept, count = self._header(name.lower(), text)
        else:
            kept = self.url(text) if "=" in text or "://" in text else self.text(text)
            count = int(kept != text)
        found = (name, kept), count
        if isinstance(header[1], str | bytes):  # values of other types may be equal in other words
            if len(seen) > MOST_SEEN:
                seen.clear()
            seen[header] = found
        return found

    def _header(self, name: str, text: str) -> tuple[str, int]:
        if name == "set-cookie":
            pair, *attributes = text.split(";")
            key, equals, value = pair.partition("=")
            self._learn_sent(value.strip().strip('"'), late=False)
            return ";".join([f"{key}{equals}{PLACEHOLDER}", *attributes]), 1
        if name == "cookie":
            pairs = [pair.partition("=") for pair in text.split(";")]
            for _, _, value in pairs:
                self._learn_sent(value.strip().strip('"'))
            return ";".join(f"{key}={PLACEHOLDER}" for key, _, _ in pairs), len(pairs)
        scheme, space, token = text.partition(" ")
        if not space or not scheme.isalpha():
            if not scheme.startswith(SIGNED):
                self._learn_sent(text)
            return PLACEHOLDER, 1
        self._learn_sent(token)
        if scheme.lower() == "basic":
            try:
                user, _, password = base64.b64decode(token).decode().partition(":")
            except ValueError:
                pass
            else:
                self._learn_sent(password or user)
        return f"{scheme} {PLACEHOLDER}", 1

    def _learn_sent(self, value: str, *, late: bool = True) -> None:
        """As `learn`, for bytes as text; other texts may hold them as the UTF-8 that they are."""
        self.learn(value, late=late)
        if not value.isascii():
            self.learn(value.encode("latin-1", "replace").decode("utf-8", "replace"), late=late)

    def url(self, url: str) -> str:
        """Return ``url`` without userinfo, and with the values of secret query keys replaced.

        Without content: also without query and fragment.
        """
        urls = self._urls
        known = urls.get(url)
        if known is not None:
            return known
        scrubbed = _QUERY.sub(self._query, url) if "=" in url else url
        scrubbed = self.text(scrubbed)
        if not self.content:
            scrubbed = _BEHIND_PATH.sub("", scrubbed)
        if len(urls) > MOST_SEEN:
            urls.clear()
        urls[url] = scrubbed
        return scrubbed

    def _query(self, found: re.Match[str]) -> str:
        name = unquote_plus(found[1])
        if not self.secret("query", name.lower()) and not is_field(name):
            return found[0]
        value = unquote_plus(found[2])
        if not value or _NUMBER.match(value):
            return found[0]
        self.learn(value)
        return f"{found[1]}={PLACEHOLDER}"

    def speed_up(self) -> None:
        """Build a faster search, which takes several ms. Call it from a background thread."""
        self._finder.speed_up()

    @property
    def learned(self) -> int:
        """Number of values that are known; it never falls."""
        return len(self._values)

    def holds(self, data: bytes) -> bool:
        """Whether a credential is in ``data``. Those that are found are learned."""
        return bool(self.spans(data))

    def under(self, name: str, value: Any) -> Any:
        """Return ``value``, a text or a number, without what its ``name`` marks as a credential."""
        data = json.dumps({name: value}, ensure_ascii=False).encode("utf-8", "surrogatepass")
        spans = self.spans(data)
        if not spans:
            return value
        try:
            kept = json.loads(replaced(data, spans))
        except ValueError:
            return PLACEHOLDER
        found = next(iter(kept.values()))
        return min(found, LARGEST) if isinstance(found, int) else found  # what OTLP can carry

    def text(self, text: str) -> str:
        """Return ``text`` without its credentials, with folders as the recorded process had them."""
        return self.cleaned(self.places.text(text) if self.places.any else text)

    def cleaned(self, text: str) -> str:
        """Return ``text`` without its credentials."""
        data = text.encode("utf-8", "surrogatepass")
        spans = self.spans(data)
        if not spans:
            return text
        return replaced(data, spans).decode("utf-8", "surrogatepass")

    def body(self, data: bytes, start: int = 0) -> tuple[bytes, int]:
        """Return a request body with its credentials replaced, and how many were replaced.

        ``start``: number of leading bytes that are known to hold none.
        """
        if data.startswith(_PACKED) and len(data) <= MOST_PACKED_BYTES:
            return self._packed_body(data)
        if self.places.any:
            data = self.places.data(data)
        if start:
            start = max(0, start - max(NEAR_BYTES, self._finder.longest_bytes))
        tail = data[start:] if start else data
        spans = self.spans(tail)
        if not start and b"=" in tail[:80] and _FORM.match(tail):
            spans += self._form(tail)
        if not spans:
            return data, 0
        count = len(united(spans))
        if data[:1] not in _JSON:
            from playhead_core.credentials.protobuf_messages import replaced_in_message  # few are binary

            whole = replaced_in_message(data, [(start + one, start + end) for one, end in spans])
            if whole is not None:
                return whole, count
        return data[:start] + replaced(tail, spans), count

    def _packed_body(self, data: bytes) -> tuple[bytes, int]:
        """As `body`, for one that is compressed: what is changed is compressed again."""
        from playhead_genai.providers.encodings import decode_body  # few bodies are compressed

        coding = _PACKINGS[data[:2]]
        text, problem = decode_body([("content-encoding", coding)], [data])
        kept, count = (b"", 0) if problem else self.body(text)
        both = codec(coding) if count else None
        if both is None:
            return data, 0
        encoder = both[1]()
        return encoder.pack(kept) + encoder.finish(), count

    def masked(self, data: bytes) -> bytes:
        """Return ``data`` with a mask of as many bytes in the place of each credential."""
        spans = self.spans(data)
        return masked(data, spans) if spans else data

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        """Return where credentials are; they may overlap.

        They are learned, and then also found before the place that revealed them.
        """
        spans = self._finder.find(data)
        if spans and self._learn_of(data, spans):
            spans = self._finder.find(data)
        return [(span.begin, span.end) for span in spans if span.kind in HIDDEN] if spans else []

    def _learn_of(self, data: bytes, spans: Iterable[CredentialSpan]) -> bool:
        new = False
        for span in spans:
            if span.kind in _LEARNT and not (span.kind is Kind.FIELD and span.rest):
                raw = data[span.begin : span.end]
                new |= self._learn_bytes(raw, late=span.kind is not Kind.SHAPE)
        return new

    def _came(self, raw: bytes) -> None:
        """A value arrived under a telling name or in a telling shape: it is on no tape."""
        self._learn_bytes(raw, late=False)

    def _went(self, raw: bytes) -> None:
        """A value was sent under a telling name or in a telling shape."""
        self._learn_bytes(raw, late=True)

    def _learn_bytes(self, raw: bytes, *, late: bool) -> bool:
        """As `learn`, for a value as it appears in JSON or in a URL. Returns whether anything is new."""
        text = raw.decode("utf-8", "replace")
        values = [text]
        while "\\" in values[-1] and len(values) < 4:
            try:
                plain = json.loads(f'"{values[-1]}"')
            except ValueError:
                break
            values.append(plain)
        if "%" in text:
            values.append(unquote_plus(text))
        return any([self.learn(value, late=late) for value in values])

    def _form(self, data: bytes) -> Iterator[tuple[int, int]]:
        for found in _FORM_FIELD.finditer(data):
            name = unquote_plus(found[1].decode("utf-8", "replace"))
            if found[2] and (is_field(name) or name.lower() in ("assertion", "token", "code")):
                self.learn(unquote_plus(found[2].decode("utf-8", "replace")))
                yield found.span(2)

    def digest(self, data: bytes) -> str:
        """Return a keyed digest of a body before redaction, in hex, to tell whether two are equal."""
        return blake3.blake3(data, key=self._key).hexdigest()

    def messages(self) -> PlainScrubber:
        """Return what finds the credentials in successive messages."""
        return PlainScrubber(self._finder, self._went, events=False)

    def response(self, content_type: str, content_encoding: str) -> Scrubber:
        """Return what removes the credentials from a response."""
        return scrubbers(content_type, content_encoding)(self._finder, self._came)

    def arguments(self, words: Iterable[str]) -> list[str]:
        """Return a command line with the values of secret options replaced.

        Without content: only its first word.
        """
        kept: list[str] = []
        awaited = login = False
        for word in words:
            name, equals, value = word.partition("=")
            if awaited and not word.startswith("--"):
                self.learn(word)
                kept.append(PLACEHOLDER)
                awaited = False
                continue
            if login and ":" in word:
                user, _, password = word.partition(":")
                self.learn(password)
                word = f"{user}:{PLACEHOLDER}"
            awaited, login = False, word in _LOGIN_OPTIONS
            if word.startswith("-") and self.secret("option", name.lower()):
                awaited = not equals
                if equals:
                    self.learn(value)
                    word = f"{name}={PLACEHOLDER}"
            elif equals and name.isidentifier() and self.secret("variable", name.upper()):
                self.learn(value)
                word = f"{name}={PLACEHOLDER}"
            kept.append(self.url(word))
        return kept if self.content else kept[:1]

    def environment(self, variables: Mapping[str, str]) -> None:
        """Learn the credentials among environment variables."""
        for name, value in variables.items():
            if self.secret("variable", name.upper()) and not _is_path(value):
                self.learn(value)
            self.spans(value.encode("utf-8", "surrogatepass"))

    def env_files(self, folder: Path) -> None:
        """Learn the credentials in the ``.env`` files of ``folder``."""
        for path in sorted(folder.glob(".env*")):
            try:
                lines = path.read_text("utf-8", "replace").splitlines() if path.is_file() else []
            except OSError:
                continue
            variables: dict[str, str] = {}
            for line in lines:
                name, equals, value = line.strip().removeprefix("export ").partition("=")
                value = value.strip().strip("'\"")
                if equals and not name.startswith("#"):
                    variables[name.strip()] = value
                    if _OPAQUE.match(value):
                        self.learn(value)
            self.environment(variables)


def _is_path(value: str) -> bool:
    """Whether a value that begins like a path is one, and not base64 that begins with a slash."""
    if not value.startswith(("/", "./", "~")):
        return False
    return _MIXED.match(value) is None or any(mark in value for mark in ".-") or os.path.exists(value)


def key_of_user(environ: Mapping[str, str] = os.environ) -> bytes | None:
    """Return the key of this user's digests, creating it if needed; None where it cannot be stored."""
    state = environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    path = Path(state, "playhead", "redaction.key")
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(os.urandom(32))
        key = path.read_bytes()
    except OSError:
        return None
    return key if len(key) == 32 else None
