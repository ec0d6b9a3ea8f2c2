"""What is found as a credential, and what is not, in any bytes."""

import base64
import hashlib
import json
import os
import random
import sys
import threading
import uuid
import zlib
from typing import Any

import pytest
from botocore.eventstream import ChecksumMismatch, EventStreamBuffer
from support.answers.event_streams import chunk, event
from support.planting import WITHOUT_START, key_of

from playhead_core.credentials import FIELDS, SHAPES, Finder, mask, masked, replaced
from playhead_core.credentials.fields import styles
from playhead_core.credentials.finder import FRESH
from playhead_core.credentials.named_values import Kind
from playhead_core.credentials.responses import repacked, scrubber
from playhead_core.credentials.spellings import (
    SHORTEST_CODED,
    keyed_digest,
    spellings,
    values_with_digest,
)

VALUE = "s3cr3t-0123456789-value"
BODY = "0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0u1V2w3X4y5Z"
KEYS = {
    "sk-": "sk-proj-" + BODY,
    "AKIA": "AKIAIOSFODNN7EXAMPLE",
    "ASIA": "ASIAIOSFODNN7EXAMPLE",
    "SG.": f"SG.{BODY[:22]}.{BODY}",
    "dop_v1_": "dop_v1_" + "0123456789abcdef" * 4,
    "doo_v1_": "doo_v1_" + "0123456789abcdef" * 4,
    "shpat_": "shpat_" + "0123456789abcdef" * 2,
    "shpss_": "shpss_" + "0123456789abcdef" * 2,
    "shpca_": "shpca_" + "0123456789abcdef" * 2,
    "dapi": "dapi" + "0123456789abcdef" * 2,
    "eyJ": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    "hf_": "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH",
}
PLACES = {
    "prompt": '{"messages": [{"content": "use %s please"}]}',
    "line": "the key is %s\n",
    "quoted": "'%s'",
    "assigned": "X=%s;",
    "url": "https://example.org/a?x=%s&y=1",
    "nested": json.dumps(json.dumps({"a": "<%s>"})).replace("<", "").replace(">", ""),
    "event": 'data: {"delta": "%s"}\n\n',
}


FINDER = Finder()


def found(text: str) -> list[str]:
    data = text.encode()
    spans = FINDER.find(data)
    return sorted({data[one.begin : one.end].decode() for one in spans if one.kind is not Kind.PIECE})


STARTS = {start: shape for shape in SHAPES if shape.name not in WITHOUT_START for start in shape.starts}


@pytest.mark.parametrize("place", PLACES)
def test_each_shape_in_each_place(place: str):
    finder = Finder()
    for start, shape in STARTS.items():
        key = KEYS.get(start) or key_of(start, 123, hexed="a-f" in shape.rest)
        data = PLACES[place].replace("%s", key).encode()
        assert key in {data[one.begin : one.end].decode() for one in finder.find(data)}, start


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("https://api.telegram.org/bot110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw3/getMe",
         ":AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw3"),
        ("abc8Q~" + BODY[:34], "Q~" + BODY[:34]),
        ("https://hooks.slack.com/services/T0001/B0001/abcdefghijklmnopqrstuvwx",
         "T0001/B0001/abcdefghijklmnopqrstuvwx"),
        ("curl -u me:hunter2 https://example.org", "hunter2"),
        ("sshpass -p hunter2 ssh me@example.org", "hunter2"),
    ],
)  # fmt: skip
def test_shapes_that_need_what_is_around_them(text: str, value: str):
    assert found(text) == [value]


@pytest.mark.parametrize(
    "text",
    [
        "docker run -u 1000:1000 image",
        "import napi_get_value_int32_of_something",
        "call_abc123def456ghi789jkl012 toolu_01A09q90qw90lq917835lq9 msg_01XFDUDYJgAACzvnptvVoYEL",
        "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT 3e488289a1b2c3d4e5f60718293a4b5c6d7e8f90",
        "xai-grok-4-fast-20250901x1 npm_package_lock_1234567890abcdef1234",
        str(uuid.UUID(int=1 << 100)),
    ],
)
def test_what_only_resembles_a_shape_stays(text: str):
    assert found(text + "\n") == []


@pytest.mark.parametrize("opening", ['"bytes":"', '"bytes": "'])
def test_json_in_base64_is_no_token_wherever_it_is_cut(opening: str):
    packed = base64.b64encode(json.dumps({"type": "message_start", "n": 1}).encode()).decode()
    assert packed.startswith("eyJ")
    for end in range(len(packed)):
        assert found(f"{{{opening}{packed[:end]}") == []
    assert found(f'{{{opening}{KEYS["eyJ"]}"}}') == [KEYS["eyJ"]]


