"""Tokens, tenants and the audit log."""

import json
import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import grpc
import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.pages.views import main_script
from support.starting.cli import CommandLine, refund, store_run
from support.starting.warm import Process
from support.tapes.batches import span_of
from support.tapes.handmade import TRACE

from playhead_core.errors import ConfigurationError, UsageError
from playhead_receiver.auth import Audit, TokenBook
from playhead_receiver.auth.database import FILE, AccessFile
from playhead_receiver.auth.guard import Guard, Unauthenticated
from playhead_receiver.auth.tokens import SCOPES
from playhead_receiver.config.configuration import Access, Addresses, CompatibilityLimits, Configuration
from playhead_receiver.endpoints.query_api import COMPATIBILITY_ROUTERS, scopes
from playhead_receiver.server import Receiver
from playhead_receiver.storage import open_store
from playhead_receiver.system.writer_lock import running

PROTOBUF = {"content-type": "application/x-protobuf"}
TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


@pytest.fixture
def book(tmp_path: Path) -> Iterator[TokenBook]:
    file = AccessFile(tmp_path)
    yield TokenBook(file)
    file.close()


@pytest.fixture
def playhead(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path / "data", capsys)


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def body_of(trace_id: bytes, **attributes: Any) -> bytes:
    entry = ResourceSpans.FromString(span_of(trace_id, 1, service="agent", **attributes).otlp)
    return ExportTraceServiceRequest(resource_spans=[entry]).SerializeToString()


def test_a_token_opens_until_it_is_revoked(book: TokenBook, tmp_path: Path):
    assert book.find("ph_00000000_" + "x" * 43) is None
    assert not (tmp_path / FILE).exists()
    token, text = book.create("ci", ["read", "ingest"], tenant="acme")
    assert (token.scopes, token.tenant) == (("ingest", "read"), "acme")
    assert book.find(text) == token
    assert book.find(text[:-1] + ("A" if text[-1] != "A" else "B")) is None
    assert book.find(text + "x") is None
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    assert book.any_live()
    [ended] = book.revoke("ci")
    assert ended.id == token.id and ended.revoked_ns is not None
    assert book.find(text) is None
    assert not book.any_live()
    assert [one.id for one in book.tokens()] == [token.id]
    with pytest.raises(UsageError, match="no valid token"):
        book.revoke(token.id)


def test_a_copy_of_the_tokens_opens_what_they_opened_and_is_its_owners_alone(tmp_path: Path):
    folders = [tmp_path / name for name in ("data", "copy", "restored")]
    folders[1].mkdir()
    file, restored = AccessFile(folders[0]), AccessFile(folders[2])
    empty = AccessFile(tmp_path / "nothing")
    empty.copy_to(folders[1])
    assert list(folders[1].iterdir()) == []
    _, text = TokenBook(file).create("ci", ["read"])
    assert stat.S_IMODE(folders[0].stat().st_mode) == 0o700
    file.copy_to(folders[1])
    assert stat.S_IMODE((folders[1] / FILE).stat().st_mode) == 0o600
    for _ in range(2):  # what is there already stays as it is
        restored.add_from(folders[1])
        assert [one.name for one in TokenBook(restored).tokens()] == ["ci"]
    assert TokenBook(restored).find(text) is not None
    for one in (file, restored, empty):
        one.close()


def test_a_token_ends_at_its_time(book: TokenBook):
    _, text = book.create("short", ["read"], lifetime_ns=0)
    assert book.find(text) is None
    _, text = book.create("long", ["read"], lifetime_ns=10**15)
    assert book.find(text) is not None


@pytest.mark.parametrize(
    ("scopes", "tenant", "what"),
    [
        ([], "", "a token needs a scope"),
        (["read", "root", "su"], "", "there is no scope 'root'"),
        (["read"], "../x", "'../x' cannot be the name of a tenant"),
        (["read"], "A", "'A' cannot be the name of a tenant"),
        (["read"], "a/b", "'a/b' cannot be the name of a tenant"),
    ],
)
def test_what_cannot_be_a_token(book: TokenBook, scopes: list[str], tenant: str, what: str):
    with pytest.raises(UsageError) as refused:
        book.create("x", scopes, tenant=tenant)
    assert refused.value.what == what
    wanted = "use a-z, 0-9, _ and -, at most 63" if tenant else f"scopes are {', '.join(SCOPES)}"
    assert refused.value.hint == wanted


