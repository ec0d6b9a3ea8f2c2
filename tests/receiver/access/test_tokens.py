"""Tokens, tenants, TLS and the audit log."""

import json
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
import trustme
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.batches import span_of
from support.cli import CommandLine, refund, store_run

from playhead_receiver.access import Audit, TokenBook
from playhead_receiver.access.database import FILE, AccessFile
from playhead_receiver.listening import Tls
from playhead_receiver.server import Receiver
from playhead_receiver.store import open_store
from playhead_semconv.errors import ConfigurationError, UsageError

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
    with pytest.raises(UsageError, match="no living token"):
        book.revoke(token.id)


def test_a_token_ends_at_its_time(book: TokenBook):
    _, text = book.create("short", ["read"], lifetime_ns=0)
    assert book.find(text) is None
    _, text = book.create("long", ["read"], lifetime_ns=10**15)
    assert book.find(text) is not None


@pytest.mark.parametrize(
    ("scopes", "tenant"),
    [([], ""), (["root"], ""), (["read"], "../x"), (["read"], "A"), (["read"], "a/b")],
)
def test_what_cannot_be_a_token(book: TokenBook, scopes: list[str], tenant: str):
    with pytest.raises(UsageError):
        book.create("x", scopes, tenant=tenant)


def test_tokens_from_the_command_line(playhead: CommandLine):
    made = playhead("token", "create", "ci", "--scope", "read", "--tenant", "acme", "--expires", "90d")
    assert made.status == 0
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
    with Receiver(tmp_path, http_port=0, grpc_port=None, guarded=True) as receiver:
        url = f"{receiver.http_endpoint}/v1/traces"
        assert httpx.post(url, headers=PROTOBUF | bearer(text)).status_code == 200
        book.revoke("ci")
        assert httpx.post(url, headers=PROTOBUF | bearer(text)).status_code == 401


def test_elsewhere_than_loopback_with_a_token_of_the_folder(tmp_path: Path, book: TokenBook):
    with pytest.raises(ConfigurationError, match="there is no token"):
        Receiver(tmp_path, host="0.0.0.0", http_port=0, grpc_port=None).start()
    book.create("ci", ["ingest"])
    with Receiver(tmp_path, host="0.0.0.0", http_port=0, grpc_port=None, query_port=0) as receiver:
        port = receiver.query_endpoint.rpartition(":")[2]
        assert httpx.get(f"http://127.0.0.1:{port}/v1/runs").status_code == 401


def test_tenants_see_their_own_runs_alone(tmp_path: Path, book: TokenBook):
    tokens = {
        tenant: book.create(tenant, ["ingest", "read", "admin"], tenant=tenant)[1]
        for tenant in ("", "one", "two")
    }
    with Receiver(tmp_path, http_port=0, grpc_port=0, query_port=0, guarded=True) as receiver:
        for number, (tenant, token) in enumerate(tokens.items(), 1):
            body = body_of(bytes([number]) * 16, text=f"the word of tenant{number}")
            if tenant == "two":
                with grpc.insecure_channel(receiver.grpc_endpoint) as channel:
                    metadata = (("authorization", f"Bearer {token}"),)
                    channel.unary_unary(TRACES)(body, metadata=metadata, timeout=20)
                continue
            url = f"{receiver.http_endpoint}/v1/traces"
            sent = httpx.post(url, content=body, headers=PROTOBUF | bearer(token))
            assert sent.status_code == 200
        for house in receiver.tenants.open_houses().values():
            while house.store.index():
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
    with Receiver(tmp_path, http_port=0, grpc_port=None, query_port=0, guarded=True) as receiver:
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


