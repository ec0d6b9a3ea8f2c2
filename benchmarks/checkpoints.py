"""Checkpoints of a growing conversation, beside langgraph-checkpoint-sqlite: bytes, puts, reads.

The state is a list of messages to which each step adds one. ``unique`` is the last state, packed once:
what no store can do without. ``disk`` are the files of a store after its last put. Put times are medians
of the last fifty puts, in milliseconds; reads are medians of ten, of the latest checkpoint and of the
middle one. LangGraph's saver stands beside where it is installed (requirements-langgraph.txt).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from playhead_checkpoint import Lineage, SqliteCheckpoints

SIZES = (50, 200, 400, 2_000)
LARGE_BYTES = 10_000_000
LAST = 50
WORDS = "the agent asks a tool for flights to Oslo and packs warm clothes because rain is likely".split()
RUN = b"r" * 16


class Ours:
    """The store of this project."""

    name = "playhead"

    def __init__(self, folder: Path) -> None:
        self.store = SqliteCheckpoints(folder / "checkpoints.sqlite")
        self.parent = b""

    def put(self, messages: list[Any]) -> bytes:
        put = self.store.put({"messages": messages}, Lineage(RUN, kind="framework", parent=self.parent))
        self.parent = put.id
        return put.id

    def get(self, id: bytes) -> list[Any]:
        return self.store.state(id)["messages"]

    def close(self) -> None:
        self.store.close()


class Theirs:
    """LangGraph's saver, as LangGraph calls it."""

    name = "langgraph-checkpoint-sqlite"

    def __init__(self, folder: Path) -> None:
        from langgraph.checkpoint.base import empty_checkpoint
        from langgraph.checkpoint.sqlite import SqliteSaver

        self.opened = SqliteSaver.from_conn_string(str(folder / "checkpoints.sqlite"))
        self.saver, self.empty = self.opened.__enter__(), empty_checkpoint
        self.saver.setup()
        self.config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}

    def put(self, messages: list[Any]) -> Any:
        version = str(len(messages))
        checkpoint = {
            **self.empty(),
            "channel_values": {"messages": messages},
            "channel_versions": {"messages": version},
        }
        metadata = {"source": "loop", "step": len(messages), "parents": {}}
        self.config = self.saver.put(self.config, checkpoint, metadata, {"messages": version})
        return self.config

    def get(self, id: Any) -> list[Any]:
        return self.saver.get_tuple(id).checkpoint["channel_values"]["messages"]

    def close(self) -> None:
        self.opened.__exit__(None, None, None)


def message(chance: random.Random, number: int) -> dict[str, Any]:
    """A message of about 300 bytes."""
    return {
        "role": "assistant" if number % 2 else "user",
        "id": f"{chance.getrandbits(128):032x}",
        "content": " ".join(chance.choice(WORDS) + str(chance.randrange(99)) for _ in range(40)),
        "tool_calls": [],
    }


def timed(what: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds, and what came of it."""
    begin = time.perf_counter()
    found = what()
    return (time.perf_counter() - begin) * 1_000, found


def median(what: Callable[[], Any], times: int = 10) -> float:
    return statistics.median(timed(what)[0] for _ in range(times))


def grown(kind: type[Ours] | type[Theirs], steps: int) -> dict[str, Any]:
    """One conversation of so many steps."""
    chance, messages = random.Random(steps), list[Any]()
    with tempfile.TemporaryDirectory() as name:
        store = kind(Path(name))
        times, ids = list[float](), list[Any]()
        for number in range(steps):
            messages = [*messages, message(chance, number)]
            took, id = timed(partial(store.put, messages))
            times.append(took)
            ids.append(id)
        latest, middle = ids[-1], ids[steps // 2]
        assert store.get(latest) == messages and store.get(middle) == messages[: steps // 2 + 1]
        reads = {
            "get_latest_ms": median(lambda: store.get(latest)),
            "get_middle_ms": median(lambda: store.get(middle)),
        }
        store.close()
        disk = sum(path.stat().st_size for path in Path(name).iterdir())
    unique = len(msgspec.msgpack.encode(messages))
    return {
        "store": kind.name,
        "steps": steps,
        "unique_bytes": unique,
        "disk_bytes": disk,
        "times_unique": round(disk / unique, 1),
        "put_p50_ms": round(statistics.median(times[-LAST:]), 3),
        **{key: round(value, 3) for key, value in reads.items()},
    }


def exponent(rows: list[dict[str, Any]]) -> float:
    """The power of the steps with which the bytes grow: 1 is linear."""
    x = [math.log(row["steps"]) for row in rows]
    y = [math.log(row["disk_bytes"]) for row in rows]
    return statistics.linear_regression(x, y).slope


def compared() -> dict[str, float]:
    """The difference of two adjacent states of ten megabytes, and what the step took."""
    chance, messages, size = random.Random(1), list[Any](), 0
    while size < LARGE_BYTES:
        messages.append(message(chance, len(messages)))
        size += len(msgspec.msgpack.encode(messages[-1]))
    with tempfile.TemporaryDirectory() as name, SqliteCheckpoints(Path(name) / "c.sqlite") as store:
        before = store.put({"messages": messages})
        messages[len(messages) // 2] = {**messages[len(messages) // 2], "content": "edited"}
        messages.append(message(chance, len(messages)))
        after = store.put({"messages": messages})
        assert len(store.difference(before.id, after.id)) == 2
        took = median(lambda: store.difference(before.id, after.id), 20)
        freed = store.delete([after.id])
    return {
        "state_bytes": size,
        "difference_p50_ms": round(took, 3),
        "step_nodes": freed.nodes,
        "step_bytes": freed.stored_bytes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, nargs="*", default=list(SIZES))
    arguments = parser.parse_args()
    kinds: list[type[Ours] | type[Theirs]] = [Ours]
    if importlib.util.find_spec("langgraph") and importlib.util.find_spec("langgraph.checkpoint.sqlite"):
        kinds.append(Theirs)
    for kind in kinds:
        rows = [grown(kind, steps) for steps in arguments.steps]
        for row in rows:
            print(json.dumps(row), flush=True)
        if len(rows) > 1:
            print(json.dumps({"store": kind.name, "exponent": round(exponent(rows), 3)}), flush=True)
    print(json.dumps(compared()))


if __name__ == "__main__":
    main()