def test_tokens_from_the_command_line(playhead: CommandLine):
    made = playhead("token", "create", "ci", "--scope", "read", "--tenant", "acme", "--expires", "90d")
    assert made.status == 0
    assert "agents need a token: playhead token create agents --scope ingest" in made.err
    text = made.out.strip()
    listed = json.loads(playhead("token", "list", "--json").out)
    [token] = listed["tokens"]
    assert (token["name"], token["scopes"], token["tenant"]) == ("ci", ["read"], "acme")
    assert abs(token["expires_ns"] - time.time_ns() - 90 * 86400 * 10**9) < 10**11
    assert text not in json.dumps(listed) and text.split("_")[1] == token["id"]
    assert playhead("token", "list").out.startswith(f"{token['id']}  ci  read  tenant acme")
    assert playhead("token", "revoke", token["id"]).status == 0
    assert "revoked" in playhead("token", "list").out
    assert playhead("token", "revoke", "nobody").status == 2


def test_what_is_revoked_is_closed_at_once(tmp_path: Path, book: TokenBook):
    _, text = book.create("ci", ["ingest"])
    book.create("another", ["read"])
    with Receiver(
        tmp_path, Configuration(Addresses(http_port=0, grpc_port=None), Access(guarded=True))
    ) as receiver:
        url = f"{receiver.http_endpoint}/v1/traces"
        assert httpx.post(url, headers=PROTOBUF | bearer(text)).status_code == 200
        book.revoke("ci")
        assert httpx.post(url, headers=PROTOBUF | bearer(text)).status_code == 401


def test_the_expiry_of_the_last_token_opens_nothing_and_its_revocation_does(book: TokenBook):
    guard = Guard(book, by_book=True)
    assert guard.admit("", "read").token == "" and not guard.required
    token, text = book.create("ci", ["read"], lifetime_ns=10**15)
    book.create("over", ["read"], lifetime_ns=0)
    assert guard.admit(f"Bearer {text}", "read").token == token.id
    book.revoke("ci")
    assert not book.any_live()
    for one in (guard, Guard(book, by_book=True)):  # also of a receiver that is started then
        assert one.required
        for header in ("", f"Bearer {text}"):
            with pytest.raises(Unauthenticated):
                one.admit(header, "read")
    book.revoke("over")
    assert guard.admit("", "read").token == "" and not guard.required


@pytest.mark.parametrize("named", ["static", "key"])
def test_a_fixed_token_is_compared_as_a_whole(book: TokenBook, named: str):
    right = "0123456789abcdef" * 3
    guard = Guard(book, required=True, static=right if named == "static" else "other", key=right)
    assert guard.admit(f"Bearer {right}", "admin").name
    wrong = [right[:size] for size in (0, 1, 8, 16, 32, 47)]
    wrong += [right[:at] + "x" + right[at + 1 :] for at in range(len(right))]
    for text in (*wrong, f"{right}x", right * 2, right.upper()):
        with pytest.raises(Unauthenticated):
            guard.admit(f"Bearer {text}", "read")


