"""Credentials never reach the tape: by name, by shape, and wherever a known value turns up again."""

import base64
import gzip
import json
import os
import stat
import zlib

import httpx2
import pytest
import zstandard
from google.protobuf import struct_pb2
from support.servers.scripted import Reply, ScriptedServer, json_reply, sse_reply
from support.tapes.sessions import record, recording, replay

from playhead_core.credentials import mask
from playhead_core.credentials.responses import repacked
from playhead_core.rerun.headers import PLACEHOLDER
from playhead_core.settings import Settings
from playhead_core.tape.frames import encode
from playhead_genai.providers.encodings import decode_body
from playhead_instrumentation.redaction import RULES, Redactor, Rule, key_of_user
from playhead_semconv import attributes as a

SECRET = "s3cr3t-0123456789-value"


def written(tape):
    """All that is on a tape, as it lies on disk."""
    return b"".join(encode(fact) for fact in tape.facts())


@pytest.mark.parametrize(
    "name, value, kept",
    [
        ("Authorization", f"Bearer {SECRET}", f"Bearer {PLACEHOLDER}"),
        ("Authorization", SECRET, PLACEHOLDER),
        ("Proxy-Authorization", f"Basic {SECRET}", f"Basic {PLACEHOLDER}"),
        ("Cookie", f"a={SECRET}; b=2", f"a={PLACEHOLDER}; b={PLACEHOLDER}"),
        ("Set-Cookie", f"sid={SECRET}; Path=/; HttpOnly", f"sid={PLACEHOLDER}; Path=/; HttpOnly"),
        ("X-Api-Key", SECRET, PLACEHOLDER),
        ("api-key", SECRET, PLACEHOLDER),
        ("x-goog-api-key", SECRET, PLACEHOLDER),
        ("X-Amz-Security-Token", SECRET, PLACEHOLDER),
        ("X-Vault-Token", SECRET, PLACEHOLDER),
    ],
)
def test_headers(name, value, kept):
    redactor = Redactor()
    assert redactor.headers([(name.encode(), value.encode())])[0] == [name, kept]
    assert redactor.text(f"again {SECRET}!") == f"again {PLACEHOLDER}!"


@pytest.mark.parametrize(
    ("name", "value", "kept", "told"),
    [
        ("Cookie", "sid=abc=s3cr3t-0123456789", f"sid={PLACEHOLDER}", "abc=s3cr3t-0123456789"),
        ("Cookie", 'sid="s3cr3t-0123456789"', f"sid={PLACEHOLDER}", "s3cr3t-0123456789"),
        ("Set-Cookie", f'sid="{SECRET}"; Path=/', f"sid={PLACEHOLDER}; Path=/", SECRET),
        ("Authorization", "s3cr3t-0123456789 and-more", PLACEHOLDER, "s3cr3t-0123456789 and-more"),
        ("Authorization", "s3cr3tZeroOneTwoThree", PLACEHOLDER, "s3cr3tZeroOneTwoThree"),
    ],
)
def test_what_a_header_holds_is_known_whole(name, value, kept, told):
    redactor = Redactor()
    assert redactor.headers([(name.encode(), value.encode())])[0] == [name, kept]
    assert redactor.text(f"<{told}>") == f"<{PLACEHOLDER}>"


def test_a_header_is_kept_as_it_is_sent_whether_it_is_given_as_text_or_as_bytes():
    redactor = Redactor()
    given = [
        ("X-Name", "caf\xe9 \u20ac"),
        (b"X-Name", b"caf\xe9 ?"),
        ("Authorization", f"Bearer {SECRET}"),
    ]
    kept = ["X-Name", "caf\xe9 ?", "X-Name", "caf\xe9 ?", "Authorization", f"Bearer {PLACEHOLDER}"]
    assert redactor.headers(given) == redactor.headers(given) == (kept, 1)


def test_values_that_are_equal_in_other_words_are_kept_apart():
    redactor = Redactor()
    given = [("X-Retry", 1), ("X-Retry", True), ("X-Retry", 1.0)]
    words = ["X-Retry", "1", "X-Retry", "True", "X-Retry", "1.0"]
    assert redactor.headers(given) == (words, 0)


def test_a_signature_of_one_request_is_removed_and_not_looked_for_elsewhere():
    redactor = Redactor.of_process(Settings())
    redactor.take_late()
    signed = b"AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20261126/eu-west-1/bedrock/aws4_request"
    for second in range(3):
        text = signed + b", SignedHeaders=host;x-amz-date, Signature=%064x" % second
        assert redactor.headers([(b"Authorization", text)]) == (["Authorization", PLACEHOLDER], 1)
    assert redactor.take_late() == []


