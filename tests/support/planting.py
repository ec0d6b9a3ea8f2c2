"""Distinct credentials of every class in docs/security.md, each planted in one place."""

from __future__ import annotations

import base64
import json
import zlib
from typing import NamedTuple

from playhead_core.credentials import FIELDS, SHAPES
from playhead_core.credentials.fields import styles

PLACES = ("prompt", "answer", "stdout", "file", "tool", "stream")
"""What the program sends, receives, prints, reads, gets from a tool, and gets in events."""

CLASSES = {
    "shapes of providers": "keys and tokens with the prefixes that providers document: {shapes}; JSON"
    " Web Tokens, private keys in PEM, `Bearer …`, `Basic …`, Telegram tokens, Azure client secrets,"
    " webhook addresses (Slack, Discord, Teams), `curl -u user:…`, `sshpass -p …`",
    "names": "the value of {names}, in every spelling, with or without a prefix; opaque values of"
    " {alone}. In JSON fields, JSON within strings, settings, forms, multipart parts, XML",
    "headers": "`authorization`, cookies, and names with `token`, `key`, `secret`, `password`, `auth`,"
    " `signature`; not counts, limits and numbers",
    "addresses": "user and password, a token before the host, secret keys of query and fragment, also in"
    " `Location`",
    "arguments": "values of secret options, `NAME=value`, `-u user:password`, `-H 'Authorization: …'`,"
    " also of child processes",
    "environment": "variables by their names (`…_TOKEN`, `PGPASSWORD`, `…_PWD`, …), and `.env` files",
    "files": "netrc, ini, `.env`, YAML, JSON that the program reads or writes",
    "known values": "a value that was found once, wherever it occurs again: as it is, in JSON, in URLs,"
    " in base64, across chunks of a response, across events of a model's answer (except up to its first"
    " five characters); not AWS request signatures, which are valid for one request only",
}
"""What is hidden, by class."""

NOT_HIDDEN = {
    "opaque": "a value without a known name or shape that is never used as a credential",
    "hex": "a value computed from a credential: hash, hex digits, ciphertext",
    "short": "a value of fewer than eight characters without a known name",
    "reference": "a reference or a placeholder: `$NAME`, `${NAME}`, `{{ name }}`,"
    " `<your key>`, `***`, `changeme`",
    "sentence": "a value after a name in a sentence (`my password is …`), a bare word assigned in code",
    "table": "a value below its name in a table, unless it is known; a value in a charset other than"
    " UTF-8",
    "split": "an unknown value, or its name, that is split over several events or prints",
    "late": "a value that the program used as a credential only after it was recorded: `playhead show`"
    " lists the locations, and `playhead redact RUN` removes it",
}
"""What is not hidden."""

WITHOUT_START = (
    "private key", "netrc", "bearer", "basic", "curl", "sshpass", "Telegram", "Azure client secret",
    "address of a webhook", "mysql", "login", "redis-cli", "sqlcmd", "SQL", "Oracle", "Dockerfile",
    "Azure SAS",
)  # fmt: skip
BODY = "aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uVwXyZ"


class Planted(NamedTuple):
    """One credential: its class, its place, and the text that contains it."""

    kind: str
    place: str
    text: str
    value: str


def key_of(start: str, number: int, *, hexed: bool) -> str:
    n = f"{number:03d}"
    special = {
        "AKIA": f"AKIAIOSFODNN7{n}EXAM",
        "ABIA": f"ABIAIOSFODNN7{n}EXAM",
        "ACCA": f"ACCAIOSFODNN7{n}EXAM",
        "A3-": f"A3-{n}ABC-ABCDEF-{n}12-ABCDE-12345-A1B2C",
        "SK": f"SK{n}" + "0123456789abcdef0123456789abc",
        "re_": f"re_{n}abcde_{BODY}",
        "pat.": f"pat.{n}{BODY[:20]}.{BODY[:24]}.{BODY[:20]}",
        "sat.": f"sat.{n}{BODY[:20]}.{BODY[:24]}.{BODY[:20]}",
        "ASIA": f"ASIAIOSFODNN7{n}EXAM",
        "SG.": f"SG.{n}{BODY[:22]}.{BODY}",
        "dapi": f"dapi{n}" + "0123456789abcdef0123456789abc",
        "eyJ": f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOi{n}fQ.{BODY}",
        "hf_": f"hf_{n}{BODY}",
    }
    if hexed:
        return special.get(start, start + f"{n}abcdef" * 3 + n + f"{number + 1:03d}"[:2])
    return special.get(start, f"{start}{n}{BODY}")