def test_the_first_token_closes_a_receiver_that_was_open(tmp_path: Path, book: TokenBook):
    def answers(receiver: Receiver, headers: dict[str, str]) -> list[int]:
        return [
            httpx.post(f"{receiver.http_endpoint}/v1/traces", headers=PROTOBUF | headers).status_code,
            httpx.get(f"{receiver.query_endpoint}/v1/runs", headers=headers).status_code,
            httpx.get(f"{receiver.query_endpoint}/tempo/api/echo", headers=headers).status_code,
        ]

    def code(receiver: Receiver) -> grpc.StatusCode:
        with grpc.insecure_channel(receiver.grpc_endpoint) as channel:
            try:
                channel.unary_unary(TRACES)(b"", timeout=60)
            except grpc.RpcError as problem:
                return problem.code()
        return grpc.StatusCode.OK

    everywhere = Addresses(http_port=0, grpc_port=0, query_port=0)
    guarded = Configuration(everywhere, Access(guarded=True))
    with Receiver(tmp_path, guarded) as receiver:
        assert (answers(receiver, {}), code(receiver)) == ([200] * 3, grpc.StatusCode.OK)
        _, text = book.create("ci", ["admin"])
        assert (answers(receiver, {}), code(receiver)) == ([401] * 3, grpc.StatusCode.UNAUTHENTICATED)
        assert answers(receiver, bearer(text)) == [200] * 3
        owner = running(tmp_path)
        assert owner is not None and answers(receiver, bearer(owner.key)) == [200] * 3
        book.revoke("ci")
        assert (answers(receiver, {}), code(receiver)) == ([200] * 3, grpc.StatusCode.OK)
    with Receiver(tmp_path, guarded) as receiver:
        assert answers(receiver, {}) == [200] * 3
        assert owner.key != running(tmp_path).key  # type: ignore[union-attr]


def test_the_command_line_says_what_the_first_and_the_last_token_do(playhead: CommandLine):
    assert "asks for a token" not in playhead("token", "create", "early").err
    assert playhead("token", "revoke", "early").err.endswith("open to every user of this machine\n")
    with Receiver(
        playhead.data_dir,
        Configuration(Addresses(http_port=0, grpc_port=None, query_port=0), Access(guarded=True)),
    ):
        made = playhead("token", "create", "ci").err
        assert f"process {os.getpid()} asks for a token from now on" in made
        assert "to undo: playhead token revoke " in made
        assert "asks for a token" not in playhead("token", "create", "more").err
        assert "no token is left" not in playhead("token", "revoke", "more").err


def test_no_answer_is_guessed_at_or_kept(tmp_path: Path):
    """Routes, pages, refusals, unknown paths, and what is no HTTP at all; on both ports."""
    everywhere = Addresses(http_port=0, grpc_port=None, query_port=0)
    with Receiver(tmp_path, Configuration(everywhere, Access(guarded=True))) as receiver:
        paths = ["/", "/web/none.js", "/none", "/health", "/v1/runs", "/v1/runs/none", "/openapi.json"]
        paths += ["/jaeger/api/services", "/tempo/api/echo", "/metrics"]
        asked = [("GET", receiver.query_endpoint + path) for path in paths]
        asked += [("POST", receiver.query_endpoint + path) for path in ("/v1/runs", "/")]
        asked += [("GET", receiver.http_endpoint + path) for path in ("/health", "/none", "/v1/traces")]
        asked += [("POST", f"{receiver.http_endpoint}/v1/{signal}") for signal in ("traces", "logs")]
        answers = [httpx.request(*one, timeout=60) for one in asked]
        answers.append(httpx.get(asked[0][1], headers={"host": "elsewhere.test"}, timeout=60))
        for answer in answers:
            assert answer.headers.get_list("x-content-type-options") == ["nosniff"], answer.url
            assert len(answer.headers.get_list("cache-control")) == 1, answer.url
        assert {answer.headers["cache-control"] for answer in answers} == {"no-cache", "no-store"}
        for endpoint in (receiver.http_endpoint, receiver.query_endpoint):
            address = "127.0.0.1", int(endpoint.rpartition(":")[2])
            with socket.create_connection(address) as sender, sender.makefile("rb") as answer:
                sender.sendall(b"\x00no HTTP\r\n\r\n")
                head = answer.read().partition(b"\r\n\r\n")[0].split(b"\r\n")
            assert {b"x-content-type-options: nosniff", b"cache-control: no-store"} < set(head)