def test_private_keys_in_lines_and_in_json():
    lines = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
    pem = f"-----BEGIN RSA PRIVATE KEY-----\n{lines}\n-----END RSA PRIVATE KEY-----\n"
    for text in (pem, json.dumps({"file": pem}), json.dumps(json.dumps(pem))):
        hidden = replaced(text.encode(), [(s.begin, s.end) for s in Finder().find(text.encode())])
        assert b"MIIE" not in hidden and b"8cKj" not in hidden
        assert b"-----BEGIN RSA PRIVATE KEY-----" in hidden and b"-----END RSA" in hidden


@pytest.mark.parametrize("words", [field.words for field in FIELDS if not field.alone])
def test_each_name_in_each_style(words: str):
    for name in sorted(set(styles(words))):
        for text in (
            json.dumps({name: VALUE, "n": 1}),
            json.dumps({"my_" + name: VALUE}),
            json.dumps({"arguments": json.dumps({name: VALUE})}),
            json.dumps({"a": json.dumps({"b": json.dumps({name: VALUE})})}),
            str({name: VALUE}),
            f"{name}={VALUE}\n",
            f"export X_{name}='{VALUE}'",
            f"{name}: {VALUE}\n",
            f'{name} = "{VALUE}"',
            f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{VALUE}\r\n--b--',
            f"<{name}>{VALUE}</{name}>",
        ):
            assert found(text) == [VALUE], text


@pytest.mark.parametrize(
    "text",
    [
        f"curl -H 'Authorization: Bearer {VALUE}' https://example.org",
        f"machine example.org login me password {VALUE}\n",
        f"machine example.org\n  login me\n  password {VALUE}\n",
        f"[db]\nuser = me\npassword = {VALUE}\n",
        f"postgres://me:{VALUE}@db.example.org/x",
        f"git clone https://{VALUE}@example.org/a.git",
        f"agent --api-key {VALUE} run",
        f"Authorization: Bearer {VALUE}",
        json.dumps({"headers": {"Authorization": f"Bearer {VALUE}"}}),
        json.dumps({"token": VALUE}),
        f"token={VALUE}\n",
    ],
)
def test_other_forms(text: str):
    assert found(text) == [VALUE]