@pytest.mark.parametrize(
    "name", ["x-ratelimit-remaining-tokens", "idempotency-key", "content-type", "x-request-id", "author"]
)
def test_headers_that_stay(name):
    assert Redactor().headers([(name.encode(), b"plain-value-123")]) == ([name, "plain-value-123"], 0)


@pytest.mark.parametrize(
    "name, value",
    [
        ("x-amzn-bedrock-input-token-count", "1024"),
        ("x-amzn-bedrock-output-token-count", "7"),
        ("anthropic-ratelimit-input-tokens-reset", "2026-11-22T20:00:00Z"),
        ("x-ratelimit-reset-tokens", "6ms"),
        ("x-token-usage", "12"),
        ("x-vault-token", "15"),
    ],
)
def test_counts_of_tokens_stay(name, value):
    assert Redactor().headers([(name.encode(), value.encode())]) == ([name, value], 0)


def test_the_password_of_a_login_is_known_from_then_on():
    redactor = Redactor()
    login = base64.b64encode(b"me:the-pass-word-7").decode()
    assert (
        redactor.headers([(b"Authorization", b"bAsIc " + login.encode())])[0][1]
        == f"bAsIc {PLACEHOLDER}"
    )
    assert redactor.text("me: the-pass-word-7.") == f"me: {PLACEHOLDER}."
    redactor.headers([(b"Authorization", b"Basic " + base64.b64encode(b"a-token-alone-8"))])
    assert redactor.text("a-token-alone-8") == PLACEHOLDER


def test_a_cookie_is_known_without_its_quotes_and_with_all_of_its_letters():
    redactor = Redactor()
    redactor.headers([(b"Set-Cookie", b'sid="X7-session-value-X"; Path=/')])
    assert redactor.text("X7-session-value-X") == PLACEHOLDER


def test_a_credential_that_a_field_tells_may_have_come_before_and_one_of_a_shape_is_told_by_itself():
    redactor = Redactor.of_process(Settings())
    redactor.take_late()
    redactor.body(b'{"api_key": "the-value-of-a-field-1"}')
    assert len(redactor.take_late()) == 1
    redactor.body(b'{"say": "sk-proj-0123456789abcdefghij"}')
    assert redactor.take_late() == []


def test_a_credential_in_a_variable_that_is_no_utf_8_is_known(monkeypatch):
    monkeypatch.setitem(os.environb, b"DB_PASSWORD", b"s3cr3t-\xff-0123456789")
    redactor = Redactor.of_process(Settings())
    assert redactor.body(b"login: s3cr3t-\xff-0123456789")[0] == b"login: " + PLACEHOLDER.encode()
    written = json.dumps({"say": os.fsdecode(b"s3cr3t-\xff-0123456789")}).encode()
    assert redactor.body(written)[0] == json.dumps({"say": PLACEHOLDER}).encode()


def test_what_a_server_hands_out_was_on_no_tape_before():
    redactor = Redactor.of_process(Settings())
    redactor.take_late()
    redactor.headers([(b"Set-Cookie", f"sid={SECRET}; Path=/".encode())])
    scrub(redactor, [b'{"access_token": "%s"}' % SECRET[::-1].encode()])
    assert redactor.take_late() == []
    assert redactor.text(f"{SECRET} {SECRET[::-1]}") == f"{PLACEHOLDER} {PLACEHOLDER}"
    redactor.headers([(b"Authorization", b"Bearer came-from-somewhere-9")])
    assert len(redactor.take_late()) == 1  # it may have been read before


def test_addresses_in_headers():
    redactor = Redactor()
    flat, count = redactor.headers(
        [
            (b"Location", f"https://h/cb?access_token={SECRET}&state=1".encode()),
            (b"Location", f"https://h/cb#id_token=other-{SECRET}".encode()),
            (b"Referer", b"https://github_pat_11ABCDEFG0123456789abcdef@h/a"),
            (b"Referer", b"https://me:monday-x@h/a"),
        ]
    )
    assert flat[1::2] == [
        f"https://h/cb?access_token={PLACEHOLDER}&state=1",
        f"https://h/cb#id_token={PLACEHOLDER}",
        f"https://{PLACEHOLDER}@h/a",
        f"https://me:{PLACEHOLDER}@h/a",
    ]
    assert count == 4