def test_a_page_that_has_its_name_point_here_reads_nothing(tmp_path: Path, book: TokenBook):
    limits = CompatibilityLimits(url="https://runs.example:8443/api")
    with Receiver(
        tmp_path,
        Configuration(
            Addresses(http_port=0, grpc_port=None, query_port=0),
            Access(guarded=True),
            compatibility=limits,
        ),
    ) as receiver:

        def status(host: str, path: str = "/v1/runs", **headers: str) -> int:
            answer = httpx.get(f"{receiver.query_endpoint}{path}", headers={"host": host, **headers})
            return answer.status_code

        for name in ("127.0.0.1:4319", "localhost", "LOCALHOST:4319", "[::1]:4319", "runs.example"):
            assert status(name) == 200, name
        for name in ("evil.example:4319", "127.0.0.1.evil.example", "localhost.evil.example"):
            assert {status(name, path) for path in ("/v1/runs", "/api/echo", "/openapi.json")} == {421}
        refused = httpx.get(f"{receiver.query_endpoint}/v1/runs", headers={"host": "evil.example"})
        said = "without tokens this receiver is only reachable by its IP address or localhost"
        assert refused.json() == {"detail": said}
        token = bearer(book.create("grafana", ["read"])[1])
        assert (status("evil.example"), status("evil.example", **token)) == (401, 200)


def test_a_page_from_elsewhere_sends_nothing(tmp_path: Path, book: TokenBook):
    limits = CompatibilityLimits(url="https://runs.example:8443/api")
    with Receiver(
        tmp_path,
        Configuration(
            Addresses(http_port=0, grpc_port=None), Access(guarded=True), compatibility=limits
        ),
    ) as receiver:
        kind = {"content-type": "application/json"}

        def statuses(**headers: str) -> set[int]:
            write = f"{receiver.http_endpoint}/v1/traces"
            return {
                httpx.post(write, content=b"{}", headers={**kind, **headers}).status_code,
                httpx.get(f"{receiver.http_endpoint}/v1/playhead", headers=headers).status_code,
            }

        assert statuses() == {200}
        for host in ("evil.example:4318", "127.0.0.1.evil.example", "localhost.evil.example"):
            assert statuses(host=host) == statuses(host=host, origin=f"http://{host}") == {421}
        for origin in (
            "http://evil.example",
            "null",
            "file://",
            "http://203.0.113.9",
            "https://localhost.io",
        ):
            assert statuses(origin=origin) == {403}, origin
        refused = httpx.get(f"{receiver.http_endpoint}/v1/playhead", headers={"origin": "null"})
        said = "without tokens this receiver refuses pages of other hosts"
        assert refused.json() == {"detail": said}
        for origin in (
            "http://localhost:3000",
            "http://127.0.0.1",
            "http://[::1]:1",
            "https://runs.example",
        ):
            assert statuses(origin=origin) == {200}, origin
        token = bearer(book.create("agent", ["ingest", "read"])[1])
        assert statuses(origin="http://evil.example", **token) == {200}
        assert 401 in statuses(origin="http://evil.example")


