"""The same operations on LangGraph's saver for SQLite and on ours have the same results."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from support.savers import Reversal, SyncSaver

from playhead_checkpoint import SqliteCheckpoints
from playhead_checkpoint.langgraph import PlayheadSaver
from playhead_core.errors import UsageError

Operations = Callable[[Any], Awaitable[Any]]

SERIALIZERS = {
    "safe": JsonPlusSerializer(allowed_msgpack_modules=None),
    "any": JsonPlusSerializer(),
    "encrypted": EncryptedSerializer(Reversal(), JsonPlusSerializer(allowed_msgpack_modules=None)),
}
with_both = pytest.mark.parametrize("kind", [PlayheadSaver, SyncSaver])


def compare(folder: Path, kind: Any, operations: Operations, serde: Any = SERIALIZERS["safe"]) -> Any:
    """What the operations return on both savers, which is the same."""

    async def both() -> tuple[Any, Any]:
        async with AsyncSqliteSaver.from_conn_string(str(folder / "theirs.sqlite")) as theirs:
            theirs.serde = serde
            expected = await operations(theirs)
        with SqliteCheckpoints(folder / "ours.sqlite") as store:
            result = await operations(kind(store, serde=serde))
            assert store.damages() == []
        return expected, result

    expected, result = asyncio.run(both())
    assert result == expected
    return result


def config_of(thread_id: Any, namespace: str = "", **more: Any) -> Any:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, **more}}


async def put(saver: Any, config: Any, number: int, **metadata: Any) -> Any:
    """Put the checkpoint with the number as its id."""
    checkpoint = empty_checkpoint() | {"id": f"{number:08}", "ts": "2026-01-01T00:00:00+00:00"}
    checkpoint["channel_values"] = {"number": number}
    return await saver.aput(config, checkpoint, {"step": number, **metadata}, {})


@dataclasses.dataclass
class Declined(Exception):
    code: int
    inner: Exception


class Odd(Exception):
    def __init__(self, first: str, *, second: object) -> None:
        super().__init__(first)
        self.second = second

    def __repr__(self) -> str:
        return "Odd(\N{PILE OF POO}, 'quoted')"


ERRORS = {
    "plain": ValueError("card declined"),
    "of the system": FileNotFoundError(2, "no such file", "x"),
    "with what no serializer keeps": Odd("first", second=object()),
    "group": ExceptionGroup("several", [ValueError(1), KeyError("k")]),
    "base": KeyboardInterrupt("host dies"),
    "class": Declined(1, ValueError("inner")),
    "text": "was an error before",
    "in a list": [ValueError("a")],
}


@pytest.mark.parametrize("serde", SERIALIZERS)
@with_both
def test_errors_come_back_as_from_the_other_saver(tmp_path: Path, kind: Any, serde: str):
    async def operations(saver: Any) -> Any:
        config = await put(saver, config_of("t"), 1)
        for task, error in ERRORS.items():
            writes = [("channel", task), ("__error__", error), ("__error_source_node__", "node")]
            await saver.aput_writes(config, writes, task, f"path {task}")
        await saver.aput_writes(config, [("__error__", ValueError("second"))], "plain", "path plain")
        found = await saver.aget_tuple(config)
        return [(task, channel, repr(value)) for task, channel, value in found.pending_writes]

    writes = compare(tmp_path, kind, operations, SERIALIZERS[serde])
    assert ("plain", "__error__", repr("ValueError('second')")) in writes
    assert len(writes) == 3 * len(ERRORS)


@with_both
def test_copied_errors_are_serialized_once(tmp_path: Path, kind: Any):
    with SqliteCheckpoints(tmp_path / "c.sqlite") as store:
        saver = kind(store, serde=SERIALIZERS["encrypted"])

        async def copied() -> Any:
            config = await put(saver, config_of("t"), 1)
            await saver.aput_writes(config, [("__error__", ValueError("x"))], "task")
            await saver.acopy_thread("t", "u")
            await saver.acopy_thread("u", "v")
            return await saver.aget_tuple(config_of("v"))

        assert asyncio.run(copied()).pending_writes == [("task", "__error__", "ValueError('x')")]


ODD = ("a", "z", "", 7, '["a", ""]', 'a", "', "a%_", "a\0b", "a\\", "{", "\N{PILE OF POO}" * 90)
LONG = ("x" * 1_018, "x" * 1_019, "x" * 3_000, "\N{PILE OF POO}" * 1_000, "x" * 100_000)
NAMESPACES = ("", "child", "child:1|grandchild:2", "n" * 1_000, "n" * 1_019, "n" * 3_000)


async def fill(saver: Any) -> list[Any]:
    """Put checkpoints into threads in turn; all threads with their namespaces."""
    threads = [(thread, "") for thread in ODD + LONG] + [
        (thread, namespace) for thread in ("a", *LONG[:3]) for namespace in NAMESPACES[1:]
    ]
    number = 0
    for turn in range(3):
        for thread, namespace in threads:
            number += 1
            source = "input" if number % 3 else "loop"
            parent = {"checkpoint_id": f"{number - len(threads):08}"} if turn else {}
            config = config_of(thread, namespace, **parent)
            config = await put(saver, config, number, source=source, more={"even": number % 2 == 0})
            await saver.aput_writes(config, [("channel", number)], f"task {number}")
    return threads


QUESTIONS: list[dict[str, Any]] = [
    {},
    {"limit": 0},
    {"limit": 1},
    {"limit": 5},
    {"limit": 10_000},
    {"before": config_of("ignored", checkpoint_id="00000040")},
    {"before": config_of("ignored", checkpoint_id="00000040"), "limit": 7},
    {"filter": {"source": "loop"}, "limit": 4},
    {"filter": {"source": "loop", "step": 9}},
    {"filter": {"missing": None, "more": {"even": True}}},
    {"filter": {"source": "nothing"}},
    {"config": {"configurable": {"thread_id": "a"}}},
    {"config": {"configurable": {"thread_id": "a"}}, "limit": 3, "filter": {"source": "input"}},
    {"config": {"configurable": {"thread_id": "x" * 3_000}}, "limit": 4},
    {"config": {"configurable": {"thread_id": "x" * 1_018}}},
    {"config": config_of("a", "child"), "limit": 2},
    {"config": config_of("a", "child"), "before": config_of("", checkpoint_id="00000060")},
    {"config": config_of("a", checkpoint_id="00000001")},
    {"config": config_of("a", checkpoint_id="00000002")},
    {"config": config_of("nobody")},
]


@with_both
def test_lists_are_those_of_the_other_saver(tmp_path: Path, kind: Any):
    async def operations(saver: Any) -> Any:
        threads = await fill(saver)
        lists = [
            [found async for found in saver.alist(question.get("config"), **options)]
            for question in QUESTIONS
            for options in [{key: value for key, value in question.items() if key != "config"}]
        ]
        latest = [await saver.aget_tuple(config_of(*thread)) for thread in threads]
        await saver.adelete_thread("x" * 3_000)
        await saver.adelete_thread("a")
        left = [found.config async for found in saver.alist(None)]
        return lists, latest, left

    lists, latest, left = compare(tmp_path, kind, operations)
    assert len(lists[0]) == 3 * len(latest)
    assert [len(found) for found in lists[1:4]] == [0, 1, 5]
    assert 0 < len(left) < len(lists[0])


class Counting(SqliteCheckpoints):
    """Counts the states and names that are read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.states, self.names = 0, list[int]()

    def contents(self, id: bytes, types: Any = None) -> Any:
        self.states += 1
        return super().contents(id, types)

    def of_thread(self, thread: str, *, before: str = "", limit: int | None = None) -> Any:
        found = super().of_thread(thread, before=before, limit=limit)
        self.names.append(len(found))
        return found