SETTINGS = [
    ("user[password]=hunter&x=1", "hunter"),
    ("user%5Bpassword%5D=hunter&x=1", "hunter"),
    ("a=1&password=hunter", "hunter"),
    ('{"spring.datasource.password":"abc"}', "abc"),
    ('{"name":"api_key","value":"abc1"}', "abc1"),
    ('<add key="Password" value="x1y2"/>', "x1y2"),
    ("<password>hunter</password>", "hunter"),
    ('<password enc="no">hunter</password>', "hunter"),
    ("db:\n  password: hunter\n", "hunter"),
    ("DB_PASSWORD=hunter\nX=1", "hunter"),
    ('{"f": "A=1\\nDB_PASSWORD=hunter\\nX=1"}', "hunter"),
    ("Server=x;Uid=me;Password=hunter;", "hunter"),
    ("jdbc:postgresql://h/db?user=x&password=hunter", "hunter"),
    ("redis://:hunter@h/0", "hunter"),
    ("agent --password hunter run", "hunter"),
    ("agent --password=hunter2 run", "hunter2"),
    ('{"password":"$tr0ng!"}', "$tr0ng!"),
    ('{"password":"{abc"}', "{abc"),
    ('{"password":"<x9"}', "<x9"),
    ('{"password":"correct horse battery staple"}', "correct horse battery staple"),
    ('password = "my long pass phrase"', "my long pass phrase"),
    ('config["password"] = "abc"', "abc"),
    ('{"API key": "abc"}', "abc"),
    ("api key: abcd1234efgh", "abcd1234efgh"),
    ("export API_KEY=hunter\n", "hunter"),
    ('{"value":"abc1","name":"api_key"}', "abc1"),
    ('<add value="x1y2" key="Password"/>', "x1y2"),
    ('{"value": "abc1", "type": "text", "name": "db_password"}', "abc1"),
    ('{"name": "db_password", "type": "text", "value": "abc1"}', "abc1"),
    ("- name: DB_PASSWORD\n  value: hunter\n", "hunter"),
    ('- name: DB_PASSWORD\n  value: "hunter"\n', "hunter"),
    ("<property><name>fs.secret.key</name><value>hunter</value></property>", "hunter"),
    ("<key>password</key>\n<string>hunter</string>", "hunter"),
    ('<Password value="abc"/>', "abc"),
    ('<param name="password">abc</param>', "abc"),
    ('<wsse:Password Type="x">hunter</wsse:Password>', "hunter"),
    ("<password><![CDATA[hun&ter]]></password>", "hun&ter"),
    ('<input type="password" name="password" id="p" value="hunter">', "hunter"),
    ("password: |\n  hunter2 x\n  more y\nother: 1", "hunter2 x\n  more y"),
    ("password: ${PW:-hunter2}\n", "${PW:-hunter2}"),
    ("[db]\npassword = abc123\n", "abc123"),
    ('["mysql","--password","hunter"]', "hunter"),
    ("agent -password hunter", "hunter"),
    ("agent --password 'my pass'", "my pass"),
    ('[["authorization","0aB1cD2eF3gH4iJ5kk"]]', "0aB1cD2eF3gH4iJ5kk"),
    ("docker run -e DB_PASSWORD=abc img", "abc"),
    ("ALTER USER x WITH PASSWORD 'hunter'", "hunter"),
    ("%22password%22%3A%22hunter%22", "hunter"),
    ('{"q":"%7B%22password%22%3A%20%22hun%24ter%22%7D"}', "hun%24ter"),
    ("mysql -uroot -phunter db", "hunter"),
    ("mysqldump -phunter db", "hunter"),
    ('["mysql", "-uroot", "-phunter"]', "hunter"),
    ("jdbc:oracle:thin:scott/tiger@//h:1521/x", "tiger"),
    ("sqlplus scott/tiger@db", "tiger"),
    ("redis-cli -h x -a hunter", "hunter"),
    ("docker login -u me -p hunter reg", "hunter"),
    ("Server=x;Uid=sa;Pwd=Str0ng!;", "Str0ng!"),
    ("AccountName=x;AccountKey=abc==;EndpointSuffix=y", "abc=="),
    ('{"password":"%secret"}', "%secret"),
    ('{"password":"[abc1"}', "[abc1"),
    ('{"password":"$ecretly"}', "$ecretly"),
    ('{"db":{"password":1234}}', "1234"),
    ('{"user[password]":"abc"}', "abc"),
    ('{"pass phrase":"x1"}', "x1"),
    ('{"dbPass":"abc"}', "abc"),
    ("MYSQL_PWD=abc\n", "abc"),
    ('{"passwords":["hunter1x"]}', "hunter1x"),
    ("ENV DB_PASSWORD hunter1x", "hunter1x"),
    ("const apiKey = `hunter1x`;", "hunter1x"),
    ('DB_PASSWORD = os.getenv("DB_PASSWORD", "hunter1x")', "hunter1x"),
    ('password: str = "hunter1x"', "hunter1x"),
    ('{"userName":"a","passWord":"hunter1x"}', "hunter1x"),
    ('{"password2":"hunter1x"}', "hunter1x"),
    ('{"SecretString":"hunter1x"}', "hunter1x"),
    ("&lt;password&gt;hunter1x&lt;/password&gt;", "hunter1x"),
    ("{&quot;password&quot;:&quot;hunter1x&quot;}", "hunter1x"),
    ("export TOKEN=hunter1x", "hunter1x"),
    ("aws configure set aws_secret_access_key hunter1x", "hunter1x"),
    ('password="it\'s me"', "it's me"),
    ('{"config":"{\\"password\\":\\"abc\\"}"}', "abc"),
]


@pytest.mark.parametrize(("text", "value"), SETTINGS)
def test_a_value_where_only_settings_are(text: str, value: str):
    assert found(text) == [value]