def test_a_page_of_another_origin_neither_reads_nor_acts(tmp_path: Path, book: TokenBook):
    limits = CompatibilityLimits(url="https://runs.example:8443/api")
    token = bearer(book.create("all", list(SCOPES))[1])
    with Receiver(
        tmp_path,
        Configuration(
            Addresses(http_port=0, grpc_port=None, query_port=0),
            Access(guarded=True),
            compatibility=limits,
        ),
    ) as receiver:
        own = receiver.query_endpoint
        port = own.rpartition(":")[2]
        module = main_script(own).removeprefix(own)

        def statuses(**headers: str) -> set[int]:
            headers = {name.replace("_", "-"): value for name, value in headers.items()}
            return {
                httpx.request(method, own + path, headers=token | headers).status_code
                for method, path in (
                    ("GET", "/"),
                    ("GET", module),
                    ("GET", "/v1/runs"),
                    ("GET", "/api/echo"),
                    ("DELETE", "/v1/runs/last"),
                    ("POST", "/v1/runs/last/pause"),
                )
            }

        answered = {200, 404}
        assert statuses() == statuses(origin=own, sec_fetch_site="same-origin") == answered
        assert statuses(origin="https://runs.example:8443", sec_fetch_site="same-origin") == answered
        for origin in (
            "null",
            "file://",
            "http://",
            "http://evil.example",
            "http://127.0.0.1",
            f"http://localhost:{port}",
            f"http://127.0.0.1:{int(port) - 1}",
            f"http://127.0.0.1:{port}:80",
            f"http://127.0.0.1:{port}.evil.example",
            f"http://evil.example@127.0.0.1:{int(port) - 1}",
            "https://runs.example",
            f"{own}, http://evil.example",
        ):
            assert statuses(origin=origin) == {403}, origin
        for site in ("cross-site", "same-site", "unheard-of"):
            assert statuses(sec_fetch_site=site) == {403}, site
            assert statuses(sec_fetch_site=site, sec_fetch_mode="no-cors") == {403}, site
            link = {"sec-fetch-site": site, "sec-fetch-mode": "navigate"}
            assert httpx.get(f"{own}/?run=last", headers=link).status_code == 200
            assert httpx.post(f"{own}/v1/runs/last/pause", headers=token | link).status_code == 403
        before = {"access-control-request-method": "DELETE", "origin": "http://evil.example"}
        asked = [httpx.options(f"{own}/v1/runs/last", headers=before)]
        asked += [httpx.get(own + path, headers=token | {"origin": own}) for path in ("/", "/v1/runs")]
        assert asked[0].status_code == 403
        for answer in asked:
            assert not any(name.startswith("access-control-") for name in answer.headers)
            assert "set-cookie" not in answer.headers


def test_no_route_shows_one_tenant_what_another_has(tmp_path: Path, book: TokenBook):
    secret, trace_id = "unheard-of", (b"\7" * 16).hex()
    tokens = {one: book.create(one, ["ingest", "read"], tenant=one)[1] for one in ("one", "two")}
    window = "start=0&end=9999999999&query.start_time_min=2020-01-01T00:00:00Z"
    window += "&query.start_time_max=2040-01-01T00:00:00Z&left=last&right=last"
    queries = {
        "/v1/search": "word",
        "/api/search": "{}",
        "/metrics/query": "{}|rate() by (span.text)",
        "/metrics/query_range": "{}|rate() by (span.text)",
    }
    fields = {"{run}": trace_id, "{trace_id}": trace_id, "{span_id}": f"{1:016x}"}
    fields |= {"{service}": "agent", "{tag:path}": "span.text"}
    shown: dict[str, set[str]] = {one: set() for one in tokens}
    with Receiver(
        tmp_path,
        Configuration(Addresses(http_port=0, grpc_port=None, query_port=0), Access(guarded=True)),
    ) as receiver:
        more = {"gen_ai.conversation.id": secret, "gen_ai.request.model": secret}
        body = body_of(bytes.fromhex(trace_id), text=f"the word {secret}", **more)
        url = f"{receiver.http_endpoint}/v1/traces"
        sent = httpx.post(url, content=body, headers=PROTOBUF | bearer(tokens["one"]))
        assert sent.status_code == 200
        while receiver.tenants.services("one").store.index():
            pass
        for method, path in {**scopes(), **scopes(COMPATIBILITY_ROUTERS)}:
            if method != "GET" or path in ("/v1/live", "/v1/audit", "/v1/tokens"):
                continue
            query = next((one for end, one in queries.items() if path.endswith(end)), "")
            place = path
            for name, value in fields.items():
                place = place.replace(name, value)
            for tenant, token in tokens.items():
                answer = httpx.get(
                    f"{receiver.query_endpoint}{place}?{window}&q={query}", headers=bearer(token)
                )
                if secret in answer.text:
                    shown[tenant].add(path)
    assert shown["two"] == set()
    assert len(shown["one"]) >= 20, shown


