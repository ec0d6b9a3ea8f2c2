"""Sessions of the OpenAI Agents SDK in a store of checkpoints."""

import asyncio
import subprocess
import sys
import threading
import uuid
from collections.abc import Coroutine, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from opentelemetry.sdk.trace import TracerProvider
from support.servers.postgres import PostgresServer
from support.servers.scripted import ScriptedServer, json_reply, openai_responses

from playhead_checkpoint import (
    CheckpointStore,
    PostgresCheckpoints,
    RemoteCheckpoints,
    SqliteCheckpoints,
)
from playhead_checkpoint.openai_agents import PlayheadSession
from playhead_checkpoint.store.linking import id_in_thread
from playhead_checkpoint.store.protocol import Lineage
from playhead_core.errors import CheckpointTaken, CorruptTape, StateRefused, StoreError, UsageError
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver

ROOT = Path(__file__).parents[2]
PROGRAMS_PYTHON = ROOT / ".venv-programs" / "bin" / "python"
THREAD = '{"session": "s"}'
_T = TypeVar("_T")


def now(call: Coroutine[Any, Any, _T]) -> _T:
    return asyncio.run(call)


def item(number: int) -> dict[str, Any]:
    return {"role": "user", "content": f"message {number}"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteCheckpoints]:
    with SqliteCheckpoints(tmp_path / "c.sqlite") as store:
        yield store