@pytest.mark.parametrize(
    "text",
    [
        'def f():\n    password = get_password(user1)\n    token = "abc"\n',
        '    secret = os.environ["X"]\n',
        "password: str\n",
        "  password: str,\n",
        '{"password":"${DB}"}',
        '{"password":"{{ x }}"}',
        "PASSWORD=$PW\n",
        "PASSWORD=${PW}\n",
        "password reset is needed\n",
        "<password>${x}</password>",
        '{"password": "The password of the user."}',
        "api_key=<your key>\n",
        "self.password = password\n",
        "Password: required\n",
        "    api_key: str | None = None\n",
        "connect(password=password, user=user)",
        "max_tokens: 4096\n",
        'password = "<your password>"',
        "if password == other:\n",
        "secret: bool\n",
        '{"authorization": "Bearer [redacted]"}',
        "client_secret: ClientSecret\n",
        'ENV_API_KEY = "ANTHROPIC_API_KEY"\n',
        "auth = base64.b64encode16(x)\n",
        'dependencies = [("auth", "0009_alter_user_last_name_max_length")]\n',
        'TOKEN = "refresh_token"\n\n# a comment\nX = 1\n',
        'user_pass = "%s:%s" % (a, b)\n',
        'os.getenv("API_KEY", "")',
        'input("Password: "), input("User: ")',
        'print("password:", password)',
        '{"required":["password","api_key"]}',
        '<a accesskey="s">',
        "if PASSWORD==other:",
        'PASSWORD = getenv("X")\n',
        "max_tokens=15",
        "page_token=abcdefghijklm1234567",
        '{"password_hint":""}',
        "tokenizer=abc12345678901234567",
        "password: <YOUR_KEY>\n",
        "api_key=$API_KEY",
        "api_key=***",
        "password=changeme\n",
        '{"password":"***"}',
        '{"password":""}',
        '"secret": 1,',
        '{"password":null}',
        "password = models.CharField(max_length=3)\n",
        "  secret: true\n",
        "OPENAI_API_KEY=\n",
        "token: ${{ secrets.GITHUB_TOKEN }}\n",
        'x["password"] == "abc"',
        "mysql -p db",
        "mysql -port 3",
        'key="password" label="Password"',
        "const password = req.body.password;\n",
        "PWD=/home/me\n",
        '{"pwd": "/home/me"}',
    ],
)
def test_placeholders_code_and_prose_stay(text: str):
    assert found(text) == []


REPEATED = [
    "sk-", "Bearer ", "://", "eyJ", "-eyJ", "password=", "<password ", "password: ", "password=.",
    "password:/", 'password"\r\nx\r\n', '"password":"', "--password ", "password: |\n ",
    'value="x" name="password"',
]  # fmt: skip


@pytest.mark.parametrize("seed", [0, 43, 57])
def test_random_data_stays(seed: int):
    """Each of these contains, by chance, curl's option for a user and a password."""
    assert FINDER.find(random.Random(seed).randbytes(3 << 20)) == []


@pytest.mark.parametrize(
    "data",
    [
        b"curl -u k\xf6nig:gehe\xedm http://host",  # Latin-1
        "curl -u könig:geheim http://host".encode(),
        b"\x0a\x1f\x00" + "password=gehéim-7".encode() + b"\x12\x00",  # a field of a binary message
        "password=gehéimé".encode()[:-1],  # cut within a character
    ],
)
def test_a_credential_in_text_of_any_encoding_is_found(data: bytes):
    assert len(FINDER.find(data)) == 1


@pytest.mark.parametrize("unit", REPEATED)
def test_repeated_beginnings_are_searched_to_the_end(unit: str):
    Finder().find(unit.encode() * 20_000)


def test_a_value_is_searched_for_names_at_its_beginning_only():
    for unit in (b"password=", b"password=.", b"password:/", b"password=token="):
        few, many = (FINDER.find(unit * count) for count in (100, 10_000))
        assert 0 < len(few) == len(many)
        assert max(one.end for one in many) == len(unit) * 10_000


IMAGE = base64.b64encode(hashlib.shake_256(b"an image").digest(150_000)).decode()
SCHEMA = {
    "name": "login",
    "parameters": {
        "type": "object",
        "properties": {
            "password": {
                "type": "string",
                "description": "the password of the user",
                "format": "password",
            },
            "api_key": {"type": "string"},
            "authorization": {"type": "string", "enum": ["basic", "bearer"]},
        },
        "required": ["password", "api_key"],
    },
}


@pytest.mark.parametrize(
    "text",
    [
        '{"usage": {"prompt_tokens": 120, "total_tokens": 127}, "max_tokens": 5}',
        '{"logprobs": [{"token": "Hello", "bytes": [1]}], "stop_token": "<|end|>"}',
        '{"next_page_token": "CAUQAA", "pageToken": "abc", "tokenizer": "cl100k_base"}',
        json.dumps(SCHEMA),
        json.dumps({"arguments": json.dumps(SCHEMA)}),
        json.dumps({"password": "The password that the user gave to us"}),
        "My password is short. A password: must have a digit. Tokens: 120. Token count = 15000",
        "def login(user: str, password: str, api_key: str = None) -> Session:",
        'api_key = os.environ["OPENAI_API_KEY"]; client = Client(api_key=config.api_key, token=token)',
        "password=${DB_PASSWORD} secret: {{ vault.secret }} api_key=<your-key>",
        "the secret: tell nobody; authorization: required",
        f"git checkout {hashlib.sha1(b'x').hexdigest()} # {hashlib.sha256(b'x').hexdigest()}",
        f"id {uuid.UUID(int=1 << 100)} call_{BODY[:24]} chatcmpl-{BODY[:29]} toolu_01{BODY[:22]}",
        "task-123456789012345678 risk-0a1b2c3d4e5f6a7b8c9d sk-fading-circle-container-of-words",
        json.dumps({"image_url": f"data:image/png;base64,{IMAGE}"}),
        json.dumps({"signature": IMAGE[:400], "encrypted_content": "gAAAAAB" + IMAGE[:200]}),
        "see https://example.org/a/b?page_token=abcdefghij and mail bo@example.org, git@example.org:a/b",
        '{"type": "password", "name": "secret", "key": "reports/11/a.csv", "password_hash": "none"}',
        f"nexttoken={BODY}\n",
        "basic understanding of Basic authentication; the bearer of this letter",
    ],
)
def test_what_stays(text: str):
    assert found(text) == []