def test_environment_of_many_kinds():
    redactor = Redactor()
    hidden = {
        "PGPASSWORD": "postgres-pass-1",
        "MYSQL_PWD": "mysql-pass-22",
        "SSHPASS": "ssh-pass-333",
        "REDISCLI_AUTH": "redis-pass-4444",
        "GH_PAT": "pat-value-55555",
        "STORAGE_KEY": "/Ab9dE8fG7hI6jK5lM4nO3pQ2rS1==",
        "OTEL_EXPORTER_OTLP_HEADERS": "",
    }
    redactor.environment(hidden | {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20otlp-pass-6"})
    stays = {
        "APP_SECRET_KEY": "development",
        "TOKEN_LIMIT": "1234567890",
        "TLS_KEY": "/etc/ssl/private/server-1.key",
        "PWD": "/srv/agents/one-2",
        "MAX_TOKENS": "12345678",
        "SSH_AUTH_SOCK": "/tmp/ssh-XX1/agent.2",
    }
    redactor.environment(stays)
    for value in [*filter(None, hidden.values()), "otlp-pass-6"]:
        assert redactor.text(f"<{value}>") == f"<{PLACEHOLDER}>"
    for value in stays.values():
        assert redactor.text(value) == value


def test_command_lines_of_children():
    redactor = Redactor()
    assert redactor.arguments(
        ["curl", "-H", f"Authorization: Bearer {SECRET}", "-u", "me:pass-word-77", "https://h/?api_key=k-123456"]
    ) == [
        "curl", "-H", f"Authorization: Bearer {PLACEHOLDER}", "-u", f"me:{PLACEHOLDER}",
        f"https://h/?api_key={PLACEHOLDER}",
    ]  # fmt: skip
    assert redactor.arguments(["env", "PGPASSWORD=pg-pass-88", "psql"])[1] == f"PGPASSWORD={PLACEHOLDER}"


def test_a_known_value_in_base64():
    redactor = Redactor()
    redactor.learn(SECRET)
    for before in ("", "a", "ab", "abc", "me:"):
        coded = base64.b64encode(f"{before}{SECRET} and more".encode()).decode()
        kept = redactor.text(f'"{coded}"')
        assert PLACEHOLDER in kept and coded[8:24] not in kept


def test_what_was_masked_is_known_again():
    """A replay gets the mask where the recording got the value; what it sends is the same."""
    for leaked in range(4):
        redactor = Redactor()
        redactor.learn(SECRET)
        kept, _ = scrub(redactor, [f"<<{SECRET[:leaked]}".encode(), f"{SECRET[leaked:]}>>".encode()])
        got = b"".join(kept).decode()
        assert (
            Redactor().text(f"**{got}**")
            == redactor.text(f"**<<{SECRET}>>**")
            == f"**<<{PLACEHOLDER}>>**"
        )
        kept, _ = scrub(redactor, [SECRET[:leaked].encode(), f"{SECRET[leaked:]}!".encode()])
        assert Redactor().text(b"".join(kept).decode()) == f"{PLACEHOLDER}!"


@pytest.mark.parametrize(
    "url, kept",
    [
        (f"https://h/p?key={SECRET}&q=1", f"https://h/p?key={PLACEHOLDER}&q=1"),
        (f"https://h/p?q=1&access_token={SECRET}", f"https://h/p?q=1&access_token={PLACEHOLDER}"),
        (f"https://h/p?X-Amz-Signature={SECRET}", f"https://h/p?X-Amz-Signature={PLACEHOLDER}"),
        (f"https://user:{SECRET}@h/p", f"https://user:{PLACEHOLDER}@h/p"),
        ("https://h/p?page_token=abcdefghij", "https://h/p?page_token=abcdefghij"),
        ("https://h/p?q=monkey", "https://h/p?q=monkey"),
    ],
)
def test_urls(url, kept):
    redactor = Redactor()
    assert redactor.url(url) == kept
    assert redactor.url(url) == kept


@pytest.mark.parametrize(
    "body, kept",
    [
        (
            b'{"client_id": "me", "client_secret": "%s"}' % SECRET.encode(),
            b'{"client_id": "me", "client_secret": "[redacted]"}',
        ),
        (
            b'{"refresh_token":"%s","n":1}' % SECRET.encode(),
            b'{"refresh_token":"[redacted]","n":1}',
        ),
        (
            b'{"client_secret": {"value": "%s"}}' % SECRET.encode(),
            b'{"client_secret": {"value": "[redacted]"}}',
        ),
        (
            b"grant_type=password&password=%s&user=me" % SECRET.encode(),
            b"grant_type=password&password=[redacted]&user=me",
        ),
        (
            b"grant_type=x&assertion=%s" % SECRET.encode(),
            b"grant_type=x&assertion=[redacted]",
        ),
        (b"grant_type=x&assertion=monday&scope=y", b"grant_type=x&assertion=[redacted]&scope=y"),
        (
            b"grant_type=authorization_code&code=one%20two",
            b"grant_type=authorization_code&code=[redacted]",
        ),
        (
            b"grant_type=x&Token=monday&subject_token_type=y",
            b"grant_type=x&Token=[redacted]&subject_token_type=y",
        ),
        (b'{"password": "a\\"b"}', b'{"password": "[redacted]"}'),
    ],
)
def test_request_bodies(body, kept):
    redactor = Redactor()
    assert redactor.body(body) == (kept, 1)


@pytest.mark.parametrize(
    "body",
    [
        b'{"max_tokens": 5, "messages": [{"content": "my password is short"}]}',
        b'{"properties": {"password": {"type": "string"}}}',
        b'{"logprobs": [{"token": "Hello", "bytes": [1]}]}',
    ],
)
def test_request_bodies_that_stay(body):
    redactor = Redactor()
    kept, count = redactor.body(body)
    assert kept is body and count == 0


def test_a_value_is_found_in_its_usual_encodings():
    redactor = Redactor()
    value = 'p/w+"d=\\x é'
    redactor.learn(value)
    for text in (
        value,
        json.dumps(value),
        json.dumps(value, ensure_ascii=False),
        "p%2Fw%2B%22d%3D%5Cx%20%C3%A9",
    ):
        assert PLACEHOLDER in redactor.text(text)


def test_command_lines():
    redactor = Redactor()
    words = [
        "a.py",
        "--api-key",
        SECRET,
        "--token=tok-12345678",
        "--name",
        "x",
        "OPENAI_API_KEY=abcdefgh",
        "-v",
    ]
    assert redactor.arguments(words) == [
        "a.py", "--api-key", PLACEHOLDER, f"--token={PLACEHOLDER}", "--name", "x",
        f"OPENAI_API_KEY={PLACEHOLDER}", "-v",
    ]  # fmt: skip
    assert redactor.text(f"{SECRET} tok-12345678 abcdefgh") == " ".join([PLACEHOLDER] * 3)


def test_environment_and_env_files(tmp_path):
    (tmp_path / ".env").write_text(
        "# comment\nexport DEPLOY_TOKEN='from-env-file-1'\nMODEL=gpt-4o-mini-2024-07-18\n"
        "OPAQUE=abcdefghij0123456789\n"
    )
    redactor = Redactor()
    redactor.environment(
        {
            "OPENAI_API_KEY": "sk-from-environment",
            "DATABASE_URL": "postgres://u:hunter2hunter2@db/x",
            "GOOGLE_APPLICATION_CREDENTIALS": "/etc/key.json",
            "NOTE": "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
            "PAGER": "less-is-more",
        }
    )
    redactor.env_files(tmp_path)
    hidden = ["sk-from-environment", "hunter2hunter2", "from-env-file-1", "abcdefghij0123456789"]
    hidden.append("ghp_abcdefghijklmnopqrstuvwxyz0123456789")
    for value in hidden:
        assert redactor.text(value) == PLACEHOLDER
    for value in ("/etc/key.json", "less-is-more", "gpt-4o-mini-2024-07-18"):
        assert redactor.text(value) == value


def test_without_content_a_command_line_is_its_first_word():
    words = ["python", "agent.py", "--prompt", "who is ill?"]
    assert Redactor(content=False).arguments(words) == ["python"]
    assert Redactor().arguments(words) == words


def test_digests_of_one_user_are_the_same_in_each_process(tmp_path, monkeypatch):
    monkeypatch.setitem(os.environ, "XDG_STATE_HOME", str(tmp_path))
    first, second = (Redactor.of_process(Settings()) for _ in range(2))
    assert first.digest(b"body") == second.digest(b"body") != Redactor().digest(b"body")
    assert first.digest(b"body") != first.digest(b"another body")


def test_a_form_that_is_no_utf8_is_redacted_too():
    redactor = Redactor()
    body, count = redactor.body(b"user=a&password=\xff\xfesecret-0123456789&x=1")
    assert (count, body.count(b"secret-0123456789"), body[-4:]) == (1, 0, b"&x=1")


def test_a_field_that_the_body_ends_within_is_hidden_and_not_taken_for_the_whole_value():
    redactor = Redactor()
    begun = "hunter2-hunter"
    body, count = redactor.body(b'{"password": "' + begun.encode())
    assert (count, begun.encode() in body) == (1, False)
    assert redactor.text(f"go {begun}!") == f"go {begun}!"
    redactor.body(b'{"password": "' + begun.encode() + b'"}')
    assert redactor.text(f"go {begun}!") == f"go {PLACEHOLDER}!"


def test_a_value_is_hidden_before_the_field_that_tells_it_too():
    told, known = "hunter2-hunter", "hunter3-hunter"
    redactor = Redactor()
    redactor.learn(known)
    said = json.dumps({"text": f"it is {told}", "password": told, "api_key": known}).encode()
    kept, count = redactor.body(said)
    assert (count, told.encode() in kept, known.encode() in kept) == (3, False, False)
    assert not redactor.learn(told)


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_a_value_in_json_within_json_is_known_as_it_is(levels):
    redactor, value = Redactor(), 'pass"word-0123456789'
    text = {"password": value}
    for _ in range(levels):
        text = {"arguments": json.dumps(text)}
    assert redactor.body(json.dumps(text).encode())[1] == 1
    assert redactor.text(f"it is {value}") == f"it is {PLACEHOLDER}"


def test_rules_are_a_list():
    redactor = Redactor(rules=[*RULES, Rule("header", r"^x-tenant$")])
    assert redactor.headers([(b"x-tenant", b"acme-corporation")]) == (["x-tenant", PLACEHOLDER], 1)


def test_only_the_new_part_of_a_body_is_searched():
    redactor = Redactor()
    redactor.learn(SECRET)
    old = b"x" * 20_000
    body = old + SECRET.encode()
    assert redactor.body(body, len(old)) == (old + b"[redacted]", 1)


def test_a_long_value_is_found_across_the_border_of_the_new_part():
    redactor = Redactor()
    value = "".join(f"{number:04x}" for number in range(100))
    redactor.learn(value)
    body = b"x" * 5_000 + value.encode() + b"!"
    for inside in (1, 255, 257, 399):
        assert redactor.body(body, 5_000 + inside) == (b"x" * 5_000 + b"[redacted]!", 1)


def test_of_two_secrets_the_longest_that_fits_is_hidden():
    for one, other in ((SECRET, SECRET + "-and-more"), (SECRET + "-and-more", SECRET)):
        redactor = Redactor()
        redactor.learn(one)
        redactor.learn(other)
        body = f"{SECRET}-and-more {SECRET}-and-less {SECRET}".encode()
        assert redactor.body(body) == (b"[redacted] [redacted]-and-less [redacted]", 3)


def test_what_is_learnt_once_the_tape_has_begun_is_told_once():
    redactor = Redactor.of_process(Settings())
    assert redactor.take_late() == []
    redactor.learn("came-with-its-name", late=False)
    redactor.learn(SECRET)
    redactor.learn(SECRET)
    assert len(redactor.take_late()) == 1
    assert redactor.take_late() == []


def test_the_key_of_digests_is_the_users_own(tmp_path):
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    key = key_of_user(environ)
    assert key is not None and len(key) == 32
    assert key_of_user(environ) == key
    assert stat.S_IMODE((tmp_path / "playhead" / "redaction.key").stat().st_mode) == 0o600
    assert Redactor(key=key).digest(b"x") == Redactor(key=key).digest(b"x") != Redactor().digest(b"x")


def scrub(redactor, chunks, content_type="application/json", encoding=""):
    scrubber = redactor.response(content_type, encoding)
    return [scrubber.chunk(chunk) for chunk in chunks], scrubber.count


@pytest.mark.parametrize("cut", range(1, len(SECRET) + 6))
def test_a_secret_that_two_chunks_share_is_masked_in_both(cut):
    redactor = Redactor()
    redactor.learn(SECRET)
    body = b"<<" + SECRET.encode() + b">> and more"
    kept, count = scrub(redactor, [body[:cut], body[cut:]], "text/event-stream")
    joined = b"".join(kept)
    assert [len(part) for part in kept] == [cut, len(body) - cut]
    assert joined.endswith(b">> and more")
    # At most its first five characters were written before the rest came.
    assert SECRET.encode()[:6] not in joined and SECRET.encode()[5:] not in joined
    assert count >= 1


def test_a_secret_over_many_chunks():
    redactor = Redactor()
    redactor.learn(SECRET)
    pieces = [SECRET.encode()[at : at + 7] for at in range(0, len(SECRET), 7)]
    kept, _ = scrub(redactor, [b"a", *pieces, b"b"])
    assert b"".join(kept) == b"a" + mask(len(SECRET)) + b"b"


@pytest.mark.parametrize("cut", range(len(SECRET) - 1, len(SECRET) + 11))
def test_of_two_secrets_that_begin_alike_the_longest_is_masked_however_it_is_cut(cut):
    redactor = Redactor()
    redactor.learn(SECRET)
    redactor.learn(SECRET + "-and-more")
    body = f"{SECRET}-and-more.".encode()
    kept, _ = scrub(redactor, [body[:cut], body[cut:]])
    joined = b"".join(kept)
    assert len(joined) == len(body) and joined.endswith(b".")
    assert b"-and" not in joined and b"more" not in joined and SECRET.encode() not in joined


@pytest.mark.parametrize("size", range(1, 40))
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_a_long_field_over_many_chunks(size, levels):
    """Its quotes are escaped, and the escapes are cut too; what closes it is found all the same."""
    value = 'a"b\\' * 40 + "'" + SECRET + "\\"
    body = json.dumps({"password": value, "n": "after"})
    for _ in range(levels - 1):
        body = json.dumps({"arguments": body})
    data = body.encode()
    redactor = Redactor()
    kept, _ = scrub(redactor, [data[at : at + size] for at in range(0, len(data), size)])
    joined = b"".join(kept)
    assert len(joined) == len(data)
    closing = "\\" * (2 ** (levels - 1) - 1) + '", '
    assert joined.endswith(body[body.index(closing) + len(closing) - 3 :].encode())
    assert SECRET[5:].encode() not in joined and b"b\\" not in joined
    assert redactor.text(f"<{value}>") == f"<{PLACEHOLDER}>"


def delta(text, name="content"):
    return json.dumps({"id": "x", "choices": [{"index": 0, "delta": {name: text}}]})


@pytest.mark.parametrize("size", range(1, 9))
@pytest.mark.parametrize("name", ["content", "text", "partial_json", "arguments"])
@pytest.mark.parametrize("value", [SECRET, "sk-proj-0aB1cD2eF3gH4iJ5"])
def test_a_known_value_that_a_model_says_in_pieces_is_masked_in_each(size, name, value):
    redactor = Redactor()
    redactor.learn(value)
    said = ["Your ", "key", " is "] + [value[at : at + size] for at in range(0, len(value), size)]
    said += [". ", "Keep", " it."]
    chunks = [f"data: {delta(text, name)}\n\n".encode() for text in said]
    kept, count = scrub(redactor, chunks, "text/event-stream")
    assert [len(one) for one in kept] == [len(one) for one in chunks]
    joined = "".join(json.loads(one[6:])["choices"][0]["delta"][name] for one in kept)
    assert joined.startswith("Your key is ") and joined.endswith(". Keep it.")
    assert value[:6] not in joined and value[5:] not in joined and value[-4:] not in joined
    assert count >= 1
    # What the program puts together of it is told apart at a replay.
    assert Redactor().text(joined) == redactor.text(f"Your key is {value}. Keep it.")


def test_fields_of_events_are_masked():
    redactor = Redactor()
    event = (
        b'event: auth\ndata: {"accessToken": "%s", "usage": {"token_count": 7}}\n\n' % SECRET.encode()
    )
    kept, count = scrub(redactor, [event], "text/event-stream")
    assert kept == [event.replace(SECRET.encode(), mask(len(SECRET)))] and count == 1
    assert redactor.text(SECRET) == PLACEHOLDER


def test_a_field_of_few_bytes_is_masked_in_stars():
    kept, count = scrub(Redactor(), [b'data: {"password": "ab1"}\n\n'], "text/event-stream")
    assert (kept, count) == ([b'data: {"password": "***"}\n\n'], 1)


def test_a_shape_that_two_chunks_share_is_masked_in_both():
    key = "ghp_0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0u1V2w"
    for cut in range(1, len(key) + 4):
        body = f"<<{key}>> and more".encode()
        kept, _ = scrub(Redactor(), [body[:cut], body[cut:]], "text/plain")
        joined = b"".join(kept)
        assert len(joined) == len(body) and joined.endswith(b">> and more")
        assert key[12:].encode() not in joined and key[:20].encode() not in joined


def test_what_only_begins_like_a_secret_is_masked_in_the_chunk_that_it_ends():
    redactor = Redactor()
    redactor.learn(SECRET)
    kept, _ = scrub(redactor, [b"see " + SECRET.encode()[:8], b"lightly other"])
    assert kept == [b"see *redact~", b"lightly other"]


@pytest.mark.parametrize("cut", range(1, 60))
def test_a_secret_field_of_an_answer_however_it_is_cut(cut):
    redactor = Redactor()
    body = b'{"access_token": "%s", "expires_in": 3600}' % SECRET.encode()
    kept, _ = scrub(redactor, [body[:cut], body[cut:]])
    assert b"".join(kept) == b'{"access_token": "%s", "expires_in": 3600}' % mask(len(SECRET))
    assert redactor.text(SECRET) == PLACEHOLDER


@pytest.mark.parametrize(
    "encoding, pack, unpack",
    [
        ("gzip", gzip.compress, lambda data: zlib.decompressobj(31).decompress(data)),
        ("deflate", zlib.compress, lambda data: zlib.decompressobj().decompress(data)),
    ],
)
def test_a_compressed_answer_is_looked_into(encoding, pack, unpack):
    redactor = Redactor()
    redactor.learn(SECRET)
    assert redactor.response("application/json", encoding).count == 0
    plain = pack(b'{"a": "harmless"}')
    assert scrub(redactor, [plain], encoding=encoding) == ([plain], 0)
    kept, count = scrub(redactor, [pack(b'{"a": "%s"}' % SECRET.encode())], encoding=encoding)
    assert (kept, count) == ([b'{"a": "%s"}' % mask(len(SECRET))], 1)
    assert unpack(b"".join(repacked(kept, [encoding], complete=True))) == kept[0]


@pytest.mark.parametrize("encoding, pack", [("gzip", gzip.compress), ("zstd", zstandard.compress)])
def test_a_secret_in_a_later_member_of_a_compressed_answer(encoding, pack):
    redactor = Redactor()
    redactor.learn(SECRET)
    members = [pack(b'{"a": "harmless", '), pack(b'"b": "%s"}' % SECRET.encode())]
    wanted = b'{"a": "harmless", "b": "%s"}' % mask(len(SECRET))
    for chunks in ([b"".join(members)], members, [members[0] + members[1][:9], members[1][9:]]):
        scrubber = redactor.response("application/json", encoding)
        pieces, lacks = [], []
        for chunk in chunks:
            pieces.append(scrubber.chunk(chunk))
            lacks.append(scrubber.unpacked)
        whole = repacked(pieces, lacks, complete=True) if lacks[-1] else pieces
        assert decode_body([("content-encoding", encoding)], whole)[0] == wanted
        assert scrubber.count == 1


def test_what_is_behind_a_compressed_answer_hides_no_secret_in_it():
    redactor = Redactor()
    redactor.learn(SECRET)
    answer = gzip.compress(b'"%s"' % SECRET.encode()) + b"\nno gzip"
    (kept,), count = scrub(redactor, [answer], encoding="gzip")
    assert kept == b'"%s"' % mask(len(SECRET))
    assert count == 1


def test_a_compressed_answer_with_a_late_secret_is_whole(monkeypatch):
    """What came before it is on the tape as it came; a replay is answered with one compressed answer."""
    monkeypatch.setenv("SERVICE_TOKEN", SECRET)
    first = json.dumps({"a": "harmless " * 20}).encode() + b"\n"
    second = b'{"say": "%s", "tool": "{\\"password\\": \\"pass-word-1\\"}"}\n' % SECRET.encode()
    third = b'{"last": "words"}\n'
    packer = zlib.compressobj(wbits=31)
    chunks = [packer.compress(one) + packer.flush(zlib.Z_SYNC_FLUSH) for one in (first, second, third)]
    chunks[-1] += packer.flush()
    headers = [("content-type", "application/json"), ("content-encoding", "gzip")]

    def program():
        with httpx2.stream("GET", server.url) as response:
            return list(response.iter_lines())

    with ScriptedServer() as server:
        server.script([Reply(chunks, headers=headers, framing="chunked")])
        recorded, tape = record(program)
    assert recorded == [one.decode().strip() for one in (first, second, third)]
    on_tape = written(tape)
    assert SECRET.encode() not in on_tape and b"pass-word-1" not in on_tape
    [exchange] = tape.exchanges().values()
    assert b"".join(one.data.inline for one in exchange.parts).startswith(b"\x1f\x8b")
    replayed, _ = replay(program, tape)
    assert replayed[::2] == recorded[::2]
    assert replayed[1] == recorded[1].replace(SECRET, mask(len(SECRET)).decode()).replace(
        "pass-word-1", mask(11).decode()
    )


def test_nothing_of_it_is_on_the_tape_and_it_replays(monkeypatch):
    """Header, query, form, answer in two chunks, gzip, print: and a replay with other keys."""
    secrets = [f"planted-secret-number-{number:02d}" for number in range(6)]
    spoken: list[str] = []

    def program():
        key = keys[0]
        first = httpx2.get(
            f"{url}/a?api_key={key[0]}",
            headers={"authorization": f"Bearer {key[1]}", "cookie": f"s={key[2]}"},
        )
        token = httpx2.post(f"{url}/token", data={"grant_type": "x", "client_secret": key[3]}).json()
        with httpx2.stream("GET", f"{url}/echo", headers={"x-api-key": key[4]}) as response:
            echoed = b"".join(response.iter_bytes())
        print("using", key[5])
        spoken.append(echoed.decode())
        return first.json(), sorted(token), len(echoed)

    monkeypatch.setenv("SERVICE_TOKEN", secrets[5])
    keys = [secrets]
    with ScriptedServer() as server:
        url = server.url
        cut = len(secrets[4]) // 2
        server.script(
            [
                json_reply(
                    {"you sent": secrets[1]}, gzip=True, headers={"set-cookie": f"sid={secrets[0]}"}
                ),
                json_reply({"access_token": "issued-token-0123456789"}),
                sse_reply([b"data: " + secrets[4][:cut].encode(), secrets[4][cut:].encode() + b"\n\n"]),
            ]
        )
        recorded, tape = record(program)
    assert secrets[4] in spoken[0]
    on_tape = written(tape)
    assert b"grant_type" in on_tape and b"using" in on_tape
    for planted in [*secrets, "issued-token-0123456789"]:
        assert planted.encode() not in on_tape
    assert b"planted-secret-number-0" not in on_tape
    monkeypatch.setenv("SERVICE_TOKEN", "stand-in-token")
    keys = [["stand-in-" + secret[:8] for secret in secrets[:5]] + ["stand-in-token"]]
    replayed, now = replay(program, tape)
    assert replayed == (
        {"you sent": mask(len(secrets[1])).decode()}, recorded[1], recorded[2]
    )  # fmt: skip
    fidelities = [one.ask.details[a.PLAYHEAD_FIDELITY] for one in now.exchanges().values()]
    assert fidelities == ["exact"] * 3


def test_a_redacted_body_carries_a_keyed_digest():
    with ScriptedServer() as server, recording() as sink:
        server.script([json_reply({})])
        httpx2.post(server.url, json={"password": SECRET})
    [exchange] = sink.tape().exchanges().values()
    assert exchange.ask.details[a.PLAYHEAD_REDACTED_COUNT] == 1
    assert len(exchange.ask.details[a.PLAYHEAD_REDACTED_DIGEST]) == 64
    assert sink.tape().read(exchange.ask.body) == b'{"password":"[redacted]"}'


def test_metadata_keeps_no_query():
    redactor = Redactor(content=False)
    assert redactor.url("https://h/p?city=Rome&q=1#part") == "https://h/p"
    assert redactor.headers([(b"location", b"https://h/p?city=Rome")])[0] == ["location", "https://h/p"]


def test_metadata_records_no_content():
    with (
        ScriptedServer() as server,
        recording(settings=Settings(quiet=True, content="metadata")) as sink,
    ):
        server.script([json_reply({"answer": "ordinary text"})])
        httpx2.post(server.url, json={"question": "other text"})
        print("printed text")
    data = written(sink.tape())
    for text in (b"ordinary text", b"other text", b"printed text"):
        assert text not in data
    [exchange] = sink.tape().exchanges().values()
    assert (exchange.ask.body.size, exchange.parts[0].data.size) == (25, 26)


def struct(text, deep):
    """A message with texts in messages, a text that is longer than one byte tells, and other fields."""
    found = struct_pb2.Struct()
    found["said"] = f"my key is {text}, keep it"
    for _ in range(deep):
        outer = struct_pb2.Struct()
        outer.update({"nested": found, "long": f"{text} " + "x" * 300, "n": 1.5, "all": ["a", text]})
        found = outer
    return found


@pytest.mark.parametrize("deep", [0, 1, 9, 60])
def test_a_protobuf_message_stays_one(deep):
    secret = "sk-proj-0123456789abcdefghijABCDEFGHIJ0123456789"
    data = struct(secret, deep).SerializeToString(deterministic=True)
    kept, count = Redactor().body(data)
    assert (secret.encode() in kept, count) == (False, 1 + 2 * deep)
    if deep < 10:
        assert struct_pb2.Struct.FromString(kept) == struct(PLACEHOLDER, deep)


def test_what_is_no_protobuf_message_is_text():
    secret = "sk-proj-0123456789abcdefghijABCDEFGHIJ0123456789"
    for before in (b"", b"a=1&b=", b"\x0a\x02", b"\x08\xff", b"my key is ", b"\x12\x7f", b"\x00\x00"):
        assert Redactor().body(before + secret.encode()) == (before + PLACEHOLDER.encode(), 1)
