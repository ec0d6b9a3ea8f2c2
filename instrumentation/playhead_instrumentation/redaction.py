"""Credentials never reach the sink, in any mode.

What a credential is, `RULES` says: by the name under which it stands (a header, a query key, a field of
a body, a command-line option, an environment variable) or by its shape. A value that was found once is
known from then on and scrubbed wherever it turns up again. In what the program sends, a placeholder
stands in its stead, so that a replay with other credentials sends the same; in what it receives, as many
stars as it had bytes, so that chunks keep their lengths.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote, quote_plus, unquote_plus

import blake3

from playhead_instrumentation.scrubbing import Known, Scrubber
from playhead_semconv.headers import PLACEHOLDER
from playhead_semconv.places import Places
from playhead_semconv.settings import Settings

SHORTEST = 8
"""A shorter value is replaced where its name gives it away, and not looked for elsewhere."""

MOST_KNOWN = 2000
"""How many values are looked for; beyond that the oldest are forgotten."""

NEAR_BYTES = 256
"""How far at least before the new part of a body the search starts: nothing hides across the border."""

MOST_SEEN = 500
"""Headers and URLs of which it is remembered how they go on tape."""

Where = Literal["header", "query", "field", "option", "variable", "value"]


@dataclass(frozen=True, slots=True)
class Rule:
    """What matches ``pattern`` is a credential, unless it matches ``but``.

    ``where``: whether the pattern is for the name of a header, query key, body field, command-line
    option or environment variable, or for a value itself.
    """

    where: Where
    pattern: str
    but: str = r"(?!)"


_WORDS = (
    r"(?:^|[-_.])(?:token|secret|key|apikey|passw(?:or)?d|passphrase|credentials?|auth|signature)"
    r"(?:$|[-_.])"
)

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "header", r"authorization|cookie|" + _WORDS, r"idempotency|sec-websocket|cache-key|routing-key"
    ),
    Rule("query", r"^sig$|^code$|" + _WORDS, r"page|next|continu|cursor|sync"),
    Rule(
        "field",
        r"(?:client|app|consumer|webhook|signing)[_-]?secret|secret[_-]?(?:access[_-]?)?key|secret"
        r"|(?:client[_-]?)?assertion|(?:access|refresh|id|auth|session|security|bearer)[_-]?token"
        r"|(?:x-)?api[_-]?key|private[_-]?key|passw(?:or)?d|passphrase|code[_-]?verifier|authorization",
    ),
    Rule("option", r"^-{1,2}(?:.*[-_])?(?:token|secret|key|apikey|passw(?:or)?d|auth|credentials?)$"),
    Rule(
        "variable",
        r"(?:^|_)(?:TOKEN|SECRET|KEY|APIKEY|PASSW(?:OR)?D|PASSPHRASE|PASS|CREDENTIALS?|PAT|COOKIE)(?:$|_)",
    ),
    Rule(
        "value", r"sk-[\w-]{16,}|gh[pousr]_\w{20,}|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}"
    ),
)
"""The rules of every process."""

_USERINFO = re.compile(r"(?<=://)([^/?#@\s:]*):([^/?#@\s]*)(?=@)")
_QUERY = re.compile(r"(?<=[?&])([^=&#\s]+)=([^&#\s]*)")
_FORM = re.compile(rb"\A[\w.~%+-]+=")
_MARKERS = (
    b"secret",
    b'token"',
    b"assertion",
    b"passw",
    b'key"',
    b"passphrase",
    b"verifier",
    b"authoriz",
)
_OPAQUE = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9_+/=]{20,}\Z")


class Redactor:
    """Finds credentials, and remembers them. Safe from any thread."""

    def __init__(
        self, *, content: bool = True, key: bytes | None = None, rules: Iterable[Rule] = RULES
    ) -> None:
        """``content``: False is the preset ``metadata``: no body and no text is recorded.

        ``key``: 32 bytes for the digests of bodies before redaction.
        """
        self.content = content
        self._key = key or os.urandom(32)
        self.known = Known(MOST_KNOWN)
        self.places = Places(())
        """At a replay elsewhere: from the folders of this process to those of the recorded one."""
        by_place: dict[Where, list[Rule]] = {}
        for rule in rules:
            by_place.setdefault(rule.where, []).append(rule)
        self._rules = by_place
        self._patterns: dict[Where, tuple[re.Pattern[str], re.Pattern[str]]] = {}
        """Compiled when they are first asked: to compile all takes some time, with every start."""
        self._fields = "|".join(rule.pattern for rule in by_place.get("field", ())) or "(?!)"
        self._shape = re.compile("|".join(rule.pattern for rule in by_place.get("value", ())) or "(?!)")
        self._seen_headers: dict[tuple[bytes, bytes], tuple[str, str, int]] = {}
        self._urls: dict[str, str] = {}

    @classmethod
    def of_process(cls, settings: Settings) -> Redactor:
        """For this process: knows those in its environment, command line and ``.env`` files."""
        found = cls(content=settings.content != "metadata", key=key_of_user())
        found.environment(os.environ)
        found.arguments(sys.orig_argv)
        found.env_files(Path.cwd())
        return found

    @cached_property
    def _field(self) -> re.Pattern[bytes]:
        start = rf'"(?:{self._fields})"\s*:\s*(?:\{{\s*"value"\s*:\s*)?"'
        return re.compile(start.encode() + rb'((?:[^"\\]|\\.)*\\?)', re.IGNORECASE)

    @cached_property
    def _form_field(self) -> re.Pattern[bytes]:
        return re.compile(rf"(?:\A|(?<=&))(?:{self._fields})=([^&]*)".encode(), re.IGNORECASE)

    def learn(self, value: str) -> None:
        """From now on ``value`` is scrubbed wherever it turns up, in the usual encodings too."""
        value = value.strip()
        if len(value) < SHORTEST or value == PLACEHOLDER:
            return
        forms = {value, quote(value, safe=""), quote_plus(value), json.dumps(value)[1:-1]}
        forms.add(json.dumps(value, ensure_ascii=False)[1:-1])
        if self.known.add(form.encode("utf-8", "surrogatepass") for form in forms):
            self._urls, self._seen_headers = {}, {}

    def secret(self, where: Where, name: str) -> bool:
        """Whether what stands under ``name`` there is a credential."""
        found = self._patterns.get(where)
        if found is None:
            found = self._patterns[where] = _either(self._rules.get(where, []))
        pattern, but = found
        return pattern.search(name) is not None and but.search(name) is None

    def headers(self, headers: Iterable[tuple[bytes, bytes]]) -> tuple[list[str], int]:
        """Name, value, name, value, …, credentials replaced; how many were."""
        flat: list[str] = []
        count = 0
        seen = self._seen_headers
        for header in headers:
            known = seen.get(header)
            if known is None:
                known = self._kept_header(header)
            flat += known[:2]
            count += known[2]
        return flat, count

    def _kept_header(self, header: tuple[bytes, bytes]) -> tuple[str, str, int]:
        name, text = header[0].decode("latin-1"), header[1].decode("latin-1")
        if self.secret("header", name.lower()):
            kept, count = self._header(name.lower(), text)
        else:
            kept = self.text(text)
            count = int(kept != text)
        if len(self._seen_headers) > MOST_SEEN:
            self._seen_headers = {}
        self._seen_headers[header] = found = name, kept, count
        return found

    def _header(self, name: str, text: str) -> tuple[str, int]:
        if name == "set-cookie":
            pair, *attributes = text.split(";")
            key, equals, value = pair.partition("=")
            self.learn(value.strip().strip('"'))
            return ";".join([f"{key}{equals}{PLACEHOLDER}", *attributes]), 1
        if name == "cookie":
            pairs = [pair.partition("=") for pair in text.split(";")]
            for _, _, value in pairs:
                self.learn(value.strip().strip('"'))
            return ";".join(f"{key}={PLACEHOLDER}" for key, _, _ in pairs), len(pairs)
        scheme, space, token = text.partition(" ")
        if not space or not scheme.isalpha():
            self.learn(text)
            return PLACEHOLDER, 1
        self.learn(token)
        if scheme.lower() == "basic":
            try:
                user, _, password = base64.b64decode(token).decode().partition(":")
            except ValueError:
                pass
            else:
                self.learn(password or user)
        return f"{scheme} {PLACEHOLDER}", 1

    def url(self, url: str) -> str:
        """``url`` without userinfo, with the values of secret query keys replaced.

        Without content it is without its query.
        """
        known = self._urls.get(url)
        if known is not None:
            return known
        scrubbed = url if self.content else url.partition("?")[0]
        if "@" in scrubbed:
            scrubbed = _USERINFO.sub(self._userinfo, scrubbed)
        if "?" in scrubbed:
            scrubbed = _QUERY.sub(self._query, scrubbed)
        scrubbed = self.text(scrubbed)
        if len(self._urls) > MOST_SEEN:
            self._urls = {}
        self._urls[url] = scrubbed
        return scrubbed

    def _userinfo(self, found: re.Match[str]) -> str:
        self.learn(unquote_plus(found[2]))
        return f"{found[1]}:{PLACEHOLDER}"

    def _query(self, found: re.Match[str]) -> str:
        name = unquote_plus(found[1])
        if not self.secret("query", name.lower()) and not self.secret("field", name):
            return found[0]
        self.learn(unquote_plus(found[2]))
        return f"{found[1]}={PLACEHOLDER}"

    def text(self, text: str) -> str:
        """``text`` without the values that are known."""
        if self.places:
            text = self.places.text(text)
        data = text.encode("utf-8", "surrogatepass")
        spans = self.known.find(data)
        if not spans:
            return text
        return _replaced(data, spans).decode("utf-8", "surrogatepass")

    def body(self, data: bytes, start: int = 0) -> tuple[bytes, int]:
        """A request body with its credentials replaced, and how many were.

        ``start``: up to here it is known to hold none.
        """
        if self.places:
            data = self.places.data(data)
        start = max(0, start - max(NEAR_BYTES, self.known.longest_bytes))
        tail = data[start:] if start else data
        spans = self.fields(tail)
        if not start and _FORM.match(tail):
            spans += self._form(tail)
        spans += self.known.find(tail)
        if not spans:
            return data, 0
        return data[:start] + _replaced(tail, spans), len(_merged(spans))

    def fields(self, data: bytes) -> list[tuple[int, int]]:
        """Where in JSON text the values of secret fields stand; they are known from then on.

        The last one may lack its closing quote: the text ends within it.
        """
        spans: list[tuple[int, int]] = []
        for marker in _MARKERS:
            at = data.find(marker)
            while at >= 0:
                opening = data.rfind(b'"', max(0, at - 40), at + 1)
                found = self._field.match(data, opening) if opening >= 0 else None
                if found is not None and found.end(1) > found.start(1):
                    spans.append(found.span(1))
                    if found.end(1) < len(data):
                        self._learn_json(found[1])
                at = data.find(marker, at + len(marker))
        return spans

    def _learn_json(self, literal: bytes) -> None:
        try:
            self.learn(json.loads(b'"' + literal + b'"'))
        except ValueError:
            self.learn(literal.decode("utf-8", "replace"))

    def _form(self, data: bytes) -> list[tuple[int, int]]:
        spans = [found.span(1) for found in self._form_field.finditer(data) if found[1]]
        for begin, end in spans:
            self.learn(unquote_plus(data[begin:end].decode("utf-8", "replace")))
        return spans

    def digest(self, data: bytes) -> str:
        """Keyed digest of a body before redaction, hex: tells only whether two are equal."""
        return blake3.blake3(data, key=self._key).hexdigest()

    def response(self, content_type: str, content_encoding: str) -> Scrubber:
        """What takes the credentials out of a response."""
        events = content_type.startswith("text/event-stream")
        return Scrubber(self.known, None if events else self.fields, self._learn_json, content_encoding)

    def arguments(self, words: Iterable[str]) -> list[str]:
        """A command line with the values of secret options replaced; without content, its first word."""
        kept: list[str] = []
        awaited = False
        for word in words:
            name, equals, value = word.partition("=")
            if awaited and not word.startswith("--"):
                self.learn(word)
                kept.append(PLACEHOLDER)
                awaited = False
                continue
            awaited = False
            if word.startswith("-") and self.secret("option", name.lower()):
                awaited = not equals
                if equals:
                    self.learn(value)
                    word = f"{name}={PLACEHOLDER}"
            elif equals and self.secret("variable", name.upper()):
                self.learn(value)
                word = f"{name}={PLACEHOLDER}"
            self._learn_shapes(word)
            kept.append(self.text(self.url(word)))
        return kept if self.content else kept[:1]

    def shell(self, command: str) -> str:
        """A command of a shell; without content, the program that it calls first."""
        if self.content:
            return self.text(self.url(command))
        return next((word for word in command.split() if "=" not in word), "")

    def environment(self, variables: Mapping[str, str]) -> None:
        """Learn the credentials among environment variables."""
        for name, value in variables.items():
            found = _USERINFO.search(value)
            if found is not None:
                self.learn(unquote_plus(found[2]))
            if self.secret("variable", name.upper()) and not value.startswith(("/", "./", "~")):
                self.learn(value)
            self._learn_shapes(value)

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

    def _learn_shapes(self, text: str) -> None:
        for found in self._shape.finditer(text):
            self.learn(found[0])


def _either(rules: list[Rule]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    pattern, but = (
        "|".join(f"(?:{part})" for part in parts) or r"(?!)"
        for parts in ([rule.pattern for rule in rules], [rule.but for rule in rules])
    )
    return re.compile(pattern), re.compile(but)


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if merged and begin < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged


def _replaced(data: bytes, spans: list[tuple[int, int]]) -> bytes:
    parts: list[bytes] = []
    at = 0
    for begin, end in _merged(spans):
        parts += (data[at:begin], PLACEHOLDER.encode())
        at = end
    return b"".join([*parts, data[at:]])


def key_of_user(environ: Mapping[str, str] = os.environ) -> bytes | None:
    """The key of this user's digests, made when there is none; None where it cannot be kept."""
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
