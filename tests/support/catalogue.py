"""Credentials in every place, spelling, encoding, shape and split, for docs/security.md.

A case says in what an agent puts a value, and whether it is hidden. ``@`` in a text is the value.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus

from support.planting import NOT_HIDDEN, WITHOUT_START, key_of

from playhead_core.credentials import SHAPES

STYLES = {
    "opaque": "Zq#k4Xw9Tb2Lm7",
    "short": "hy#xq",
    "$": "$e#cret",
    "%": "%p#ass",
    "<": "<k#ey",
    "{": "{b#race",
    "[": "[s#quare",
    "spaces": "my dog # barks",
    "digits": "7#48151623",
}
"""Kinds of values; ``#`` is the number of the case."""

ANY = ("opaque", "short", "$", "%", "<", "{", "[", "spaces")
LINE = ("opaque", "short", "$", "%", "<", "{", "[")
FORM = ("opaque", "short", "$", "<", "{", "[")
TEXT = ("opaque", "short", "$", "%", "{", "[", "spaces")

SPELLINGS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "fields of JSON and of dictionaries": (
        ('{"password": "@"}', '{"db.password":"@"}', '{"API key": "@"}', "{'clientSecret': '@'}",
         '{"args":"{\\"access_token\\":\\"@\\"}"}', '{"user[password]": "@"}',
         '{"privateToken" : "@", "n": 1}', '{"x":{"Pass-Phrase":"@"}}', '{"passcode":"\\u0024@"}'), ANY),
    "numbers in JSON": (('{"password": @, "n": 1}', '{"n":1,"access_token":@}'), ("digits",)),
    "pairs of a name and a value, in either order": (
        ('{"name":"api_key","value":"@"}', '{"value":"@","name":"api_key"}',
         '{"key": "DB_PASSWORD", "type": "text", "value": "@"}',
         '<add key="Password" value="@"/>'), ANY),
    "pairs in YAML": (("- name: DB_PASSWORD\n  value: @\n",), ("opaque", "short", "$")),
    "elements and attributes of XML": (
        ("<password>@</password>", '<wsse:Password Type="x">@</wsse:Password>',
         "<property><name>fs.secret.key</name><value>@</value></property>",
         '<user name="me" password="@"/>', '<param name="password">@</param>',
         '<input type="password" name="password" value="@">', "<secret><![CDATA[@]]></secret>"), TEXT),
    "lines of settings": (
        ("DB_PASSWORD=@\n", "export API_KEY=@\n", "db:\n  password: @\n",
         "spring.datasource.password=@\n", '{"file": "A=1\\nDB_PASSWORD=@\\nX=1"}',
         "a: 1\nsecret: |\n  @\nb: 2\n"), LINE),
    "quoted settings": (
        ('password = "@"\n', "api_key: '@'\n", 'config["password"] = "@"\n', "'secret' => '@',\n",
         'connect(user="me", password="@")'), ANY),
    "items of lists of strings": (
        ('{"api_keys": ["k1", "@"]}', '{"password":["@"]}', "{'secret_keys': ['k1', '@']}",
         '{"args":"{\\"access_tokens\\":[\\"k1\\",\\"@\\"]}"}', 'api_keys = ["k1", "@"]\n'), ANY),
    "items of lists in YAML": (("api_keys:\n  - first-K3y\n  - @\n", "api_keys: [@]\n"), ("opaque",)),
    "tags and anchors in YAML": (
        ("password: !!str @\n", "password: &db @\n", "password: !!str |\n  @\n"), ("opaque", "short")),
    "forms and queries": (
        ("a=1&password=@&b=2", "user[password]=@&x=1", "user%5Bpassword%5D=@&x=1",
         "https://example.org/x?api_key=@&y=1"), FORM),
    "JSON in a URL": (("q=%7B%22password%22%3A%22@%22%7D",), ("opaque", "short")),
    "connection strings": (
        ("Server=x;Uid=me;Password=@;", "Server=x;Uid=me;Pwd=@;", "AccountName=x;AccountKey=@;E=1",
         "jdbc:postgresql://h/db?user=x&password=@", "postgres://me:@@db.example.org/x",
         "redis://:@@h/0", "jdbc:oracle:thin:scott/@@//h:1521/x"), ("opaque", "short", "$")),
    "options of commands": (
        ("agent --password @ run", "agent --api-key=@ run", '["agent", "--password", "@"]',
         "agent -password @ run"), FORM),
    "commands": (
        ("curl -u me:@ https://h", "sshpass -p @ ssh h", "mysql -uroot -p@ db",
         "redis-cli -h h -a @ ping", "docker login -u me -p @ h", "docker run -e DB_PASSWORD=@ image",
         "curl -H 'Authorization: Bearer @' h"), ("opaque", "short")),
    "SQL": (("ALTER USER me WITH PASSWORD '@'", "CREATE USER me IDENTIFIED BY '@'"), ANY),
    "words before a colon in a text": (("use password: @ now", "(api key: @)"), ("opaque",)),
}  # fmt: skip
"""What introduces a value, and the kinds of values that are hidden there."""