def test_tokens_are_listed_without_secrets_and_say_when_they_were_used(tmp_path: Path, book: TokenBook):
    tokens = {name: book.create(name, ["admin"])[1] for name in ("looks", "rests")}
    book.create("elsewhere", ["admin"], tenant="other")
    began = time.time_ns()
    with Receiver(
        tmp_path,
        Configuration(Addresses(http_port=0, grpc_port=None, query_port=0), Access(guarded=True)),
    ) as receiver:
        url = f"{receiver.query_endpoint}/v1/tokens"
        answer = httpx.get(url, headers=bearer(tokens["looks"]))
        found = {one["name"]: one for one in answer.json()["tokens"]}
        again = httpx.get(url, headers=bearer(tokens["looks"])).json()["tokens"]
    assert set(found) == {"looks", "rests"}
    assert found["looks"]["scopes"] == ["admin"]
    assert began <= found["looks"]["used_ns"] <= time.time_ns()
    assert found["rests"]["used_ns"] is None
    assert again == answer.json()["tokens"]  # it is noted once a minute
    for text in tokens.values():
        assert text.split("_", 2)[2] not in answer.text  # a secret may begin with the letter that parts


def test_a_token_opens_where_its_use_cannot_be_noted(
    book: TokenBook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    _, text = book.create("ci", ["read"])
    with closing(apsw.Connection(str(tmp_path / FILE))) as other:
        monkeypatch.setattr("playhead_receiver.auth.database.BUSY_TIMEOUT_MS", 1)
        other.execute("BEGIN IMMEDIATE")
        file = AccessFile(tmp_path)
        assert Guard(TokenBook(file), required=True).admit(f"Bearer {text}", "read").name == "ci"
        other.execute("ROLLBACK")
        file.close()
    assert book.tokens()[0].used_ns is None


def test_elsewhere_than_loopback_with_a_token_of_the_folder(tmp_path: Path, book: TokenBook):
    with pytest.raises(ConfigurationError, match="there is no token"):
        Receiver(tmp_path, Configuration(Addresses(host="0.0.0.0", http_port=0, grpc_port=None))).start()
    book.create("ci", ["ingest"])
    with Receiver(
        tmp_path, Configuration(Addresses(host="0.0.0.0", http_port=0, grpc_port=None, query_port=0))
    ) as receiver:
        port = receiver.query_endpoint.rpartition(":")[2]
        assert httpx.get(f"http://127.0.0.1:{port}/v1/runs").status_code == 401


def test_tenants_see_their_own_runs_alone(tmp_path: Path, book: TokenBook):
    tokens = {
        tenant: book.create(tenant, ["ingest", "read", "admin"], tenant=tenant)[1]
        for tenant in ("", "one", "two")
    }
    with Receiver(
        tmp_path, Configuration(Addresses(http_port=0, grpc_port=0, query_port=0), Access(guarded=True))
    ) as receiver:
        for number, (tenant, token) in enumerate(tokens.items(), 1):
            body = body_of(bytes([number]) * 16, text=f"the word of tenant{number}")
            if tenant == "two":
                with grpc.insecure_channel(receiver.grpc_endpoint) as channel:
                    metadata = (("authorization", f"Bearer {token}"),)
                    channel.unary_unary(TRACES)(body, metadata=metadata, timeout=60)
                continue
            url = f"{receiver.http_endpoint}/v1/traces"
            sent = httpx.post(url, content=body, headers=PROTOBUF | bearer(token))
            assert sent.status_code == 200
        for services in receiver.tenants.open_services().values():
            while services.store.index():
                pass
        for number, token in enumerate(tokens.values(), 1):
            api = httpx.Client(base_url=receiver.query_endpoint, headers=bearer(token))
            traces = [run["trace_id"] for run in api.get("/v1/runs").json()["runs"]]
            assert traces == [(bytes([number]) * 16).hex()]
            for other in {1, 2, 3} - {number}:
                trace_id = (bytes([other]) * 16).hex()
                assert api.get(f"/v1/runs/{trace_id}").status_code == 404
                assert api.get(f"/v1/spans/{trace_id}/{1:016x}").status_code == 404
                assert api.delete(f"/v1/runs/{trace_id}").status_code == 404
                assert api.get("/v1/search", params={"q": f"tenant{other}"}).json()["hits"] == []
            assert len(api.get("/v1/search", params={"q": f"tenant{number}"}).json()["hits"]) == 1
            assert {note["tenant"] for note in api.get("/v1/audit").json()["notes"]} == {
                list(tokens)[number - 1]
            }
            api.close()
    store = open_store(tmp_path / "tenants" / "one", read_only=True)
    assert len(list(store.spans(b"\2" * 16))) == 1
    store.close()


def test_who_has_read_deleted_and_exported_is_written_down(tmp_path: Path, book: TokenBook):
    store_run(tmp_path, refund())
    token, text = book.create("ops", ["admin"])
    with Receiver(
        tmp_path,
        Configuration(Addresses(http_port=0, grpc_port=None, query_port=0), Access(guarded=True)),
    ) as receiver:
        api = httpx.Client(base_url=receiver.query_endpoint, headers=bearer(text))
        run = api.get("/v1/runs").json()["runs"][0]["trace_id"]
        for path in ("/v1/runs/last", "/v1/search?q=order", "/v1/runs/last/export"):
            assert api.get(path).status_code == 200
        assert api.delete("/v1/runs/last").status_code == 200
        notes = api.get("/v1/audit").json()["notes"]
        api.close()
    assert [(note["action"], note["subject"]) for note in reversed(notes)] == [
        ("read", "runs"),
        ("read", run),
        ("search", "runs"),
        ("export", run),
        ("delete", run),
    ]
    assert {(note["token"], note["name"]) for note in notes} == {(token.id, "ops")}


def test_what_its_owner_takes_out_is_written_down_too(playhead: CommandLine, tmp_path: Path):
    store_run(playhead.data_dir, refund())
    assert playhead("export", "-o", str(tmp_path / "before.tape")).status == 0
    assert not (playhead.data_dir / FILE).exists()
    assert playhead("token", "create", "ci").status == 0
    assert playhead("export", "-o", str(tmp_path / "run.tape")).status == 0
    assert playhead("export", str(tmp_path / "run.tape"), "-o", str(tmp_path / "again.tape")).status == 0
    assert playhead("backup", str(tmp_path / "copy")).status == 0
    file = AccessFile(playhead.data_dir)
    notes = [(one.name, one.action, one.subject) for one in reversed(Audit(file).notes(""))]
    file.close()
    assert notes == [
        ("playhead export", "export", TRACE.hex()),
        ("playhead backup", "export", "everything"),
    ]


def test_the_audit_log_is_read_page_by_page_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("playhead_receiver.auth.audit.ROWS_KEPT", 20)
    monkeypatch.setattr("playhead_receiver.auth.audit.PRUNE_EVERY", 10)
    file = AccessFile(tmp_path)
    audit = Audit(file)
    for number in range(45):
        audit.note("", "x", "", "read", str(number))
    first = audit.notes("", limit=15)
    rest = audit.notes("", first[-1].number, limit=15)
    assert [int(note.subject) for note in first + rest] == list(range(44, 19, -1))
    assert audit.notes("other") == []
    file.close()


def test_nothing_of_a_request_is_in_the_logs(tmp_path: Path, book: TokenBook):
    _, text = book.create("ops", ["admin"])
    up = [sys.executable, "-m", "playhead_cli", "up", "--json", "--data-dir", str(tmp_path)]
    ports = ["--http-port", "0", "--grpc-port", "0", "--query-port", "0"]
    with Process(
        [*up, *ports, "--no-config"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        header = {"x-secret-header": "secret-value"}
        for url in (f"{said['query']}/v1/runs/secret-path", f"{said['http']}/secret-path"):
            assert httpx.get(url, headers=bearer(text) | header).status_code == 404
        wrong = httpx.post(f"{said['http']}/v1/traces", content=b"\x0a\xff", headers=PROTOBUF | header)
        assert wrong.status_code == 401
        process.terminate()
        out, err = process.communicate(timeout=60)
    for word in ("secret", text, "/v1/"):
        assert word not in out + err