def test_armour_under_a_name_is_no_prose():
    armour = "-----BEGIN MESSAGE----- with some words -----END MESSAGE-----"
    assert found(json.dumps({"client_secret": armour, "n": 1})) == [armour]


def test_known_values_and_the_longest_of_two():
    finder = Finder()
    finder.add([b"known-value-1", b"known-value-1-and-more"])
    data = b"a known-value-1-and-more b known-value-1 c"
    assert masked(data, [one[:2] for one in finder.find(data)]) == (
        b"a " + mask(22) + b" b " + mask(13) + b" c"
    )


def test_the_oldest_values_are_forgotten_and_those_that_begin_alike_stay():
    finder = Finder(most=3)
    finder.add([b"begins-alike-1", b"begins-alike-22"])
    finder.add([b"begins-alike-3", b"another-value", b"another-value"])
    data = b"begins-alike-1 begins-alike-22 begins-alike-3 another-value"
    spans = finder.find(data)
    kept = [data[one.begin : one.end] for one in spans if one.kind is Kind.KNOWN]
    assert kept == [b"begins-alike-22", b"begins-alike-3", b"another-value"]
    assert finder.longest_bytes == len(b"begins-alike-22")


def test_a_finder_finds_the_same_before_and_after_it_is_sped_up():
    finder = Finder(dense=False)
    finder.add([b"known-value-1"])
    keys = [KEYS.get(start) or key_of(start, 7, hexed="a-f" in STARTS[start].rest) for start in STARTS]
    data = json.dumps({"token": "hunter2-and-more", "said": [*keys, "a known-value-1"]}).encode()
    before = finder.find(data)
    assert {Kind.KNOWN, Kind.SHAPE, Kind.FIELD} <= {one.kind for one in before}
    finder.speed_up()
    assert finder.find(data) == before
    finder.add([b"hunter2-and-more"])
    assert Kind.KNOWN in {one.kind for one in finder.find(b"hunter2-and-more")}


def test_values_learnt_after_the_first_search_are_found():
    finder = Finder()
    assert finder.find(b"nothing here") == []
    for number in range(40):
        value = b"%02d-learnt-later" % number
        finder.add([value])
        assert [one.kind for one in finder.find(b"<" + value + b">")] == [Kind.KNOWN]