@pytest.fixture(params=["sqlite", "postgres", "receiver"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CheckpointStore]:
    if request.param == "sqlite":
        with SqliteCheckpoints(tmp_path / "c.sqlite") as store:
            yield store
    elif request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("server")
        with PostgresCheckpoints(f"{server.url()}&schema=s{uuid.uuid4().hex[:8]}") as store:
            yield store
    else:
        ports = Addresses(http_port=0, grpc_port=None, query_port=0)
        with (
            Receiver(tmp_path / "data", Configuration(ports)) as receiver,
            RemoteCheckpoints(receiver.query_endpoint) as store,
        ):
            yield store


def test_items_keep_their_order_and_the_last_ones_are_got(any_store: CheckpointStore):
    async def conversation() -> None:
        session = PlayheadSession("s", any_store)
        assert await session.get_items() == []
        assert await session.pop_item() is None
        await session.clear_session()
        await session.add_items([])
        assert any_store.threads() == []
        await session.add_items([item(0), item(1)])
        await session.add_items([item(2)])
        assert await session.get_items() == [item(0), item(1), item(2)]
        assert await session.get_items(limit=2) == [item(1), item(2)]
        assert await session.get_items(9) == [item(0), item(1), item(2)]
        assert await session.get_items(0) == []
        assert await session.pop_item() == item(2)
        assert await session.get_items() == [item(0), item(1)]
        await session.clear_session()
        assert await session.get_items() == []
        await session.add_items([item(3)])
        assert await session.get_items() == [item(3)]

    now(conversation())
    again = PlayheadSession("s", any_store)
    assert now(again.get_items()) == [item(3)]
    now(again.forget())
    assert any_store.threads() == []
    assert now(again.get_items()) == []


def test_the_limit_of_the_settings_counts_where_none_is_given(store: SqliteCheckpoints):
    session = PlayheadSession("s", store, session_settings=SimpleNamespace(limit=1))
    now(session.add_items([item(0), item(1)]))
    assert now(session.get_items()) == [item(1)]
    assert now(session.get_items(2)) == [item(0), item(1)]


def test_sessions_keep_apart(store: SqliteCheckpoints):
    one, other = PlayheadSession("s", store), PlayheadSession('s"é', store)
    now(one.add_items([item(0)]))
    now(other.add_items([item(1)]))
    assert (now(one.get_items()), now(other.get_items())) == ([item(0)], [item(1)])
    now(one.forget())
    assert now(other.get_items()) == [item(1)]


def test_each_change_is_a_checkpoint_on_the_one_before_linked_to_its_span(store: SqliteCheckpoints):
    session = PlayheadSession("s", store)
    with TracerProvider().get_tracer("test").start_as_current_span("turn") as span:
        now(session.add_items([item(0)]))
    now(session.pop_item())
    then, first = store.of_thread(THREAD)
    context = span.get_span_context()
    assert first.lineage.run == context.trace_id.to_bytes(16, "big")
    assert first.lineage.span == context.span_id.to_bytes(8, "big")
    assert (first.lineage.kind, first.lineage.parent) == ("framework", b"")
    assert (then.lineage.kind, then.lineage.parent, then.lineage.run) == ("framework", first.id, b"")
    assert store.state(first.id)["items"] == [item(0)]


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path):
    """Each has a store of its own, as processes have; all add the same item."""
    path = tmp_path / "c.sqlite"
    SqliteCheckpoints(path).close()
    together = threading.Barrier(4)

    def writes() -> None:
        with SqliteCheckpoints(path) as store:
            session = PlayheadSession("s", store)
            together.wait()
            for _ in range(10):
                now(session.add_items([item(0)]))

    threads = [threading.Thread(target=writes) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with SqliteCheckpoints(path) as store:
        assert now(PlayheadSession("s", store).get_items()) == [item(0)] * 40
        made = store.of_thread(THREAD)
        assert [one.lineage.parent for one in made] == [one.id for one in made[1:]] + [b""]


def test_a_change_on_an_older_state_is_made_on_the_newer_one(store: SqliteCheckpoints):
    session, other = PlayheadSession("s", store), PlayheadSession("s", store)
    now(session.add_items([item(0)]))
    put, meanwhile = store.put, [item(1)]

    class Overtaken:
        """Before this writer's put, the other one adds an item."""

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def put(self, *given: Any, **named: Any) -> Any:
            if meanwhile:
                now(other.add_items([meanwhile.pop()]))
            return put(*given, **named)

    late = PlayheadSession("s", Overtaken())  # type: ignore[arg-type]
    assert now(late.pop_item()) == item(1)
    assert now(session.get_items()) == [item(0)]
    assert len(store.of_thread(THREAD)) == 3


def test_a_cancelled_change_is_made_or_not_and_the_caller_waits_for_it(store: SqliteCheckpoints):
    entered, go = threading.Event(), threading.Event()

    class Held:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def put(self, *given: Any, **named: Any) -> Any:
            entered.set()
            assert go.wait(60)
            return store.put(*given, **named)

    async def cancelled() -> None:
        session = PlayheadSession("s", Held())  # type: ignore[arg-type]
        adding = asyncio.create_task(session.add_items([item(0)]))
        await asyncio.to_thread(entered.wait, 60)
        adding.cancel()
        await asyncio.sleep(0)
        assert not adding.done()
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await adding
        assert await session.get_items() == [item(0)]

    now(cancelled())


def test_what_is_kept_is_what_json_has(store: SqliteCheckpoints):
    session = PlayheadSession("s", store)
    given = {"content": ["a", {"b": None}], "n": 1.5, "é": True, "pair": (1, 2)}
    now(session.add_items([given]))
    given["content"].append("later")  # type: ignore[union-attr]
    found = now(session.get_items())
    assert found == [{"content": ["a", {"b": None}], "n": 1.5, "é": True, "pair": [1, 2]}]
    found[0]["n"] = 2
    assert now(session.get_items())[0]["n"] == 1.5
    for refused in ({"content": b"x"}, "text", ["a"], {"content": object()}):
        with pytest.raises(StateRefused):
            now(session.add_items([item(1), refused]))
    with pytest.raises(UsageError):
        now(PlayheadSession("s" * 2000, store).add_items([item(0)]))
    assert len(now(session.get_items())) == 1


@pytest.mark.parametrize(
    ("state", "name"),
    [
        ({"items": [item(0)]}, "latest"),
        ({"items": [item(0), "text"]}, "000000000001"),
        ({"items": "text"}, "000000000001"),
        ([item(0)], "000000000001"),
        ({"items": []}, "\u0660" * 11 + "\u0661"),
    ],
)
def test_a_hostile_thread_is_corrupt(store: SqliteCheckpoints, state: Any, name: str):
    store.put(state, Lineage(thread=THREAD, name=name))
    session = PlayheadSession("s", store)
    for call in (session.get_items, session.pop_item, session.clear_session):
        with pytest.raises(CorruptTape):
            now(call())
    with pytest.raises(CorruptTape):
        now(session.add_items([item(1)]))


def test_an_id_that_another_checkpoint_has_is_no_endless_loop(store: SqliteCheckpoints):
    store.put({}, Lineage(id=id_in_thread(THREAD, "000000000001")))
    with pytest.raises(CheckpointTaken):
        now(PlayheadSession("s", store).add_items([item(0)]))


def test_a_damaged_store_raises_its_errors(tmp_path: Path):
    path = tmp_path / "c.sqlite"
    with SqliteCheckpoints(path) as store:
        now(PlayheadSession("s", store).add_items([item(0)]))
        with store.transaction() as database:
            database.execute("UPDATE checkpoint SET packed = ?", (b"\x81\xa5items\x90",))
    with SqliteCheckpoints(path) as store, pytest.raises(CorruptTape):
        now(PlayheadSession("s", store).get_items())
    store.close()
    with pytest.raises(StoreError):
        now(PlayheadSession("s", store).get_items())


def test_a_turn_costs_what_it_adds(tmp_path: Path):
    """Whole copies of each state would take fifty times as many bytes as the items."""
    sizes = []
    text = [f"{number} " + uuid.uuid5(uuid.NAMESPACE_URL, str(number)).hex * 12 for number in range(400)]
    with SqliteCheckpoints(tmp_path / "c.sqlite") as store:
        session = PlayheadSession("s", store)
        for turn in range(200):
            asked, said = text[2 * turn], text[2 * turn + 1]
            now(session.add_items([{"role": "user", "content": asked}]))
            now(session.add_items([{"role": "assistant", "content": said}]))
            if turn in (99, 199):
                sizes.append(store.stored_bytes())
        assert len(now(session.get_items())) == 400
    assert sizes[1] < 2.3 * sizes[0]
    assert sizes[1] < 8 * sum(map(len, text))


def test_the_sdk_is_not_imported():
    code = (
        "import sys, playhead_checkpoint.openai_agents\n"
        "print(sorted({'agents', 'openai', 'langgraph', 'opentelemetry'} & {*sys.modules}))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


PROGRAM = """
import sys
from agents import Agent, Runner
from agents.memory import Session, SessionSettings
from playhead_checkpoint import SqliteCheckpoints
from playhead_checkpoint.openai_agents import PlayheadSession

with SqliteCheckpoints(sys.argv[1]) as store:
    session = PlayheadSession("s", store, session_settings=SessionSettings(limit=3))
    assert isinstance(session, Session)
    print(Runner.run_sync(Agent(name="a"), sys.argv[2], session=session).final_output)
"""


@pytest.mark.acceptance
def test_the_sdk_goes_on_with_a_session_in_another_process(tmp_path: Path):
    assert PROGRAMS_PYTHON.exists(), "make .venv-programs/ready"
    path = tmp_path / "c.sqlite"
    with ScriptedServer() as server:
        answers = [openai_responses.message(text) for text in ("One.", "Two.", "Three.")]
        server.script([json_reply(openai_responses.response([one])) for one in answers])
        environ = {
            "OPENAI_BASE_URL": server.openai_url,
            "OPENAI_API_KEY": "sk-test-0123456789",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "PYTHONPATH": f"{ROOT / 'checkpoint'}:{ROOT / 'semconv'}",
        }
        for question, answer in (("A?", "One."), ("B?", "Two."), ("C?", "Three.")):
            words = [str(PROGRAMS_PYTHON), "-c", PROGRAM, str(path), question]
            done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=120)
            assert (done.returncode, done.stdout) == (0, f"{answer}\n"), done.stderr
        asked = [request.json["input"] for request in server.requests]
    assert [len(items) for items in asked] == [1, 3, 4]
    with SqliteCheckpoints(path) as store:
        kept = now(PlayheadSession("s", store).get_items())
    assert [one["role"] for one in kept] == ["user", "assistant"] * 3
    assert [one["content"] for one in kept[::2]] == ["A?", "B?", "C?"]
    assert [one["content"][0]["text"] for one in kept[1::2]] == ["One.", "Two.", "Three."]
