"""Every scope against every endpoint. An endpoint that is not named here fails the first test."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import httpx
import pytest
from blake3 import blake3
from support.starting.cli import refund, store_run
from support.tapes.handmade import INSTANCE, TRACE

from playhead_checkpoint import Checkpoint, Lineage, SqliteCheckpoints
from playhead_checkpoint.claims.messages import AttemptsRenewed, encode
from playhead_checkpoint.store import wire
from playhead_checkpoint.store.engine import Notes, Put, Row
from playhead_receiver.auth import SCOPES, TokenBook
from playhead_receiver.auth.database import AccessFile
from playhead_receiver.config.configuration import Access, Addresses, Configuration
from playhead_receiver.endpoints import http as intake_http
from playhead_receiver.endpoints.grpc import SERVICES
from playhead_receiver.endpoints.query_api import COMPATIBILITY_ROUTERS, PUBLIC, scopes
from playhead_receiver.server import Receiver

WRITTEN = "kept\n"
"""What the run has written to a file."""

OPEN = ("GET /health", "GET /ready")
READ = (
    "GET /metrics",
    "GET /v1/caller",
    "GET /v1/checkpoint-threads",
    "GET /v1/checkpoints",
    "GET /v1/checkpoints/{id}",
    "GET /v1/checkpoints/{id}/notes",
    "GET /v1/checkpoints/{id}/packed",
    "GET /v1/checkpoints/{id}/state",
    "GET /v1/checkpoints/{id}/differences",
    "GET /v1/control",
    "GET /v1/conversations",
    "GET /v1/diff",
    "GET /v1/compare",
    "GET /v1/facets",
    "GET /v1/failures",
    "GET /v1/flow",
    "GET /v1/live",
    "GET /v1/metrics/history",
    "GET /v1/retention",
    "GET /v1/runs",
    "GET /v1/runs/{run}",
    "GET /v1/runs/{run}/artifacts",
    "GET /v1/runs/{run}/logs",
    "GET /v1/runs/{run}/failures",
    "GET /v1/runs/{run}/findings",
    "GET /v1/runs/{run}/steps/{step}/blame",
    "GET /v1/runs/{run}/time",
    "GET /v1/runs/{run}/tool-calls",
    "GET /v1/runs/{run}/reports",
    "GET /v1/runs/{run}/decisions",
    "GET /v1/runs/{run}/states",
    "GET /v1/runs/{run}/scores",
    "GET /v1/runs/{run}/notes",
    "GET /v1/runs/{run}/artifacts/{digest}",
    "GET /v1/runs/{run}/chunks",
    "GET /v1/runs/{run}/texts",
    "GET /v1/runs/{run}/control",
    "GET /v1/runs/{run}/events",
    "GET /v1/runs/{run}/events/{instance}/{seq}/body",
    "GET /v1/runs/{run}/export",
    "GET /v1/runs/{run}/kept",
    "GET /v1/runs/{run}/moment",
    "GET /v1/runs/{run}/outline",
    "GET /v1/runs/{run}/places",
    "GET /v1/runs/{run}/transcript",
    "GET /v1/runs/{run}/marks",
    "GET /v1/reruns",
    "GET /v1/reruns/{rerun}",
    "GET /v1/runs/{run}/steps/{step}/request",
    "GET /v1/runs/{run}/summary",
    "GET /v1/runs/{run}/agents",
    "GET /v1/runs/{run}/like",
    "GET /v1/runs/{run}/diagram",
    "GET /v1/runs/{run}/steps/summary",
    "GET /v1/search",
    "GET /v1/spans/{trace_id}/{span_id}",
    "GET /v1/spans/{trace_id}/{span_id}/exchanges",
    "GET /v1/spans/{trace_id}/{span_id}/messages",
    "GET /v1/spans/{trace_id}/{span_id}/otlp",
    "GET /v1/spans/{trace_id}/{span_id}/raw",
    "GET /v1/spool",
    "GET /v1/stats",
    "GET /v1/workflows",
    "POST /v1/checkpoint-nodes",
    "POST /v1/conform",
)
INGEST = (
    "POST /v1/claims",
    "POST /v1/replays",
    "PUT /v1/checkpoints/{id}",
    "PUT /v1/checkpoints/{id}/notes",
    "PUT /v1/checkpoints/{id}/state",
)
ORDERS = {
    "POST /v1/runs/{run}/pause": b"{}",
    "POST /v1/runs/{run}/step": b"{}",
    "POST /v1/runs/{run}/continue": b"{}",
    "POST /v1/runs/{run}/edit": b'{"edits": [{"path": "model", "value": "gpt-4.1"}]}',
    "POST /v1/runs/{run}/reject": b"{}",
    "POST /v1/runs/{run}/answer": b'{"body": "{}"}',
    "POST /v1/runs/{run}/breakpoints": b'{"on": ["error"]}',
    "POST /v1/runs/{run}/limits": b'{"stop": ["cost>1"]}',
    "POST /v1/runs/{run}/lease": b"{}",
    "POST /v1/runs/{run}/checkpoint": b"{}",
    "POST /v1/runs/{run}/replay": b"{}",
    "POST /v1/runs/{run}/fork": b"{}",
    "DELETE /v1/reruns/{rerun}": b"",
}
"""What is ordered of a run. It is over, and no program is executed here: who may order it is told so."""
ADMITTED = {
    **dict.fromkeys(ORDERS, 409),
    "GET /v1/reruns/{rerun}": 404,
    "PUT /v1/checkpoints/{id}/state": 422,
    "DELETE /v1/runs/{run}/notes/{note}": 404,
    "GET /v1/compare": 422,  # which groups?
}
"""What who may ask is answered, where it is not 200."""
CONTROL = (
    "DELETE /v1/runs/{run}/marks/{mark}",
    "POST /v1/checkpoint-deletions",
    "PUT /v1/runs/{run}/marks/{mark}",
    "POST /v1/runs/{run}/notes",
    "DELETE /v1/runs/{run}/notes/{note}",
    *ORDERS,
)
ADMIN = ("DELETE /v1/runs/{run}", "GET /v1/audit", "GET /v1/tokens", "GET /v1/checkpoint-damages")
BY_SCOPE = ((None, OPEN), ("read", READ), ("ingest", INGEST), ("control", CONTROL), ("admin", ADMIN))
ENDPOINTS: dict[tuple[str, str], str | None] = {
    (method, path): scope
    for scope, endpoints in BY_SCOPE
    for method, _, path in (one.partition(" ") for one in endpoints)
}
OF_FACES = sorted(scopes(COMPATIBILITY_ROUTERS))
"""All of them are for readers; what they answer has tests of its own."""
FILLED = {
    "{run}": "refund-1",
    "{instance}": INSTANCE.hex(),
    "{seq}": str(next(fact.seq for fact in refund().facts if fact.body is not None)),
    "{mark}": "flagged",
    "{trace_id}": TRACE.hex(),
    "{span_id}": f"{0xA0:016x}",
    "{step}": "1",
    "{rerun}": "0" * 16,
    "{digest}": blake3(WRITTEN.encode()).hexdigest(),
    "{service}": "desk",
    "{tag:path}": "span.size",
    "{id}": (b"c" * 16).hex(),
    "{note}": (b"n" * 16).hex(),
}
ROW = Row(Checkpoint(b"c" * 16, Lineage(id=b"c" * 16, time_ns=1), 1, blake3(b"\x01").digest()), b"\x01")
SENT = {
    "PUT /v1/checkpoints/{id}": wire.write_put(Put(ROW, {}, None, False)),
    "PUT /v1/checkpoints/{id}/notes": wire.write_notes(Notes(b"c" * 16, {}, False, {}, None)),
    "POST /v1/checkpoint-nodes": b"n" * 32,
    "POST /v1/checkpoint-deletions": b"{}",
    "POST /v1/conform": b'{"name": "refactoring"}',
    "POST /v1/runs/{run}/notes": b'{"text": "wrong order"}',
    "POST /v1/claims": encode(AttemptsRenewed([])),
    "POST /v1/replays": b'{"mode": "replay", "outcome": "identical", "seconds": 1}',
    **ORDERS,
}
"""What endpoints take."""
QUESTIONS = {
    "/v1/diff": "?left=last&right=last",
    f"/v1/checkpoints/{(b'c' * 16).hex()}/differences": f"?since={(b'c' * 16).hex()}",
    "/v1/search": "?q=order",
    "/v1/runs/refund-1/chunks": f"?spans={0xA0:016x}",
    "/v1/runs/refund-1/texts": f"?spans={0xA0:016x}",
    "/v1/runs/refund-1/moment": "?after=1",
    "/v1/runs/refund-1/places": "?text=order",
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Receiver, dict[str, str]]]:
    """A receiver, and a token for each scope."""
    with _guarded(tmp_path_factory.mktemp("data")) as both:
        yield both


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[tuple[Receiver, dict[str, str]]]:
    """The same, whose run may be deleted."""
    with _guarded(tmp_path) as both:
        yield both


@contextmanager
def _guarded(folder: Path) -> Iterator[tuple[Receiver, dict[str, str]]]:
    store_run(folder, refund().say(WRITTEN, "file.write", "./report.txt"))
    with SqliteCheckpoints(folder / "checkpoints.sqlite") as store:
        store.put(1, ROW.checkpoint.lineage)
    file = AccessFile(folder)
    tokens = {scope: TokenBook(file).create(scope, [scope])[1] for scope in SCOPES}
    file.close()
    with Receiver(
        folder, Configuration(Addresses(http_port=0, grpc_port=0, query_port=0), Access(guarded=True))
    ) as running:
        yield running, tokens


def asked(receiver: Receiver, method: str, path: str, token: str | None) -> httpx.Response:
    body = SENT.get(f"{method} {path}")
    for word, value in FILLED.items():
        path = path.replace(word, value)
    headers = {"content-type": "application/json"} if body and body[:1] == b"{" else {}
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    url = f"{receiver.query_endpoint}{path}{QUESTIONS.get(path, '')}"
    with (
        httpx.Client(timeout=60) as client,
        client.stream(method, url, headers=headers, content=body) as answer,
    ):
        if answer.headers["content-type"].startswith("application/"):
            answer.read()
        return answer


def test_the_description_has_every_endpoint(guarded: tuple[Receiver, dict[str, str]]):
    receiver, _ = guarded
    described = httpx.get(f"{receiver.query_endpoint}/openapi.json").json()
    found = {
        (method.upper(), path): said["x-playhead-scope"]
        for path, methods in described["paths"].items()
        for method, said in methods.items()
    }
    assert found == ENDPOINTS == scopes()
    assert {path for (_, path), scope in ENDPOINTS.items() if scope is None} == PUBLIC
    assert set(scopes(COMPATIBILITY_ROUTERS).values()) == {"read"}


def test_whatever_is_read_is_written_down(guarded: tuple[Receiver, dict[str, str]]):
    """But for what tells nothing of runs."""
    receiver, tokens = guarded
    silent = (
        "/metrics",
        "/v1/metrics/history",
        "/v1/caller",
        "/v1/spool",
        "/api/echo",
        "/api/status/buildinfo",
        "/capabilities",
    )
    window = "query.start_time_min=2020-01-01T00:00:00Z&query.start_time_max=2040-01-01T00:00:00Z"
    questions = {
        "/v3/traces": window,
        "/v3/trace-summaries": window,
        "/metrics/query": "q={}|rate()",
        "/metrics/query_range": "q={}|rate()",
    }

    def notes() -> list[dict[str, str]]:
        url = f"{receiver.query_endpoint}/v1/audit"
        headers = {"authorization": f"Bearer {tokens['admin']}"}
        return httpx.get(url, params={"limit": 1}, headers=headers).json()["notes"]

    asking = sorted((one for one in ENDPOINTS.items() if one[1] is not None), key=str)
    for method, path in [*(one for one, _ in asking if one[0] == "GET"), *OF_FACES]:
        told = ENDPOINTS.get((method, path)) != "admin" and f"{method} {path}" not in ADMITTED
        if path.endswith(silent) or not told:
            continue
        question = next((q for end, q in questions.items() if path.endswith(end)), "")
        answer = asked(receiver, method, f"{path}?{question}" if question else path, tokens["read"])
        if answer.status_code == 501:
            continue
        assert answer.status_code == 200, (path, answer.text)
        (last,) = notes()
        assert (last["name"], last["action"] in ("read", "search", "export")) == ("read", True), path
    notes()
    assert [(note["name"], note["subject"]) for note in notes()] == [("admin", "audit")]


@pytest.mark.parametrize(("method", "path"), sorted(ENDPOINTS))
def test_an_endpoint_is_open_to_its_scope_alone(request: pytest.FixtureRequest, method: str, path: str):
    receiver, tokens = request.getfixturevalue("doomed" if method == "DELETE" else "guarded")
    needed = ENDPOINTS[method, path]
    admitted = ADMITTED.get(f"{method} {path}", 200)
    for token in (None, "other", "ph_00000000_" + "x" * 43):
        answer = asked(receiver, method, path, token)
        if needed is None:
            assert answer.status_code == 200
            continue
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["type"] == "urn:playhead:unauthenticated"
    for scope in SCOPES:
        answer = asked(receiver, method, path, tokens[scope])
        if needed in (None, scope) or scope == "admin":
            assert answer.status_code == admitted, (scope, answer.text)
        else:
            assert answer.status_code == 403, scope
            assert answer.json()["type"] == "urn:playhead:forbidden"


@pytest.mark.parametrize(("method", "path"), OF_FACES)
def test_a_face_is_open_to_readers(guarded: tuple[Receiver, dict[str, str]], method: str, path: str):
    receiver, tokens = guarded
    assert asked(receiver, method, path, None).status_code == 401
    for scope in SCOPES:
        status = asked(receiver, method, path, tokens[scope]).status_code
        allowed = scope in ("read", "admin")
        assert status in ((200, 400, 404, 501) if allowed else (403,)), scope


@pytest.mark.parametrize("route", intake_http.ROUTES, ids=lambda route: route[0])
def test_the_intake_is_open_to_those_who_may_send(
    guarded: tuple[Receiver, dict[str, str]], route: tuple[str, str, str | None]
):
    receiver, tokens = guarded
    path, method, needed = route

    def status(token: str | None) -> int:
        headers = {"content-type": "application/x-protobuf"}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        body = b'{"instance":"01","trace_id":"02","wait_s":0}' if "/control/" in path else b""
        url = f"{receiver.http_endpoint}{path}"
        return httpx.request(method, url, headers=headers, content=body).status_code

    assert status(None) == status("other") == (401 if needed else 200)
    for scope in SCOPES:
        allowed = needed in (None, scope) or scope == "admin"
        assert status(tokens[scope]) == (200 if allowed else 403)


@pytest.mark.parametrize("service", SERVICES)
def test_grpc_is_open_to_those_who_may_send(guarded: tuple[Receiver, dict[str, str]], service: str):
    receiver, tokens = guarded

    def code(token: str | None) -> grpc.StatusCode:
        metadata = () if token is None else (("authorization", f"Bearer {token}"),)
        with grpc.insecure_channel(receiver.grpc_endpoint) as channel:
            try:
                channel.unary_unary(f"/{service}/Export")(b"", metadata=metadata, timeout=60)
            except grpc.RpcError as problem:
                return problem.code()
        return grpc.StatusCode.OK

    assert code(None) == code("other") == grpc.StatusCode.UNAUTHENTICATED
    for scope in SCOPES:
        allowed = scope in ("ingest", "admin")
        wanted = grpc.StatusCode.OK if allowed else grpc.StatusCode.PERMISSION_DENIED
        assert code(tokens[scope]) == wanted


def test_a_token_is_nowhere_but_with_its_owner(guarded: tuple[Receiver, dict[str, str]]):
    receiver, tokens = guarded
    for path in receiver.data_dir.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            for token in tokens.values():
                assert token.split("_", 2)[2].encode() not in data, path.name