def test_a_limited_list_reads_no_more_than_it_returns(tmp_path: Path):
    with Counting(tmp_path / "c.sqlite") as store:
        saver = PlayheadSaver(store)
        asyncio.run(fill(saver))
        assert len(list(saver.list(None, limit=2))) == 2
        assert (store.states, max(store.names)) == (2, 2)


def test_a_copy_of_a_thread_with_a_long_id_has_its_new_id(tmp_path: Path):
    with SqliteCheckpoints(tmp_path / "c.sqlite") as store:
        saver = PlayheadSaver(store)
        names = ["y" * 2_000, "short", "z" * 2_000]

        async def copied() -> None:
            for number, namespace in enumerate(("", "n" * 2_000)):
                await put(saver, config_of("x" * 2_000, namespace), number)
            for source, target in zip(["x" * 2_000, *names], names, strict=False):
                await saver.acopy_thread(source, target)

        asyncio.run(copied())
        for name in names:
            found = saver.list({"configurable": {"thread_id": name}})
            assert [one.config["configurable"]["checkpoint_ns"] for one in found] == ["n" * 2_000, ""]
            assert saver.get_tuple(config_of(name)) is not None


def test_what_cannot_name_a_checkpoint_is_refused_with_its_length(tmp_path: Path):
    with SqliteCheckpoints(tmp_path / "c.sqlite") as store:
        saver = PlayheadSaver(store)
        checkpoint = empty_checkpoint() | {"id": "i" * 300}
        with (
            pytest.raises(UsageError, match="its name has 300 characters"),
        ):
            saver.put(config_of("t"), checkpoint, {"step": 0}, {})  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="no checkpoint_id"):
            saver.put_writes(config_of("t"), [("channel", 1)], "task")
