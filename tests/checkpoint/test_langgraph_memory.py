import asyncio
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import GetOp, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from playhead_checkpoint import SqliteCheckpoints
from playhead_checkpoint.langgraph import PlayheadSaver, PlayheadStore

USERS = ("users", "u1")


@pytest.fixture(params=["ours", "theirs"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """The store, and LangGraph's own, which says what is right."""
    if request.param == "theirs":
        return InMemoryStore()
    store = SqliteCheckpoints(tmp_path / "c.sqlite")
    request.addfinalizer(store.close)
    return PlayheadStore(store)


def keys(found: Any) -> set[str]:
    return {one.key for one in found}


def test_what_is_put_is_got_until_it_is_deleted(memory: Any):
    memory.put(USERS, "a", {"food": "pizza", "n": 1})
    first = memory.get(USERS, "a")
    assert (first.value, first.key, first.namespace) == ({"food": "pizza", "n": 1}, "a", USERS)
    memory.put(USERS, "a", {"food": "soup"})
    then = memory.get(USERS, "a")
    assert then.value == {"food": "soup"}
    assert then.updated_at >= then.created_at >= first.created_at
    assert memory.get(("users",), "a") is None
    memory.delete(USERS, "a")
    memory.delete(USERS, "a")
    assert memory.get(USERS, "a") is None
    assert memory.search(USERS) == []


def test_a_search_filters_below_a_namespace(memory: Any):
    for number in range(6):
        memory.put(
            ("users", f"u{number % 2}"), f"k{number}", {"n": number, "in": {"even": not number % 2}}
        )
    memory.put(("users2",), "k9", {"n": 9})
    assert keys(memory.search(("users",), limit=100)) == {f"k{number}" for number in range(6)}
    assert keys(memory.search((), limit=100)) == {f"k{number}" for number in (*range(6), 9)}
    assert keys(memory.search(("users", "u1"))) == {"k1", "k3", "k5"}
    assert keys(memory.search(("users",), filter={"n": 3})) == {"k3"}
    assert keys(memory.search(("users",), filter={"n": {"$gt": 1, "$lte": 4}})) == {"k2", "k3", "k4"}
    assert keys(memory.search(("users",), filter={"n": {"$ne": 0}, "other": 1})) == set()
    assert len(memory.search(("users",), limit=4)) == 4
    assert len(memory.search(("users",), limit=4, offset=4)) == 2
    assert memory.search(("nobody",)) == []


def test_namespaces_are_listed(memory: Any):
    for namespace in (("a", "b", "c"), ("a", "b", "d"), ("a", "x", "c"), ('q"', "é")):
        memory.put(namespace, "k", {"v": 1})
    assert set(memory.list_namespaces()) == {
        ("a", "b", "c"),
        ("a", "b", "d"),
        ("a", "x", "c"),
        ('q"', "é"),
    }
    assert set(memory.list_namespaces(prefix=("a", "b"))) == {("a", "b", "c"), ("a", "b", "d")}
    assert set(memory.list_namespaces(suffix=("c",))) == {("a", "b", "c"), ("a", "x", "c")}
    assert set(memory.list_namespaces(prefix=("a", "*", "c"))) == {("a", "b", "c"), ("a", "x", "c")}
    assert set(memory.list_namespaces(prefix=("a",), max_depth=2)) == {("a", "b"), ("a", "x")}
    assert len(memory.list_namespaces(limit=2)) == 2


def test_questions_of_a_batch_are_answered_before_its_puts(memory: Any):
    memory.put(USERS, "a", {"v": 1})
    ops = [PutOp(USERS, "a", {"v": 2}), GetOp(USERS, "a"), SearchOp(USERS), PutOp(USERS, "a", {"v": 3})]
    _, got, found, _ = asyncio.run(memory.abatch(ops))
    assert (got.value, [one.value for one in found]) == ({"v": 1}, [{"v": 1}])
    assert memory.get(USERS, "a").value == {"v": 3}


def test_an_item_keeps_the_time_when_it_was_made(tmp_path: Path):
    with SqliteCheckpoints(tmp_path / "c.sqlite") as store:
        memory = PlayheadStore(store)
        memory.put(USERS, "a", {"v": 1})
        first = memory.get(USERS, "a")
        memory.put(USERS, "a", {"v": 2})
        then = memory.get(USERS, "a")
        assert first is not None and then is not None
        assert then.created_at == first.created_at and then.updated_at > first.updated_at


def test_memory_and_checkpoints_share_a_store_and_keep_apart(tmp_path: Path):
    with SqliteCheckpoints(tmp_path / "c.sqlite") as store:
        PlayheadStore(store).put(USERS, "a", {"v": 1})
        saver = PlayheadSaver(store)
        assert list(saver.list(None)) == []
        saver.delete_thread("users")
        found = PlayheadStore(store).get(USERS, "a")
        assert found is not None and found.value == {"v": 1}
