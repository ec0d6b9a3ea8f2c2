"""LangGraph's own conformance suite, and what it does not ask."""

import asyncio
import dataclasses
import uuid
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from opentelemetry.sdk.trace import TracerProvider
from support.savers import Reversal, SyncSaver
from support.servers import ports
from support.servers.postgres import PostgresServer

from playhead_checkpoint import Lineage, PostgresCheckpoints, SqliteCheckpoints
from playhead_checkpoint.langgraph import PlayheadSaver
from playhead_checkpoint.langgraph.graph_types import GraphTypes, Serialized
from playhead_checkpoint.langgraph.thread_names import thread_name
from playhead_checkpoint.store.linking import id_in_thread
from playhead_core.errors import CorruptTape, StateRefused, StoreUnavailable, UsageError


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteCheckpoints]:
    with SqliteCheckpoints(tmp_path / "checkpoints.sqlite") as opened:
        yield opened


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    """Opens a store of each engine."""
    if request.param == "sqlite":
        return lambda: SqliteCheckpoints(tmp_path / "checkpoints.sqlite")
    server: PostgresServer = request.getfixturevalue("server")
    return lambda: PostgresCheckpoints(f"{server.url()}&schema=g{uuid.uuid4().hex}")


@pytest.mark.parametrize("saver", [PlayheadSaver, SyncSaver])
def test_every_capability_conforms(saver: Callable[[Any], PlayheadSaver], opened: Callable[[], Any]):
    @checkpointer_test(name="playhead")
    async def registered() -> AsyncGenerator[PlayheadSaver, None]:
        with opened() as store:
            yield saver(store)
            assert store.damages() == []

    report = asyncio.run(validate(registered))
    failures = {name: result.failures for name, result in report.results.items() if not result.passed}
    assert failures == {}
    assert len(report.results) == 8


def config_of(thread_id: str, **more: str) -> Any:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": "", **more}}


def steps(saver: PlayheadSaver, thread_id: str, channels: list[dict[str, Any]]) -> list[Any]:
    """Put a checkpoint after the other; their configs."""
    config, made = config_of(thread_id), list[Any]()
    for step, values in enumerate(channels):
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = values
        config = saver.put(config, checkpoint, {"source": "loop", "step": step}, {})
        made.append(config)
    return made


GRAPH = {"checkpoint": {"channel_values": {}}, "metadata": {}, "parent": None}
SECRET = b'{"lc": 1, "type": "secret", "id": ["PATH"]}'


