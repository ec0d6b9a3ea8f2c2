"""Checkpoints of a growing conversation, beside langgraph-checkpoint-sqlite: bytes, puts, reads.

The state is a list of messages to which each step adds one. ``unique`` is the last state, packed once:
what no store can do without. ``disk`` are the files of a store after its last put. Put times are medians
of the last fifty puts; reads are medians of fifty, of the latest checkpoint and of the middle one;
``first`` is the first read of the latest one by a store that was just opened. All are milliseconds, and
medians over all runs with the smallest and largest in brackets: of the clock, and (``cpu``) of the
processor alone, which does not wait for the disk.

Where LangGraph's saver is installed (requirements-langgraph.txt) it stands beside `PlayheadSaver`, step
by step in turns, with messages that are dicts and messages of LangChain. All sync files at each put;
with ``--as-they-come`` those of this project do as they do by default: a put survives the death of the
process, and the last ones may be lost with the power.
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
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from playhead_checkpoint import Lineage, SqliteCheckpoints

SIZES = (50, 200, 400, 2_000)
LARGE_BYTES = 10_000_000
LAST = 50
WORDS = "the agent asks a tool for flights to Oslo and packs warm clothes because rain is likely".split()
RUN = b"r" * 16
SYNCHRONOUS = ["FULL"]
"""Of the stores of this project; LangGraph's is FULL."""


class Ours:
    """The store of this project."""

    name = "playhead, store"

    def __init__(self, folder: Path) -> None:
        self.store = SqliteCheckpoints(folder / "checkpoints.sqlite", synchronous=SYNCHRONOUS[0])
        self.parent = b""

    def put(self, messages: list[Any]) -> bytes:
        put = self.store.put({"messages": messages}, Lineage(RUN, kind="framework", parent=self.parent))
        self.parent = put.id
        return put.id

    def get(self, id: bytes) -> list[Any]:
        return self.store.state(id)["messages"]

    def close(self) -> None:
        self.store.close()


class Saver:
    """A saver, as LangGraph calls it."""

    name: str
    saver: Any

    def __init__(self) -> None:
        from langgraph.checkpoint.base import empty_checkpoint

        self.empty = empty_checkpoint
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


class OurSaver(Saver):
    """The saver of this project."""

    name = "playhead, saver"

    def __init__(self, folder: Path) -> None:
        from playhead_checkpoint.langgraph import PlayheadSaver

        super().__init__()
        self.store = SqliteCheckpoints(folder / "checkpoints.sqlite", synchronous=SYNCHRONOUS[0])
        self.saver = PlayheadSaver(self.store)

    def close(self) -> None:
        self.store.close()


class Theirs(Saver):
    """LangGraph's saver."""

    name = "langgraph-checkpoint-sqlite"

    def __init__(self, folder: Path) -> None:
        from langgraph.checkpoint.sqlite import SqliteSaver

        super().__init__()
        self.opened = SqliteSaver.from_conn_string(str(folder / "checkpoints.sqlite"))
        self.saver = self.opened.__enter__()
        self.saver.setup()

    def close(self) -> None:
        self.opened.__exit__(None, None, None)


Kind: TypeAlias = type[Ours] | type[OurSaver] | type[Theirs]


def message(chance: random.Random, number: int) -> dict[str, Any]:
    """A message of about 300 bytes."""
    return {
        "role": "assistant" if number % 2 else "user",
        "id": f"{chance.getrandbits(128):032x}",
        "content": " ".join(chance.choice(WORDS) + str(chance.randrange(99)) for _ in range(40)),
        "tool_calls": [],
    }


def langchain_message(chance: random.Random, number: int) -> Any:
    """The same as LangChain has it."""
    from langchain_core.messages import AIMessage, HumanMessage

    told = message(chance, number)
    return (AIMessage if number % 2 else HumanMessage)(told["content"], id=told["id"])


class Times:
    """How long something took, in milliseconds: by the clock, and of the processor."""

    def __init__(self) -> None:
        self.clock: list[float] = []
        self.cpu: list[float] = []

    def of(self, what: Callable[[], Any]) -> Any:
        """Do it, and note how long it took."""
        begin, cpu = time.perf_counter(), time.thread_time()
        found = what()
        self.cpu.append((time.thread_time() - cpu) * 1_000)
        self.clock.append((time.perf_counter() - begin) * 1_000)
        return found

    def medians(self, name: str, last: int = 0) -> dict[str, float]:
        """The medians, under these names."""
        clock, cpu = (statistics.median(one[-last:]) for one in (self.clock, self.cpu))
        return {f"{name}_ms": clock, f"{name}_cpu_ms": cpu}


