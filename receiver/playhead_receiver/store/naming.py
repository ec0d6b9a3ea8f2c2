"""Names of runs (the agent's name and a number), and of stores in a database."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

NAMELESS = "run"
LONGEST = 60

SCHEMA = "playhead"
"""Schema of a database that a URL means without ``?schema=``."""
LONGEST_SCHEMA = 63
"""Bytes of a name that PostgreSQL tells from others."""


def agent_word(name: str) -> str:
    """``name`` as it stands in a run's name: lower case, digits, dashes; ``run`` if nothing is left.

    It does not end in a dash and a number, so that the number of the run can be told from it.
    """
    word = re.sub(r"[^a-z0-9._]+", "-", name.lower()).strip("-._")[:LONGEST].strip("-._")
    word = re.sub(r"-(?=\d+\Z)", "_", word)
    return word or NAMELESS


def place_name(url: str) -> str:
    """The URL of a database without user, password and options."""
    parts = urlsplit(url)
    host = parts.hostname or dict(parse_qsl(parts.query)).get("host", "")
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}{parts.path}"


def split_schema(url: str) -> tuple[str, str]:
    """The URL of a database without ``schema``, which is ours, and the schema."""
    parts = urlsplit(url)
    options = parse_qsl(parts.query, keep_blank_values=True)
    kept = urlencode([(key, value) for key, value in options if key != "schema"])
    return urlunsplit(parts._replace(query=kept)), dict(options).get("schema") or SCHEMA


def place_of_tenant(url: str, tenant: str) -> str:
    """The URL of the store that a tenant has in the same database: a schema of its own."""
    bare, schema = split_schema(url)
    own = f"{schema}_{tenant}"
    if len(own.encode()) > LONGEST_SCHEMA:
        own = f"{schema[:20]}_{hashlib.sha256(own.encode()).hexdigest()[:40]}"
    parts = urlsplit(bare)
    query = parse_qsl(parts.query, keep_blank_values=True)
    return urlunsplit(parts._replace(query=urlencode([*query, ("schema", own)])))