class FromJson(JsonPlusSerializer):
    """Writes JSON, which makes objects by name where it is read."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return "json", SECRET


@pytest.mark.parametrize(
    ("state", "note"),
    [
        ((1, 2), None),
        ({**GRAPH, "parent": 7}, None),
        ({"checkpoint": {"channel_values": {}}, "metadata": {}}, None),
        ({**GRAPH, "checkpoint": []}, None),
        ({**GRAPH, "thread": [["a"], "b"]}, None),
        (GRAPH, ["", "task", "0", "channel", 1]),
        (GRAPH, "write"),
        ({**GRAPH, "metadata": {"secret": Serialized(1)}}, None),
    ],
)
def test_what_no_saver_has_put_is_damage(store: SqliteCheckpoints, state: Any, note: Any):
    types, thread = GraphTypes(FromJson()), thread_name("t", "")
    lineage = Lineage(id=id_in_thread(thread, "1"), thread=thread, name="1")
    put = store.put(state, lineage, types)
    if note is not None:
        store.note(put.id, {"a": note, "b": note})
    saver = PlayheadSaver(store)
    for read in (saver.get_tuple, lambda config: list(saver.list(config))):
        with pytest.raises(CorruptTape):
            read(config_of("t"))


def test_messages_come_back_as_they_were(store: SqliteCheckpoints):
    saver = PlayheadSaver(store)
    calls = [{"name": "find", "args": {"q": "x"}, "id": "1", "type": "tool_call"}]
    messages = [HumanMessage("hello", id="h"), AIMessage("", id="a", tool_calls=calls)]
    (config,) = steps(saver, "t", [{"messages": messages}])
    found = saver.get_tuple(config)
    assert found is not None
    again = found.checkpoint["channel_values"]["messages"]
    assert again == messages
    assert list(map(type, again)) == [HumanMessage, AIMessage]


def test_what_steps_store_grows_with_what_they_changed(store: SqliteCheckpoints):
    saver = PlayheadSaver(store)
    messages = [
        HumanMessage(f"message {number} " + "words " * 40, id=str(number)) for number in range(400)
    ]
    made = steps(saver, "t", [{"messages": messages[: number + 1]} for number in range(400)])
    ids = [found.id for found in store.of_thread('["t", ""]')]
    changes = store.difference(ids[1], ids[0])
    added = [change for change in changes if change.kind == "added"]
    assert [change.path for change in added] == [("checkpoint", "channel_values", "messages", 399)]
    middle = saver.get_tuple(made[200])
    assert middle is not None
    assert middle.checkpoint["channel_values"]["messages"] == messages[:201]
    unique = sum(len(message.model_dump_json()) for message in messages)
    assert store.delete(ids).stored_bytes <= 10 * unique


def test_a_checkpoint_is_linked_to_the_span_that_made_it(store: SqliteCheckpoints):
    saver = PlayheadSaver(store)
    with TracerProvider().get_tracer("test").start_as_current_span("node") as span:
        steps(saver, "t", [{}])
    (found,) = store.of_thread('["t", ""]')
    context = span.get_span_context()
    assert found.lineage.run == context.trace_id.to_bytes(16, "big")
    assert found.lineage.span == context.span_id.to_bytes(8, "big")
    assert found.lineage.kind == "framework"


@dataclasses.dataclass
class Plan:
    goal: str


def test_a_value_that_would_not_come_back_is_refused_with_its_path(store: SqliteCheckpoints):
    saver = PlayheadSaver(store)
    with pytest.raises(StateRefused, match="is not stored") as refused:
        steps(saver, "t", [{"plans": [1, Plan("x")]}])
    assert refused.value.path == ("checkpoint", "channel_values", "plans", 1)
    assert "Plan" in str(refused.value)
    assert saver.get_tuple(config_of("t")) is None
    allowed = saver.with_allowlist([(Plan.__module__, "Plan")])
    (config,) = steps(allowed, "t", [{"plans": [1, Plan("x")]}])
    found = allowed.get_tuple(config)
    assert found is not None
    assert found.checkpoint["channel_values"] == {"plans": [1, Plan("x")]}


def test_a_later_interrupt_of_a_task_wins_and_a_later_value_does_not(store: SqliteCheckpoints):
    saver = PlayheadSaver(store)
    (config,) = steps(saver, "t", [{}])
    for said in ("first" * 500, "second" * 500):
        saver.put_writes(config, [("channel", said), ("__interrupt__", said)], "task")
    found = saver.get_tuple(config)
    assert found is not None
    assert found.pending_writes == [
        ("task", "__interrupt__", "second" * 500),
        ("task", "channel", "first" * 500),
    ]
    assert store.damages() == []


def test_pruning_keeps_what_delta_channels_rest_on(store: SqliteCheckpoints):
    saver = PlayheadSaver(store)
    config, made = config_of("t"), list[str]()
    for step, values in enumerate([{"log": []}, {"log": ["snapshot"]}, {}, {}]):
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = values
        told: Any = {"step": step, "counters_since_delta_snapshot": {"log": (step, step)}}
        config = saver.put(config, checkpoint, told, {})
        made.append(checkpoint["id"])
    saver.prune(["t"])
    assert [found.checkpoint["id"] for found in saver.list(config_of("t"))] == made[:0:-1]


def test_what_the_serializer_encrypts_is_nowhere_in_the_clear(tmp_path: Path):
    with SqliteCheckpoints(tmp_path / "checkpoints.sqlite") as store:
        saver = PlayheadSaver(store, serde=EncryptedSerializer(Reversal()))
        (config,) = steps(saver, "t", [{"messages": [HumanMessage("the secret word")]}])
        saver.put_writes(config, [("messages", "the secret word")], "task")
        saver.copy_thread("t", "u")
        found = saver.get_tuple(config_of("u"))
        assert found is not None
        assert found.checkpoint["channel_values"]["messages"] == [HumanMessage("the secret word")]
        assert found.pending_writes == [("task", "messages", "the secret word")]
    for file in tmp_path.iterdir():
        assert b"the secret word" not in file.read_bytes()


def test_a_saver_opens_a_file_and_closes_it(tmp_path: Path):
    path = tmp_path / "checkpoints.sqlite"
    with PlayheadSaver.from_conn_string(str(path)) as saver:
        saver.setup()
        steps(saver, "t", [{"n": 1}])
        limited = saver.with_allowlist([])
        assert limited.get_tuple(config_of("t")) is not None
    with pytest.raises(StoreUnavailable, match="closed"):
        saver.get_tuple(config_of("t"))

    async def again() -> Any:
        async with PlayheadSaver(path) as saver:
            return await saver.aget_tuple(config_of("t"))

    found = asyncio.run(again())
    assert found is not None and found.checkpoint["channel_values"] == {"n": 1}
    with SqliteCheckpoints(path) as store:
        with PlayheadSaver(store):
            pass
        assert len(store.checkpoints()) == 1  # a store that it was given stays open


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("", UsageError),
        (":memory:", UsageError),
        ("file:checkpoints.sqlite", UsageError),
        ("redis://127.0.0.1", UsageError),
        ("http://", UsageError),
        (None, UsageError),
        (7, UsageError),
        (".", UsageError),
        ("missing/checkpoints.sqlite", StoreUnavailable),
        pytest.param(ports.nobody(), StoreUnavailable, id="nothing listens"),
    ],
)
def test_what_cannot_work_is_refused_at_construction(
    where: Any, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error):
        PlayheadSaver(where)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_store_is_refused_at_construction(tmp_path: Path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database" * 100)
    with pytest.raises((StoreUnavailable, CorruptTape)):
        PlayheadSaver(path)
    assert path.read_text() == "not a database" * 100