class Grown:
    """A conversation in one store."""

    def __init__(self, kind: Kind, folder: Path) -> None:
        self.kind, self.folder = kind, folder / kind.__name__
        self.folder.mkdir()
        self.store = kind(self.folder)
        self.puts, self.latest, self.middle, self.first = Times(), Times(), Times(), Times()
        self.ids: list[Any] = []

    def put(self, messages: list[Any]) -> None:
        self.ids.append(self.puts.of(partial(self.store.put, messages)))

    def read(self, messages: list[Any]) -> None:
        """Read the latest and the middle state once."""
        middle = len(self.ids) // 2
        latest = self.latest.of(partial(self.store.get, self.ids[-1]))
        assert latest == messages
        assert self.middle.of(partial(self.store.get, self.ids[middle])) == messages[: middle + 1]

    def figures(self) -> dict[str, Any]:
        self.store.close()
        anew = self.kind(self.folder)
        self.first.of(lambda: anew.get(self.ids[-1]))
        anew.close()
        return {
            "disk_bytes": sum(path.stat().st_size for path in self.folder.iterdir()),
            **self.puts.medians("put_p50", LAST),
            **self.latest.medians("get_latest"),
            **self.middle.medians("get_middle"),
            **self.first.medians("get_first"),
        }


def in_turns(stores: list[Grown], number: int) -> list[Grown]:
    """The stores, of which another one begins each time."""
    turn = number % len(stores)
    return stores[turn:] + stores[:turn]


def grown(
    kinds: Sequence[Kind], steps: int, made: Callable[[random.Random, int], Any]
) -> tuple[int, list[dict[str, Any]]]:
    """One conversation of so many steps in each kind of store: its unique bytes, and the figures."""
    chance, messages = random.Random(steps), list[Any]()
    with tempfile.TemporaryDirectory() as name:
        stores = [Grown(kind, Path(name)) for kind in kinds]
        for number in range(steps):
            messages = [*messages, made(chance, number)]
            for one in in_turns(stores, number):
                one.put(messages)
        for number in range(LAST):
            for one in in_turns(stores, number):
                one.read(messages)
        return len(msgspec.msgpack.encode(plain(messages))), [one.figures() for one in stores]


def over_runs(
    kinds: Sequence[Kind], steps: int, made: Callable[[random.Random, int], Any], runs: int
) -> list[dict[str, Any]]:
    """The figures of each kind: medians over some runs, and the smallest and largest."""
    found = [grown(kinds, steps, made) for _ in range(runs)]
    unique = found[0][0]
    rows: list[dict[str, Any]] = []
    for number, kind in enumerate(kinds):
        told = [figures[number] for _, figures in found]
        disk = round(statistics.median(one["disk_bytes"] for one in told))
        row: dict[str, Any] = {"store": kind.name, "messages": made.__name__, "steps": steps}
        row |= {"unique_bytes": unique, "disk_bytes": disk, "times_unique": round(disk / unique, 1)}
        for key in [key for key in told[0] if key.endswith("_ms")]:
            values = sorted(one[key] for one in told)
            median, low, high = (
                round(one, 3) for one in (statistics.median(values), values[0], values[-1])
            )
            row[key] = f"{median} [{low}, {high}]"
        rows.append(row)
    return rows


def plain(messages: list[Any]) -> list[Any]:
    """Return messages as plain dicts."""
    return [one if isinstance(one, dict) else {"content": one.content, "id": one.id} for one in messages]


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
        times = Times()
        for _ in range(20):
            times.of(lambda: store.difference(before.id, after.id))
        freed = store.delete([after.id])
    return {
        "state_bytes": size,
        **{key: round(one, 3) for key, one in times.medians("difference_p50").items()},
        "step_nodes": freed.nodes,
        "step_bytes": freed.stored_bytes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--as-they-come", action="store_true")
    arguments = parser.parse_args()
    if arguments.as_they_come:
        SYNCHRONOUS[0] = "NORMAL"
    ways: list[tuple[Sequence[Kind], Callable[[random.Random, int], Any]]] = [((Ours,), message)]
    if importlib.util.find_spec("langgraph") and importlib.util.find_spec("langgraph.checkpoint.sqlite"):
        ways = [((Ours, OurSaver, Theirs), message), ((OurSaver, Theirs), langchain_message)]
    for kinds, made in ways:
        rows = list[dict[str, Any]]()
        for steps in arguments.steps:
            found = over_runs(kinds, steps, made, arguments.runs)
            rows += found
            for row in found:
                print(json.dumps(row), flush=True)
        if len(arguments.steps) > 1:
            for kind in kinds:
                grew = exponent([row for row in rows if row["store"] == kind.name])
                print(json.dumps({"store": kind.name, "exponent": round(grew, 3)}), flush=True)
    print(json.dumps(compared()))


if __name__ == "__main__":
    main()
