"""Claims of a receiver: what all claims conform to, and what becomes of them where nobody answers."""

from __future__ import annotations

import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace
from support.servers import ports
from support.servers.postgres import PostgresServer
from support.starting.running import until
from support.tapes.sessions import record, replay

import playhead
from playhead_checkpoint.claims import leased, messages, open_claims, remote
from playhead_checkpoint.claims.conformance import ClaimsConformance
from playhead_checkpoint.claims.remote import RemoteClaims
from playhead_core.errors import OutcomeUnknown, StoreUnavailable
from playhead_core.rerun.plans import Plan
from playhead_core.settings import Settings
from playhead_receiver.config.configuration import Addresses, Configuration, Storage
from playhead_receiver.server import Receiver
from playhead_semconv import events as e

PORTS = Addresses(http_port=0, grpc_port=None, query_port=0)


@pytest.fixture(scope="module")
def in_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    with Receiver(tmp_path_factory.mktemp("receiver"), Configuration(PORTS)) as running:
        yield running


@pytest.fixture(scope="class")
def in_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    """For one class: a thread of it that opens a connection is recorded by a later test in strict."""
    server = PostgresServer()
    server.start()
    configuration = Configuration(PORTS, storage=Storage(f"{server.url()}&schema=claims"))
    with Receiver(tmp_path_factory.mktemp("receiver"), configuration) as running:
        yield running
    server.remove()


class TestInAFolder(ClaimsConformance):
    @pytest.fixture(autouse=True)
    def _place(self, in_folder: Receiver):
        self.receiver, self.lineage = in_folder, uuid.uuid4().hex

    def open_claims(self):
        return open_claims("", self.receiver.query_endpoint)


class TestInADatabase(ClaimsConformance):
    @pytest.fixture(autouse=True)
    def _place(self, in_database: Receiver):
        self.receiver, self.lineage = in_database, uuid.uuid4().hex

    def open_claims(self):
        return open_claims("", self.receiver.query_endpoint)


@pytest.fixture
def lineage() -> str:
    return uuid.uuid4().hex


def opened(receiver: Receiver) -> RemoteClaims:
    return RemoteClaims(receiver.query_endpoint)


CLAIMS = """
import sys
from playhead_checkpoint.claims import open_claims
print(open_claims("", sys.argv[1]).claim(sys.argv[2], "key", "refund").state, flush=True)
sys.stdin.read()
"""