def planted() -> list[Planted]:
    """More than 150 credentials, with the places in turn."""
    found: list[Planted] = []

    def put(kind: str, text: str, value: str, place: str = "") -> None:
        found.append(Planted(kind, place or PLACES[len(found) % len(PLACES)], text, value))

    for shape in SHAPES:
        for start in shape.starts if shape.name not in WITHOUT_START else ():
            for wrapped in ("my key: {}", '{{"note": "{}"}}'):
                value = key_of(start, len(found), hexed="a-f" in shape.rest)
                put("shapes of providers", wrapped.format(value), value)
    value = f"MIIEvQIBADAN{len(found)}Bgkqhki"
    put("shapes of providers", f"-----BEGIN PRIVATE KEY-----\n{value}\n-----END PRIVATE KEY-----", value)
    for words in [field.words for field in FIELDS if not field.alone]:
        for style in list(dict.fromkeys(styles(words)))[::2]:
            value = f"Zq{len(found):03d}-planted-{BODY[:6]}"
            forms = (
                json.dumps({style: value}),
                json.dumps({"args": json.dumps({style: value})}),
                f"{style}={value}",
                f"export MY_{style}='{value}'",
            )
            put("names", forms[len(found) % 4], value)
    for kind, text in (
        ("files", "machine example.org login me password {}"),
        ("files", "[db]\npassword = {}\n"),
        ("files", "db:\n  password: {}\n"),
        ("addresses", "postgres://me:{}@db.example.org/x"),
        ("addresses", "https://{}@example.org/a.git"),
        ("arguments", "curl -H 'Authorization: Bearer {}' https://example.org"),
        ("names", '--b\r\nContent-Disposition: form-data; name="api_key"\r\n\r\n{}\r\n--b--'),
    ):
        for place in ("prompt", "file", "stdout"):
            value = f"Zq{len(found):03d}Planted{BODY[:9]}"
            put(kind, text.format(value), value, place)
    for kind, place in (
        ("headers", "authorization"),
        ("headers", "x-api-key"),
        ("headers", "cookie"),
        ("headers", "set-cookie"),
        ("addresses", "query"),
        ("addresses", "location"),
        ("environment", "PGPASSWORD"),
        ("environment", "DEPLOY_TOKEN"),
        ("environment", "child environment"),
        ("arguments", "--api-key"),
        ("arguments", "child arguments"),
        ("known values", "said in pieces"),
        ("known values", "base64"),
    ):
        value = f"Zq{len(found):03d}Planted{BODY[:9]}"
        put(kind, value, value, place)
    return found


def packed(plan: list[Planted]) -> str:
    """Encoded for the program's environment, so that a search for credentials does not find them."""
    by_place: dict[str, list[str]] = {}
    for one in plan:
        by_place.setdefault(one.place, []).append(one.text)
    return base64.b85encode(zlib.compress(json.dumps(by_place).encode())).decode()


def table() -> list[str]:
    """The lines of docs/security.md that state by class what is hidden and what is not."""
    starts = ", ".join(
        f"`{start}`" for shape in SHAPES if shape.name not in WITHOUT_START for start in shape.starts
    )
    names = ", ".join(f"`{one.words}`" for one in FIELDS if not one.alone)
    alone = ", ".join(f"`{one.words}`" for one in FIELDS if one.alone)
    lines = ["| class | hidden |", "|---|---|"]
    for name, what in CLASSES.items():
        lines.append(f"| {name} | {what.format(shapes=starts, names=names, alone=alone)} |")
    lines += ["", "| not hidden | |", "|---|---|"]
    return lines + [f"| {name} | {what} |" for name, what in NOT_HIDDEN.items()]
