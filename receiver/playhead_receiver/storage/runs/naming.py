"""Names of runs (the agent's name and a number), and of stores in a database."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote, unquote

NAMELESS = "run"
LONGEST = 60

SCHEMA = "playhead"
"""Schema of a database if the URL has no ``?schema=``."""
LONGEST_SCHEMA = 63
"""Most bytes of a name in PostgreSQL; it ignores the rest."""


def agent_word(name: str) -> str:
    """The form of ``name`` in a run's name: lower case, digits, dashes; ``run`` if nothing is left.

    It does not end in a dash and a number, so that the run's number can be separated.
    """
    word = re.sub(r"[^a-z0-9._]+", "-", name.lower()).strip("-._")[:LONGEST].strip("-._")
    word = re.sub(r"-(?=\d+\Z)", "_", word)
    return word or NAMELESS


def printable_url(url: str) -> str:
    """The URL of a database without user, password and options."""
    base, _, query = url.partition("?")
    scheme, _, rest = base.partition("://")
    host, slash, database = rest.rpartition("@")[2].partition("/")
    if not host:
        host = next((unquote(value) for key, value in _options(query) if key == "host"), "")
    return f"{scheme}://{host}{slash}{database}"


def split_schema(url: str) -> tuple[str, str]:
    """Split the URL of a database into the URL without our option ``schema``, and the schema.

    The rest stays as written, so that several hosts, no host, and escapes mean what they mean to the
    driver.
    """
    base, _, query = url.partition("?")
    options = _options(query)
    schema = next((unquote(value) for key, value in reversed(options) if key == "schema"), "")
    return _joined(base, [one for one in options if one[0] != "schema"]), schema or SCHEMA


def tenant_url(url: str, tenant: str) -> str:
    """The URL of a tenant's store: a schema of its own in the same database."""
    return sibling_url(url, tenant)


def sibling_url(url: str, name: str) -> str:
    """The URL of another schema in the same database, named after that of ``url`` and ``name``."""
    bare, schema = split_schema(url)
    own = f"{schema}_{name}"
    if len(own.encode()) > LONGEST_SCHEMA:
        own = f"{schema[:20]}_{hashlib.sha256(own.encode()).hexdigest()[:40]}"
    base, _, query = bare.partition("?")
    return _joined(base, [*_options(query), ("schema", quote(own, safe=""))])


def is_readable(url: str) -> bool:
    """Whether a URL is unambiguous: no unescaped sign in user or password ends a part early."""
    base, _, query = url.partition("?")
    authority, _, database = base.partition("://")[2].partition("/")
    pieces = query.split("&") if query else []
    return authority.count("@") < 2 and not {"@", "#"} & set(database) and all("=" in p for p in pieces)


def _options(query: str) -> list[tuple[str, str]]:
    """Names and values of the options, as written."""
    pieces = (piece.partition("=") for piece in query.split("&") if piece)
    return [(key, value) for key, _, value in pieces]


def _joined(base: str, options: list[tuple[str, str]]) -> str:
    return base + ("?" if options else "") + "&".join(f"{key}={value}" for key, value in options)