def test_the_audit_log_is_read_page_by_page_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("playhead_receiver.access.audit.ROWS_KEPT", 20)
    monkeypatch.setattr("playhead_receiver.access.audit.PRUNE_EVERY", 10)
    file = AccessFile(tmp_path)
    audit = Audit(file)
    for number in range(45):
        audit.note("", "x", "", "read", str(number))
    first = audit.notes("", limit=15)
    rest = audit.notes("", first[-1].number, limit=15)
    assert [int(note.subject) for note in first + rest] == list(range(44, 19, -1))
    assert audit.notes("other") == []
    file.close()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tls, Path, Path]:
    """Of the server, of who has signed it, and of a client."""
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    server, client = authority.issue_cert("127.0.0.1", "localhost"), authority.issue_cert("me@x.org")
    paths = {name: folder / f"{name}.pem" for name in ("ca", "cert", "key", "client")}
    authority.cert_pem.write_to_path(paths["ca"])
    server.cert_chain_pems[0].write_to_path(paths["cert"])
    server.private_key_pem.write_to_path(paths["key"])
    client.private_key_and_cert_chain_pem.write_to_path(paths["client"])
    return Tls(str(paths["cert"]), str(paths["key"])), paths["ca"], paths["client"]


def test_everything_over_tls(tmp_path: Path, certificates: tuple[Tls, Path, Path]):
    tls, ca, _ = certificates
    context = ssl.create_default_context(cafile=str(ca))
    with (
        Receiver(tmp_path, http_port=0, grpc_port=0, query_port=0, tls=tls) as receiver,
        httpx.Client(verify=context) as client,
    ):
        assert receiver.http_endpoint.startswith("https://")
        body = body_of(b"t" * 16)
        url = f"{receiver.http_endpoint}/v1/traces"
        assert client.post(url, content=body, headers=PROTOBUF).status_code == 200
        credentials = grpc.ssl_channel_credentials(ca.read_bytes())
        with grpc.secure_channel(receiver.grpc_endpoint, credentials) as channel:
            channel.unary_unary(TRACES)(body_of(b"u" * 16), timeout=20)
        assert len(client.get(f"{receiver.query_endpoint}/v1/runs").json()["runs"]) == 2
        with pytest.raises(httpx.HTTPError):
            httpx.get(receiver.query_endpoint.replace("https", "http") + "/health")


def test_those_without_a_certificate_are_not_let_in(
    tmp_path: Path, certificates: tuple[Tls, Path, Path]
):
    tls, ca, mine = certificates
    mutual = Tls(tls.certificate, tls.key, str(ca))
    with Receiver(tmp_path, http_port=0, grpc_port=0, query_port=0, tls=mutual) as receiver:
        context = ssl.create_default_context(cafile=str(ca))
        for endpoint in (receiver.http_endpoint, receiver.query_endpoint):
            with httpx.Client(verify=context) as client, pytest.raises(httpx.HTTPError):
                client.get(f"{endpoint}/health")
        credentials = grpc.ssl_channel_credentials(ca.read_bytes())
        with (
            grpc.secure_channel(receiver.grpc_endpoint, credentials) as channel,
            pytest.raises(grpc.RpcError),
        ):
            channel.unary_unary(TRACES)(b"", timeout=5)
        context.load_cert_chain(mine)
        with httpx.Client(verify=context) as client:
            for endpoint in (receiver.http_endpoint, receiver.query_endpoint):
                assert client.get(f"{endpoint}/health").status_code == 200
        pem = mine.read_bytes()
        credentials = grpc.ssl_channel_credentials(ca.read_bytes(), pem, pem)
        with grpc.secure_channel(receiver.grpc_endpoint, credentials) as channel:
            channel.unary_unary(TRACES)(b"", timeout=20)


def test_tls_that_cannot_be_used_is_said_at_once(tmp_path: Path, certificates: tuple[Tls, Path, Path]):
    tls, ca, _ = certificates
    receiver = Receiver(tmp_path, http_port=0, grpc_port=None, tls=Tls(str(ca), tls.key))
    with pytest.raises(ConfigurationError, match="cannot be used"):
        receiver.start()


def test_nothing_of_a_request_is_in_the_logs(tmp_path: Path, book: TokenBook):
    _, text = book.create("ops", ["admin"])
    up = [sys.executable, "-m", "playhead_receiver", "up", "--json", "--data-dir", str(tmp_path)]
    ports = ["--http-port", "0", "--grpc-port", "0", "--query-port", "0"]
    with subprocess.Popen(
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