TEXT_PLACES = (
    "prompt", "answer", "stream", "arguments", "stdout", "stderr", "file", "exception", "attribute",
    "event", "checkpoint", "websocket", "tool",
)  # fmt: skip
NAMED_PLACES = (
    "json",
    "form",
    "multipart",
    "query",
    "header",
    "environment",
    "named attribute",
    "state",
)
NAMES = ("api_key", "DB_PASSWORD", "clientSecret", "x-access-token", "user-password", "AUTH_TOKEN")
SPLITS = ("request", "answer in pieces", "fragments")
KNOWN = ("known", "deltas", "hex")
"""Where values are that were used as a credential before."""

STAYS = {
    "opaque": ("the id is @", "zq#opaquewithoutaname"),
    "reference": ('{"password": "@"}', "${VAULT_#}"),
    "sentence": ("my password is @, please", "hy#xqz"),
    "table": ("user,password\nme,@\n", "hy#xqz"),
}
"""A text and a value for each class that is not hidden."""


class Case(NamedTuple):
    """One value. ``item``: what the agent gets for its place. ``stays``: why it is not hidden."""

    kind: str
    place: str
    item: Any
    wanted: tuple[str, ...]
    stays: str = ""


def cases() -> list[Case]:
    """Return more than 400 cases."""
    made: list[Case] = []
    for maker in (_spelled, _shaped, _named, _split, _known, _staying):
        made += maker(len(made))
    assert len({one.wanted for one in made}) == len(made)
    return made


def _value(style: str, number: int) -> str:
    return STYLES[style].replace("#", f"{number:03d}")


def _forms(value: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((value, quote(value, safe=""), quote_plus(value))))


def _spelled(first: int) -> Iterator[Case]:
    number = first
    for kind, (texts, styles) in SPELLINGS.items():
        for at, text in enumerate(texts):
            for turn in range(4 if len(styles) > 3 else len(styles)):
                style = styles[(at * 3 + turn) % len(styles)]
                value = _value(style, number)
                place = TEXT_PLACES[number % len(TEXT_PLACES)]
                head, mark, tail = text.partition("@")
                made = head + value + tail if "@@" not in text else text.replace("@", value, 1)
                assert mark
                yield Case(kind, place, made, _forms(value))
                number += 1


def _shaped(first: int) -> Iterator[Case]:
    starts = [(one, start) for one in SHAPES if one.name not in WITHOUT_START for start in one.starts]
    for number, (shape, start) in enumerate(starts, first):
        value = key_of(start, number, hexed="a-f" in shape.rest)
        text = ("use {} here", '{{"note": "{}"}}', "x={}\n")[number % 3].format(value)
        yield Case("shapes", TEXT_PLACES[number % len(TEXT_PLACES)], text, (value,))


def _named(first: int) -> Iterator[Case]:
    number = first
    for place in NAMED_PLACES:
        for at, name in enumerate(NAMES):
            style = (
                "opaque" if name == "AUTH_TOKEN" or place == "header" else ANY[(number + at) % len(ANY)]
            )
            value = _value(style, number)
            yield Case("names", place, [name, value], _forms(value))
            number += 1


def _split(first: int) -> Iterator[Case]:
    """A body that is sent or arrives in pieces: cut in the name, before the value, and in the value."""
    number = first
    for place in SPLITS:
        for cut in (6, 12, 15, 20, 24, 30):
            value = f"k4Xw9Tb{number:03d}Zq2Lm7"
            text = json.dumps({"a": 1, "password": value, "n": number})
            yield Case("splits", place, [text[:cut], text[cut:]], (value[5:],))
            number += 1


def _known(first: int) -> Iterator[Case]:
    """Values that were used as a credential: encoded, or said by a model in pieces."""
    for number in range(first, first + 8):
        value = _value("opaque", number) + "/+ é"
        packed = base64.b64encode(f"a {value} b".encode()).decode()
        coded = (value, quote(value, safe=""), json.dumps(value)[1:-1], packed[4:-4])
        yield Case("known", "known", value, coded)
    for number in range(first + 8, first + 12):
        value = f"k4Xw9Tb{number:03d}Zq2Lm7"
        yield Case("known", "deltas", value, (value[5:],))
    value = _value("opaque", first + 12)
    yield Case("not hidden", "hex", value, (value.encode().hex(),), "hex")


def _staying(first: int) -> Iterator[Case]:
    for number, (kind, (text, value)) in enumerate(STAYS.items(), first):
        value = value.replace("#", f"{number:03d}")
        yield Case("not hidden", "prompt", text.replace("@", value), (value,), kind)
    assert set(STAYS) <= set(NOT_HIDDEN)


def packed(plan: list[Case]) -> str:
    """Return the plan for the environment of the agent, so that a search does not find the values."""
    by_place: dict[str, list[Any]] = {}
    for one in plan:
        by_place.setdefault(one.place, []).append(one.item)
    return base64.b85encode(zlib.compress(json.dumps(by_place).encode(), 9)).decode()


def table() -> list[str]:
    """Return the lines of docs/security.md that say what introduces a value."""
    lines = [
        "| value in | for example (`@` is the value) | hidden if the value is, or begins with |",
        "|---|---|---|",
    ]
    for kind, (written, styles) in SPELLINGS.items():
        shown = ", ".join(f"`` {one} ``".replace("\n", "↵").replace("|", "\\|") for one in written)
        hidden = ", ".join(f"`{one}`" if len(one) == 1 else one for one in styles)
        lines.append(f"| {kind} | {shown} | {hidden} |")
    return lines