def test_a_lease_is_renewed_while_the_process_lives_and_then_the_outcome_is_unknown(
    in_folder: Receiver, lineage: str, monkeypatch: pytest.MonkeyPatch
):
    words = [sys.executable, "-c", CLAIMS.replace("import sys", RENEWS_OFTEN)]
    child = subprocess.Popen(
        [*words, in_folder.query_endpoint, lineage], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None and child.stdin is not None
    assert child.stdout.readline() == b"ours\n"
    ours = opened(in_folder)
    until_ns = _until_ns(in_folder, lineage)
    until(lambda: _until_ns(in_folder, lineage) > until_ns, "it is renewed")
    assert ours.claim(lineage, "key", "refund").state == "busy"
    monkeypatch.setattr(leased, "LEASE_S", 0.5)
    until(lambda: _until_ns(in_folder, lineage) < until_ns, "it is renewed for less")
    child.kill()
    child.communicate()
    until(lambda: ours.claim(lineage, "key", "refund").state == "unknown", "its lease is over")


RENEWS_OFTEN = """
import sys
from playhead_checkpoint.claims import remote
remote.RENEW_S = 0.2
"""


def _until_ns(receiver: Receiver, lineage: str) -> int:
    store = receiver.store.checkpoints()  # pyright: ignore
    with store.transaction() as database:
        question = "SELECT until_ns FROM claim WHERE lineage = ?"
        return database.execute(question, (lineage,)).fetchone()[0]


def test_a_question_that_is_asked_again_has_the_same_answer(in_folder: Receiver, lineage: str):
    url, attempt = f"{in_folder.query_endpoint}/v1/claims", b"a" * 16
    asked = messages.encode(messages.ClaimRequest(lineage, "key", "refund", attempt))
    for _ in range(2):
        told = messages.decode_claimed.decode(httpx.post(url, content=asked).content)
        assert (told.state, told.attempt) == ("ours", attempt)
    other = messages.encode(messages.ClaimRequest(lineage, "key", "refund", b"b" * 16))
    assert messages.decode_claimed.decode(httpx.post(url, content=other).content).state == "busy"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc1",
        messages.encode({"type": "claim"}),
        messages.encode({"type": "renew", "attempts": [b"short"]}),
        messages.encode(messages.ClaimRequest("x" * 2000, "key", "refund", b"a" * 16)),
        messages.encode(messages.AttemptEnded(b"a" * 16, "undone")),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_claim_is_refused(in_folder: Receiver, body: bytes):
    answer = httpx.post(f"{in_folder.query_endpoint}/v1/claims", content=body)
    assert (answer.status_code, answer.json()["detail"]) == (422, "this is no claim")


def test_claims_go_with_their_run(in_folder: Receiver):
    run = uuid.uuid4().bytes
    claims = opened(in_folder)
    claims.done(claims.claim(run.hex(), "key", "refund").attempt, b"1")
    in_folder.store.delete([run])  # pyright: ignore
    assert claims.claim(run.hex(), "key", "refund").state == "ours"


def test_where_nobody_answers_nothing_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(remote, "TIMEOUT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = Settings(
            quiet=True,
            level="causal",
            data_dir=str(tmp_path),
            claims=f"http://127.0.0.1:{silent.getsockname()[1]}",
        )
        done: list[int] = []

        def refunds() -> None:
            with pytest.raises(StoreUnavailable, match="cannot be reached"):
                playhead.idempotent("refund:81").call(done.append, 81)

        record(refunds, settings=settings)
    assert done == []


def test_an_effect_whose_end_cannot_be_told_is_unknown_and_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The receiver ends while the effect is under way, and is there again at the same port."""
    monkeypatch.setattr(leased, "LEASE_S", 0.0)
    done: list[int] = []
    addresses = Addresses(http_port=0, grpc_port=None, query_port=ports.free())
    with Receiver(tmp_path / "data", Configuration(addresses)) as receiver:
        settings = Settings(
            quiet=True, level="causal", lineage="nightly", claims=receiver.query_endpoint
        )

        def effect() -> None:
            done.append(81)
            receiver.stop(0)

        record(lambda: playhead.idempotent("refund:81").call(effect), settings=settings)
    assert done == [81]

    def again() -> None:
        with pytest.raises(OutcomeUnknown, match="was begun before"):
            playhead.idempotent("refund:81").call(effect)

    with Receiver(tmp_path / "data", Configuration(addresses)):
        record(again, settings=settings)
    assert done == [81]


@pytest.fixture
def elsewhere(in_folder: Receiver) -> str:
    return in_folder.query_endpoint


@pytest.mark.parametrize("level", ["exchanges", "causal", "strict"])
def test_agents_of_two_machines_do_it_once(elsewhere: str, tmp_path: Path, lineage: str, level: str):
    """Each has a data folder of its own."""
    done: list[int] = []
    results: list[str] = []

    def refund() -> str:
        done.append(81)
        return "receipt"

    for name in ("one", "other"):
        settings = Settings(
            quiet=True,
            level=level,
            data_dir=str(tmp_path / name),
            lineage=lineage,
            claims=elsewhere,
        )
        found, tape = record(lambda: playhead.idempotent("refund:81").call(refund), settings=settings)
        results.append(found)
        kinds = {fact.exchange.kind for fact in tape.facts() if fact.exchange is not None}
        assert kinds == {"tool"}
    assert (done, results) == ([81], ["receipt", "receipt"])
    assert not list(tmp_path.glob("*/claims.sqlite"))


def test_a_resume_claims_where_its_origin_has_or_does_nothing(
    elsewhere: str, tmp_path: Path, lineage: str
):
    locally = Settings(quiet=True, level="causal", data_dir=str(tmp_path), lineage=lineage)
    settings = replace(locally, claims=elsewhere)
    done: list[int] = []

    def main() -> None:
        playhead.idempotent("refund:81").call(done.append, 81)

    _, tape = record(main, settings=settings)
    (end,) = tape.named(e.PLAYHEAD_EXCHANGE_END)
    cut = type(tape)([fact for fact in tape.facts() if fact.seq < end.seq - 1], tape.instance)

    def refused() -> None:
        with pytest.raises(StoreUnavailable, match="where its origin has claimed") as problem:
            main()
        assert problem.value.hint == f"PLAYHEAD_CLAIMS={elsewhere}"

    replay(refused, cut, settings=locally, plan=Plan("resume"))
    replay(main, cut, settings=settings, plan=Plan("resume"))
    assert done == [81]
