"""Names of credentials: of JSON fields, settings, form fields, and parts of multipart bodies.

Each is given as words. It is found in every spelling (``api_key``, ``apiKey``, ``API-KEY``, …), also
after a prefix (``openai_api_key``, ``PGPASSWORD``), and never before a suffix (``password_hash``,
``max_tokens``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec


class SecretField(msgspec.Struct, frozen=True):
    """A name, as words.

    ``alone``: it marks a credential only without a prefix, and only for an opaque value.
    """

    words: str
    alone: bool = False


FIELDS: Final[tuple[SecretField, ...]] = (
    *(
        SecretField(words)
        for words in (
            "api key",
            "secret key",
            "private key",
            "signing key",
            "encryption key",
            "account key",
            "master key",
            "service key",
            "subscription key",
            "access key",
            "shared key",
            "storage key",
            "auth key",
            "app key",
            "api secret",
            "token secret",
            "private token",
            "user token",
            "access token",
            "refresh token",
            "id token",
            "auth token",
            "session token",
            "security token",
            "bearer token",
            "bot token",
            "api token",
            "deploy token",
            "client secret",
            "app secret",
            "consumer secret",
            "webhook secret",
            "signing secret",
            "shared secret",
            "client assertion",
            "code verifier",
            "authorization",
            "passphrase",
            "pass phrase",
            "passcode",
            "password",
            "passwd",
            "pwd",
            "pass word",
            *(f"password {suffix}" for suffix in ("1", "2", "confirmation", "confirm", "again")),
            *("passwords", "api keys", "secret keys", "private keys", "access keys"),
            *("access tokens", "refresh tokens", "auth tokens", "api tokens", "client secrets"),
            "secret value",
            "secret string",
            "secret binary",
            "csrf token",
            "xsrf token",
            *(
                f"{of} pass"
                for of in ("db", "user", "root", "admin", "mail", "smtp", "ftp", "ssh", "redis")
            ),
            "secret",
            "set cookie",
        )
    ),
    *(
        SecretField(words, alone=True)
        for words in (
            *("token", "assertion", "auth", "pat", "pass", "jwt", "cookie", "credential"),
            *("secrets", "credentials"),
        )
    ),
)


def styles(words: str) -> Iterator[str]:
    """Yield the spellings of a name.

    >>> sorted(set(styles("api key")))[:4]
    ['API KEY', 'API key', 'API-KEY', 'API.KEY']
    """
    parts = words.split()
    capitals = [part.capitalize() for part in parts]
    for joint in ("_", "-", "", ".", " "):
        yield joint.join(parts)
        yield joint.join(parts).upper()
        yield joint.join(capitals)
    yield parts[0] + "".join(capitals[1:])
    for first in (parts[0].upper(), capitals[0]):
        yield " ".join((first, *parts[1:]))


_NAMES: Final = tuple(sorted(field.words.replace(" ", "") for field in FIELDS if not field.alone))


def is_field(name: str) -> bool:
    """Whether a value under ``name`` is a credential, whatever it looks like.

    >>> is_field("openaiApiKey"), is_field("PGPASSWORD"), is_field("max_tokens"), is_field("token")
    (True, True, False, False)
    """
    return re.sub(r"[-_.\s\[\]]", "", name).lower().endswith(_NAMES)