@pytest.mark.parametrize("size", range(SHORTEST_CODED, SHORTEST_CODED + 7))
@pytest.mark.parametrize("before", range(3))
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_in_base64_all_that_only_a_value_decides_is_looked_for(size: int, before: int, encode: Any):
    value = "".join(chr(0x21 + 5 * number % 90) for number in range(size))
    sides = [
        encode(bytes([one]) * before + value.encode() + bytes([one]) * 3)[: (before + size + 3) // 3 * 4]
        for one in (0x00, 0xFF)
    ]
    same = [left == right for left, right in zip(*sides, strict=False)]
    first = same.index(True)
    last = len(same) - same[::-1].index(True)
    assert sides[0][first:last] in set(spellings(value))


def test_a_shorter_value_is_not_looked_for_in_base64():
    short = "a1b2c3d4e5f"
    assert len(short) == SHORTEST_CODED - 1
    assert not any(base64.b64encode(short.encode())[:12] in one for one in spellings(short))


def test_what_may_become_a_shape_at_the_end_is_told_wherever_it_begins():
    for lead in (b"", b'{"content": "use ', b"a key: "):
        begun = lead + b"sk-proj-0aB1cD"
        (span,) = Finder().find(begun)
        assert (span.kind, begun[span.begin : span.end]) == (Kind.UNSURE, b"sk-proj-0aB1cD")
    far = b"sk-proj-" + b"0aB1cD2e" * 3
    assert [one.kind for one in Finder().find(b"x " + far)] == [Kind.SHAPE]


@pytest.mark.parametrize("cut", [31, 40, 80, 120, -25])
def test_a_private_key_goes_on_over_lines_into_the_next_piece(cut: int):
    lines = "\n".join(BODY for _ in range(4))
    key = f"-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----".encode()
    learnt: list[bytes] = []
    scrub = scrubber(Finder(), learnt.append)
    kept = scrub.chunk(b"here: " + key[:cut]) + scrub.chunk(key[cut:] + b" and more")
    assert len(kept) == len(key) + 15
    assert BODY[-12:].encode() not in kept[cut + 6 :].replace(b"\n", b"")
    assert kept.endswith(b"-----END PRIVATE KEY----- and more")


def test_a_field_goes_on_up_to_the_quote_that_closes_it():
    scrub = scrubber(Finder(), lambda _: None)
    begun, rest = b'{"password": "hunter2-0123456789', b'abc\\"", "x": "visible"}'
    kept = scrub.chunk(begun) + scrub.chunk(rest)
    assert len(kept) == len(begun + rest)
    assert kept.endswith(b'", "x": "visible"}')
    assert b"abc" not in kept and b"hunter2" not in kept


def test_a_name_at_the_end_of_a_string_says_nothing_of_what_follows_the_string():
    said = rb'{"text": "say \"password\": ", "id": "visible-0123456789"}'
    assert Finder().find(said) == []
    assert len(Finder().find(rb'{"text": "say \"password\": \"hidden-0123456789\""}')) == 1


def test_what_is_told_of_a_value_rests_on_the_key():
    assert keyed_digest("a-value", bytes(32)) == "7 13b1338fed719e52"
    assert keyed_digest("a-value", b"k" * 32).startswith("7 ")
    assert keyed_digest("a-value", b"k" * 32) != keyed_digest("a-value", bytes(32))
    text = "X=a-value; https://me:a-value@host another"
    assert (
        list(values_with_digest(text, {keyed_digest("a-value", bytes(32))}, bytes(32)))
        == ["a-value"] * 2
    )
    assert list(values_with_digest(text, {keyed_digest("a-value", bytes(32))}, b"k" * 32)) == []


@pytest.mark.parametrize(
    "said",
    [
        b"API_KEY=%b",
        b"AWS_SECRET_ACCESS_KEY=%b",
        b"export CLIENT_SECRET='%b'",
        b'{"apiKey": "%b"}',
        b'{"SecretAccessKey": "%b"}',
        b"client-secret: %b",
        b"access_token=%b&x=1",
    ],
)
def test_names_as_settings_and_apis_write_them(said: bytes):
    value = b"0aB1cD2eF3gH4iJ5"
    data = said % value
    spans = {data[one.begin : one.end] for one in Finder().find(data) if one.kind is Kind.FIELD}
    assert spans == {value}


def test_a_dot_in_a_shape_is_a_dot():
    body = f"{BODY[:22]}.{BODY}".encode()
    assert [one.kind for one in Finder().find(b"<SG." + body + b">")] == [Kind.SHAPE]
    assert Finder().find(b"<SGx" + body + b">") == []


@pytest.mark.parametrize("wbits", [15, -15])
def test_both_forms_of_deflate_are_looked_into(wbits: int):
    packer = zlib.compressobj(wbits=wbits)
    packed = packer.compress(b'{"api_key": "0aB1cD2eF3gH4iJ5", "x": 1}') + packer.flush()
    scrub = scrubber(Finder(), lambda _: None, "deflate")
    kept = scrub.chunk(packed)
    assert scrub.count == 1
    (whole,) = repacked([kept], [scrub.unpacked], complete=True)
    text = zlib.decompressobj(wbits).decompress(whole)
    assert text.startswith(b'{"api_key": "') and text.endswith(b'", "x": 1}')
    assert b"0aB1cD2eF3gH4iJ5" not in text


def test_each_text_in_which_a_model_says_a_known_value_is_counted():
    finder = Finder()
    finder.add([VALUE.encode()], VALUE.encode())
    scrub = scrubber(finder, lambda _: None, content_type="text/event-stream")
    half = len(VALUE) // 2
    counts: list[int] = []
    for text in ("it is ", VALUE[:half], VALUE[half:], " and ", VALUE[:half], VALUE[half:]):
        scrub.chunk(b'data: {"delta": "%b"}\n\n' % text.encode())
        counts.append(scrub.count)
    assert counts[0] == 0 and counts[2] > counts[1] > 0
    assert counts[5] > counts[4] > counts[2]


def test_a_mask_of_few_bytes_is_as_long_as_what_it_hides():
    assert [len(mask(size)) for size in range(1, 30)] == list(range(1, 30))
    assert mask(3) == b"***"


def test_a_value_with_half_a_character_is_found_as_it_is_written():
    value = "s3cr3t-\udcff-0123456789"
    raw = value.encode("utf-8", "surrogatepass")
    assert raw in spellings(value)
    assert os.fsencode(value) in spellings(value)
    assert list(spellings("s3cr3t-\ud800-0123456789"))


def test_a_value_of_which_all_but_the_last_byte_is_said_goes_on():
    finder = Finder()
    finder.add([VALUE.encode()], VALUE.encode())
    assert finder.begins(b"it is " + VALUE[:-1].encode()) == (VALUE[:-1].encode(), VALUE[-1:].encode())


def test_an_option_is_told_by_the_word_before_its_value_alone():
    assert found("run fast --api-key s3cretvalue99 now") == ["s3cretvalue99"]
    assert found("run --fast api-key s3cretvalue99 now") == []


def test_of_a_value_that_a_model_ends_within_a_text_the_rest_of_the_text_stays():
    finder = Finder()
    finder.add([VALUE.encode()], VALUE.encode())
    scrub = scrubber(finder, lambda _: None, content_type="text/event-stream")
    first = scrub.chunk(b'data: {"text":"it is %b"}\n\n' % VALUE[:12].encode())
    second = scrub.chunk(b'data: {"text":"%b, I think"}\n\n' % VALUE[12:].encode())
    assert VALUE[:12].encode() not in first
    assert VALUE[12:].encode() not in second and b", I think" in second


def test_what_the_data_ends_within_is_masked_to_the_end_of_it():
    scrub = scrubber(Finder(), lambda _: None)
    kept = scrub.chunk(b'{"api_key": "' + b"x1" * 4) + scrub.chunk(b'y2y2", "a": 1}')
    assert b"x1" not in kept and b"y2" not in kept
    assert kept.endswith(b'", "a": 1}')


SAID = [
    event("contentBlockDelta", {"delta": {"text": f"it is {VALUE}, and"}, "contentBlockIndex": 0}),
    chunk({"type": "content_block_delta", "delta": {"text": VALUE[:14]}}),
    chunk({"type": "content_block_delta", "delta": {"text": f"{VALUE[14:]} indeed"}}),
    chunk({"type": "content_block_delta", "delta": {"text": f"so {VALUE}."}}),
]
HARMLESS = [chunk({"usage": {"output_tokens": 3}}), event("messageStop", {"stopReason": "end_turn"})]
AMAZON = "application/vnd.amazon.eventstream"


def scrubbed(*pieces: bytes) -> bytes:
    finder = Finder()
    finder.add(list(spellings(VALUE)), VALUE.encode())
    scrub = scrubber(finder, lambda _: None, content_type=AMAZON)
    kept = [scrub.chunk(piece) for piece in pieces]
    assert [len(one) for one in kept] == [len(piece) for piece in pieces]
    return b"".join(kept)


def read(data: bytes) -> list[dict[str, Any]]:
    """The payloads, by botocore's parser, which checks the checksums."""
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    payloads = [json.loads(message.payload) for message in buffer]
    return [json.loads(base64.b64decode(one["bytes"])) if "bytes" in one else one for one in payloads]


def test_a_message_of_an_event_stream_from_which_a_value_is_taken_keeps_its_form():
    texts = [one["delta"]["text"] for one in read(scrubbed(*SAID))]
    assert texts == [
        f"it is *redact{'~' * 16}, and",
        "*redact~~~~~~~",
        "~~~~~~~~~ indeed",
        f"so *redact{'~' * 16}.",
    ]
    whole = b"".join(SAID)
    assert scrubbed(whole) == scrubbed(*SAID)
    assert scrubbed(*HARMLESS) == b"".join(HARMLESS)


def test_an_event_stream_is_scrubbed_however_it_is_cut():
    whole = b"".join([*HARMLESS, SAID[0], *HARMLESS, *SAID[1:], *HARMLESS])
    cuts = [(whole[:cut], whole[cut:]) for cut in range(1, len(whole), 3)]
    for pieces in (*cuts, [whole[at : at + 11] for at in range(0, len(whole), 11)]):
        texts = [one["delta"]["text"] for one in read(scrubbed(*pieces)) if "delta" in one]
        assert len(texts) == len(SAID)
        assert not any(VALUE in text for text in texts)
    assert len(read(scrubbed(*(bytes([one]) for one in whole)))) == len(SAID) + 3 * len(HARMLESS)


def test_what_is_wrong_in_an_event_stream_stays_wrong_and_hides_nothing():
    wrong = SAID[0][:-1] + bytes([SAID[0][-1] ^ 1])
    with pytest.raises(ChecksumMismatch):
        read(scrubbed(wrong))
    for text in (b"{}" + SAID[0], b"\0" * 12 + VALUE.encode()):
        kept = scrubbed(text)
        assert VALUE.encode() not in kept and b"*redact~" in kept


@pytest.mark.parametrize("opening", [b'{"bytes":"', b' { "bytes" : "'])
def test_a_whole_message_that_carries_base64_is_scrubbed_as_what_that_stands_for(opening: bytes):
    said = base64.b64encode(b'{"delta": {"text": "it is %b"}}' % VALUE.encode())
    like = event("chunk", {"bytes": said.decode()})
    head, payload = like[:-4].split(b'{"bytes": "')
    size = len(like) - len(b'{"bytes": "') + len(opening)
    prelude = size.to_bytes(4) + head[4:8]
    rest = zlib.crc32(prelude).to_bytes(4) + head[12:] + opening + payload
    whole = prelude + rest + zlib.crc32(prelude + rest).to_bytes(4)
    (found,) = read(scrubbed(whole))
    assert found == {"delta": {"text": f"it is *redact{'~' * 16}"}}
    assert len(read(scrubbed(whole + HARMLESS[0] + whole))) == 3


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n"])
def test_a_name_and_a_value_in_two_events_do_not_belong_together(end: str):
    scrub = scrubber(Finder(), lambda _: None, content_type="text/event-stream")
    pieces = [f'data: "api_key":{end}'.encode(), f'"abcdef1234567890"{end}'.encode()]
    assert [scrub.chunk(piece) for piece in pieces] == pieces


NUMBERS = {
    "password": 8412345678901234,
    "n": 17,
    "secret": -12345678,
    "x": {"passcode": 1234},
    "flag": True,
}
HIDDEN_NUMBERS = {**NUMBERS, "password": 9999999999999999, "secret": -99999999, "x": {"passcode": 9999}}


@pytest.mark.parametrize("hidden", [masked, replaced])
def test_a_masked_number_is_a_number_of_nines(hidden: Any):
    data = json.dumps({**NUMBERS, "api_key": "12345678"}).encode()
    kept = json.loads(hidden(data, [one[:2] for one in FINDER.find(data)]))
    assert kept.pop("api_key") in ("[redacted]", "*redact~")
    assert kept == HIDDEN_NUMBERS


def test_a_number_is_masked_wherever_an_answer_is_cut():
    finder = Finder()
    finder.add([b"8412345678901234"], b"8412345678901234")
    data = json.dumps(NUMBERS).encode()
    for cut in range(1, len(data)):
        scrub = scrubber(finder, lambda _: None)
        kept = scrub.chunk(data[:cut]) + scrub.chunk(data[cut:])
        assert len(kept) == len(data) and list(json.loads(kept)) == list(NUMBERS)
        assert b"345" not in kept and b"9999999999999" in kept  # at most three digits came before


def test_a_value_is_found_by_the_thread_that_learned_it_while_others_learn():
    finder, missed = Finder(shapes=()), list[str]()

    def learn_and_find(worker: int) -> None:
        for number in range(40):
            value = f"{worker}x{number:03d}{BODY[:20]}"
            finder.add(spellings(value), value.encode())
            if not finder.find(f"a {value} b".encode()):
                missed.append(value)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=learn_and_find, args=(worker,)) for worker in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    finally:
        sys.setswitchinterval(before)
    assert missed == []
    for worker in range(4):
        for number in range(40):
            assert finder.find(f"a {worker}x{number:03d}{BODY[:20]} b".encode())


def test_a_few_new_values_are_found_without_another_automaton():
    finder: Any = Finder(shapes=())
    assert finder.find(b"nothing") == []
    first, values = finder._known.built, [f"{number}v{BODY[:20]}".encode() for number in range(FRESH)]
    for value in values:
        finder.add([value])
        assert all(finder.find(b"a %b b" % one) for one in values[: values.index(value) + 1])
    assert finder._known.built is first
    finder.add([f"one more {BODY[:20]}".encode()])
    assert all(finder.find(b"a %b b" % one) for one in values)
    assert finder._known.built is not first and not finder._known.fresh
