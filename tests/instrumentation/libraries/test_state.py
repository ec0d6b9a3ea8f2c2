"""`playhead.state`: what is told of any value, from anywhere, and what it never does to the program."""

import asyncio
import dataclasses
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pydantic
import pytest
from support.tapes.sessions import record, replay

import playhead
from playhead_core.errors import UsageError
from playhead_core.rerun.plans import Edit, Plan
from playhead_core.settings import Settings
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_instrumentation.manual import checkpoint
from playhead_replay import Run
from playhead_replay.report.compare import compare
from playhead_replay.run.states import state_differences


class Memory(pydantic.BaseModel):
    facts: list[str]
    seen: set[int] = set()


@dataclasses.dataclass(slots=True)
class Slotted:
    x: int


class Rude:
    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError("not told")


def values(tape: MemoryTape) -> list[Any]:
    return [one.value for one in Run.of_tape(tape).states]


def test_without_a_recording_nothing_happens():
    given = {"a": Rude()}
    assert playhead.state(given) is given


def test_any_value_is_told_and_given_back():
    loop: list[Any] = [1]
    loop.append(loop)
    given = [Memory(facts=["a"], seen={3, 1}), (1, b"x"), open, Rude(), loop, Slotted(5), {1: 2}]

    def program() -> bool:
        return playhead.state(given) is given

    same, tape = record(program)
    assert same
    [[memory, pair, _, rude, _, slotted, numbers]] = values(tape)
    assert memory == {"facts": ["a"], "seen": [1, 3]}
    assert pair == [1, "eA=="]
    assert rude.endswith("Rude")
    assert slotted == {"x": 5}
    assert numbers == [[1, 2]]
    again, now = replay(program, tape)
    assert again
    assert compare(tape, now).verdict == "identical"


def test_tasks_and_threads_have_states_of_their_own():
    async def one(number: int) -> None:
        for step in range(3):
            playhead.state({"task": number, "step": step})
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(*(one(number) for number in range(3)))

    def program() -> None:
        asyncio.run(main())
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda number: playhead.state({"thread": number}), range(4)))

    _, tape = record(program)
    assert len(values(tape)) == 13
    assert len({one.id for one in Run.of_tape(tape).states}) == 13
    _, now = replay(program, tape)
    assert list(state_differences(Run.of_tape(tape).states, Run.of_tape(now).states)) == []


def test_what_a_tool_does_inside_is_no_state_of_the_program():
    @playhead.tool(effect="read")
    def look() -> int:
        playhead.state({"inside": True})
        return 1

    _, tape = record(look)
    assert values(tape) == []


def test_without_content_only_the_size_is_kept():
    settings = Settings(quiet=True, content="metadata")
    _, tape = record(lambda: playhead.state({"a": 1}), settings=settings)
    [one] = Run.of_tape(tape).states
    assert (one.has_content, one.content.size) == (False, 7)


def test_credentials_are_taken_out_of_what_is_told_and_not_of_the_state():
    given = {"api_key": "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz"}
    back, tape = record(lambda: playhead.state(given))
    assert back == {"api_key": "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz"}
    assert "0123456789abcdef" not in str(values(tape))


def test_an_edited_state_is_held_by_what_was_given():
    def program() -> tuple[bool, dict[str, Any], Memory]:
        given = {"left": 3, "done": [1]}
        back = playhead.state(given)
        memory = playhead.state(Memory(facts=["a"]), name="memory")
        return back is given, back, memory

    _, tape = record(program)
    first, second = (str(one.id) for one in Run.of_tape(tape).states)
    edits = {
        first: [Edit("left", 7), Edit("done[0]", remove=True)],
        second: [Edit("facts[0]", "b")],
    }
    (same, back, memory), fork = replay(program, tape, plan=Plan("fork", states=edits))
    assert (same, back, memory.facts) == (True, {"left": 7, "done": []}, ["b"])
    (same, back, memory), now = replay(program, fork)
    assert (same, back, memory.facts) == (True, {"left": 7, "done": []}, ["b"])
    assert compare(fork, now).verdict == "identical"


@pytest.mark.parametrize("registered", [False, True])
def test_a_fork_whose_edited_state_does_not_fit_its_class_ends_there(registered: bool):
    went: list[str] = []

    def program() -> None:
        memory = Memory(facts=["a"])
        if registered:
            playhead.register_state("memory", lambda: memory, lambda new: went.append("set"))
            playhead.checkpoint()
        else:
            playhead.state(memory, name="memory")
        went.append("on")

    try:
        _, tape = record(program)
        (told,) = Run.of_tape(tape).states
        went.clear()
        plan = Plan("fork", states={str(told.id): [Edit("facts[0]", 7)]})
        with pytest.raises(UsageError, match=r"memory\.facts\[0\] cannot be this") as refused:
            replay(program, tape, plan=plan)
        assert "string" in refused.value.cause
        assert went == []
    finally:
        checkpoint._registered.clear()


def test_a_fork_whose_edited_state_the_program_does_not_take_ends_there():
    def put(new: object) -> None:
        raise ValueError("not this one")

    def program() -> None:
        playhead.register_state("left", lambda: 3, put)
        playhead.checkpoint()

    try:
        _, tape = record(program)
        (told,) = Run.of_tape(tape).states
        with pytest.raises(UsageError, match="the program does not take this as left"):
            replay(program, tape, plan=Plan("fork", states={str(told.id): [Edit("", 4)]}))
    finally:
        checkpoint._registered.clear()


def test_a_forked_process_says_states_of_its_own():
    def program() -> int:
        playhead.state({"who": "parent"})
        child = os.fork()
        if not child:
            try:
                playhead.state({"who": "child"})
            finally:
                os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    status, tape = record(program)
    assert status == 0
    assert values(tape)[0] == {"who": "parent"}
