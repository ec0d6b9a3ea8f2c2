"""`@playhead.tool`: recorded and answered at the function."""

import asyncio
import dataclasses
import datetime as dt
import decimal
import enum
import inspect
import json
import socket
import sqlite3
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy
import pydantic
import pytest
from support.observed.again import again, recorded, replayed
from support.servers.scripted import ScriptedServer
from support.starting.programs import Program, attributes
from support.tapes.sessions import record, replay

import playhead
from playhead_core.errors import ExchangeExhausted, ExchangeUnmatched
from playhead_core.facts import Fidelity
from playhead_instrumentation.libraries.common import values
from playhead_replay.report.compare import compare
from playhead_semconv import attributes as a
from playhead_semconv import events as e


class Colour(enum.Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass(frozen=True, slots=True)
class Order:
    number: int
    price: decimal.Decimal
    at: dt.datetime


class Model(pydantic.BaseModel):
    orders: list[int]
    at: dt.date


class Refused(Exception):
    def __init__(self, number, why):
        super().__init__(f"{number}: {why}")
        self.number = number


VALUES = [
    None,
    float("nan"),
    1 << 3000,
    "é\ud800",
    b"\x00\xff",
    bytearray(b"x"),
    (1, (2, [3])),
    {1: "a", (2, 3): "b"},
    {"$type": "x"},
    {3, 1, 2},
    frozenset("abc"),
    dt.datetime(2026, 3, 1, 2, 3, 4, 5, dt.UTC),
    dt.timedelta(1, 2, 3),
    decimal.Decimal("1.10"),
    uuid.UUID(int=5),
    Path("/tmp/x"),
    Colour.RED,
    Point(1, 2),
    Order(1, decimal.Decimal("9.90"), dt.datetime(2026, 3, 1)),
    [Model(orders=[1], at=dt.date(2026, 3, 1))],
    time.gmtime(0),
    numpy.arange(6, dtype="f4").reshape(2, 3),
    numpy.int16(3),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_comes_back_equal_and_of_the_same_type(value):
    made = values.read(values.kept(value))
    assert type(made) is type(value)
    assert values.written(made) == values.written(value)
    if not isinstance(value, set | frozenset):  # which iterate as they like
        assert repr(made) == repr(value)


@pytest.mark.parametrize(
    "error",
    [
        Refused(81, "sold out"),
        KeyError("x"),
        FileNotFoundError(2, "No such file", "x"),
        UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"),
        ExceptionGroup("two", [ValueError(1), Refused(1, "no")]),
        json.JSONDecodeError("bad", "{", 1),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_exception_comes_back_with_what_it_carries(error):
    error.__cause__ = ValueError("why")
    made = values.read(values.kept(error))
    assert type(made) is type(error) and made is not error
    assert (str(made), repr(made), made.__dict__) == (str(error), repr(error), error.__dict__)
    assert repr(made.__cause__) == "ValueError('why')"


def test_what_cannot_be_kept_is_named():
    class Local:
        pass

    cycle: list[object] = []
    cycle.append(cycle)
    for value, name in [
        (threading.Lock(), "_thread.lock"),
        (lambda: 1, "function"),
        (Local(), f"{__name__}.test_what_cannot_be_kept_is_named.<locals>.Local"),
        (cycle, "list"),
        ([sqlite3.connect(":memory:")], "sqlite3.Connection"),
    ]:
        with pytest.raises(values.Unkept, match=f"^{name}$"):
            values.kept(value)


class Shop:
    """A driver that no boundary sees."""

    def __init__(self):
        self.calls = 0

    @playhead.tool(effect="read")
    def price(self, article, *, currency="EUR"):
        """Price of an article.

        More of it.
        """
        self.calls += 1
        return Order(self.calls, decimal.Decimal("1.10"), dt.datetime.now())

    @playhead.tool
    async def buy(self, article):
        self.calls += 1
        await asyncio.sleep(0)
        if article == "none":
            raise Refused(self.calls, "sold out")
        return {article, self.calls}

    @playhead.tool
    def stream(self, count):
        for number in range(count):
            self.calls += 1
            yield number, self.calls
        return "done"

    @playhead.tool
    async def stream_later(self, count):
        for number in range(count):
            self.calls += 1
            yield number
            await asyncio.sleep(0)
        raise Refused(count, "no more")

    @playhead.tool
    @classmethod
    def of_class(cls, word):
        return f"{cls.__name__} {word} {time.monotonic_ns()}"

    @classmethod
    @playhead.tool
    def of_class_inside(cls, word):
        return f"{cls.__name__} {word} {time.monotonic_ns()}"

    @playhead.tool(name="static")
    @staticmethod
    def of_nobody(word):
        return f"{word} {time.monotonic_ns()}"


def use(shop):
    found = [repr(shop.price("pen")), repr(shop.price("pen", currency="USD")), Shop.of_class("a")]
    found += [shop.of_class_inside("b"), Shop.of_nobody("c"), list(shop.stream(3))]

    async def later():
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(shop.buy("book")) for _ in range(5)]
        found.extend(sorted(task.result(), key=str) for task in tasks)
        with pytest.raises(Refused) as caught:
            await shop.buy("none")
        found.append((str(caught.value), caught.value.number))
        with pytest.raises(Refused, match="2: no more"):
            async for number in shop.stream_later(2):
                found.append(number)

    asyncio.run(later())
    return found


@pytest.mark.parametrize("level", ["causal", "strict"])
def test_every_form_is_answered_from_the_tape(level):
    from playhead_core.settings import Settings

    settings = Settings(quiet=True, level=level)
    first, tape = record(lambda: use(Shop()), settings=settings)
    idle = Shop()
    second, now = replay(lambda: use(idle), tape, settings=settings)
    assert second == first
    assert idle.calls == 0
    report = compare(tape, now)
    assert report.verdict == "identical", "\n".join(report.lines())
    assert report.boundaries == {"tool": {Fidelity.EXACT: 13}}
    # What happens inside is not on the tape.
    assert [fact.name for fact in tape.facts() if fact.name == e.PLAYHEAD_READ] == [e.PLAYHEAD_READ]


def test_the_shapes_of_functions_stay():
    assert inspect.iscoroutinefunction(Shop.buy)
    assert inspect.isgeneratorfunction(Shop.stream)
    assert inspect.isasyncgenfunction(Shop.stream_later)
    assert str(inspect.signature(Shop.price)) == "(self, article, *, currency='EUR')"
    assert Shop.price.__name__ == "price"
    with pytest.raises(ValueError, match="read or write"):
        playhead.tool(effect="both")


def test_without_a_recording_it_is_the_function():
    assert use(Shop())[6:11] == [[10, "book"]] * 5


def test_a_call_that_does_not_fit_is_the_functions_own_error():
    def wrong():
        with pytest.raises(TypeError, match=r"price\(\) missing 1 required positional argument"):
            Shop().price()

    _, tape = record(wrong)
    assert not tape.exchanges()


def test_a_changed_argument_is_refused_with_both_sides():
    _, tape = record(lambda: Shop().price("pen"))
    with pytest.raises(ExchangeUnmatched) as caught:
        replay(lambda: Shop().price("ink"), tape)
    assert caught.value.what == "the tape has no answer to price"
    assert caught.value.cause == (
        'nearest is main#0; first difference at $.article: tape "pen", now "ink"'
    )


def test_a_call_more_is_refused():
    _, tape = record(lambda: Shop().price("pen"))
    with pytest.raises(ExchangeExhausted):
        replay(lambda: [Shop().price("pen"), Shop().price("pen")], tape)


def test_identical_calls_in_threads_each_get_their_own_answer():
    barrier = threading.Barrier(8)

    @playhead.tool
    def ask(question):
        barrier.wait(60)
        return uuid.uuid4()

    def program():
        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(ask, ["same"] * 8))

    first, tape = record(program)
    assert len(set(first)) == 8
    second, now = replay(program, tape)
    assert second == first
    assert compare(tape, now).verdict == "identical"


def test_what_it_does_inside_is_not_on_the_tape_and_not_repeated():
    runs: list[str] = []
    with ScriptedServer() as server:

        @playhead.tool
        def reach():
            runs.append("reach")
            print("inside")
            with socket.create_connection(("127.0.0.1", server.port)):
                return inner()

        @playhead.tool
        def inner():
            return "hello"

        def program():
            return reach()

        first, tape = record(program)
        second, now = replay(program, tape)
        assert second == first == "hello"
    assert runs == ["reach"]
    assert [one.ask.key for one in tape.exchanges().values()] == ["reach"]
    assert not [fact for fact in tape.facts() if fact.name == e.PLAYHEAD_EFFECT]
    assert compare(tape, now).verdict == "identical"


def test_a_cancelled_call_is_cancelled_again():
    @playhead.tool
    async def forever():
        await asyncio.Event().wait()

    async def later():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await forever()
        return "cancelled"

    first, tape = record(lambda: asyncio.run(later()))
    second, now = replay(lambda: asyncio.run(later()), tape)
    assert first == second == "cancelled"
    (exchange,) = tape.exchanges().values()
    assert exchange.end is not None and exchange.end.error is not None
    assert exchange.end.error.qualname == "CancelledError"
    assert compare(tape, now).verdict == "identical"


def test_a_stream_that_is_left_is_left_again():
    def program():
        for value in Shop().stream(1000):
            if value[0] == 3:
                return value
        return None

    first, tape = record(program)
    second, now = replay(program, tape)
    assert first == second == (3, 4)
    (exchange,) = tape.exchanges().values()
    assert exchange.end is not None and exchange.end.how == "abandoned"
    assert len(exchange.parts) == 4
    assert compare(tape, now).verdict == "identical"


def test_a_result_that_cannot_be_kept_is_said_and_refused(capfd):
    @playhead.tool
    def connect():
        return sqlite3.connect(":memory:")

    made, tape = record(connect)
    assert isinstance(made, sqlite3.Connection)
    said = capfd.readouterr().err
    assert "a replay cannot answer connect: its result cannot be kept on a tape" in said
    assert "sqlite3.Connection" in said
    with pytest.raises(ExchangeUnmatched, match="does not hold what connect answered"):
        replay(connect, tape)


def test_an_argument_that_cannot_be_kept_counts_by_its_class(capfd):
    @playhead.tool
    def rows(connection, query):
        return connection.execute(query).fetchall()

    def program():
        connection = sqlite3.connect(":memory:")
        return [rows(connection, "select 1, 'a'"), rows(connection, "select 1, 'a'")]

    first, tape = record(program)
    assert first == [[(1, "a")], [(1, "a")]]
    assert replay(program, tape)[0] == first
    assert capfd.readouterr().err.count("counts by its class only: sqlite3.Connection") == 1


def test_an_argument_that_is_changed_is_said(capfd):
    @playhead.tool
    def fill(rows):
        rows.append(1)

    record(lambda: fill([]))
    assert "fill changes its arguments, which a replay does not" in capfd.readouterr().err


def test_credentials_do_not_reach_the_tape(monkeypatch):
    monkeypatch.setenv("DATABASE_PASSWORD", "sesame-open-81")

    @playhead.tool
    def login(user, password):
        return f"{user} with {password}"

    first, tape = record(lambda: login("me", "sesame-open-81"))
    assert first == "me with sesame-open-81"
    assert not any(b"sesame" in (fact.body.inline or b"") for fact in tape.facts() if fact.body)
    assert replay(lambda: login("me", "sesame-open-81"), tape)[0] == "me with *redact~~~~~~~"


AGENT = """
import asyncio, datetime, sqlite3, sys, time, uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
import playhead

@dataclass
class Row:
    id: uuid.UUID
    at: datetime.datetime

class Gone(LookupError):
    def __init__(self, number):
        super().__init__(f"order {number} is gone")
        self.number = number

connection = sqlite3.connect(":memory:", check_same_thread=False)

@playhead.tool(effect="read")
def order(number: int) -> Row:
    "Looks an order up."
    if number > 3:
        raise Gone(number)
    (value,) = connection.execute("select abs(random())").fetchone()
    return Row(uuid.UUID(int=value), datetime.datetime.now())

@playhead.tool
async def refund(number: int, *, reason: str = "broken"):
    await asyncio.sleep(0.001)
    return [number, reason, time.time_ns()]

print(order(1), order(1))
try:
    order(4)
except Gone as gone:
    print(gone, gone.number)
with ThreadPoolExecutor(4) as pool:
    print(list(pool.map(order, [1, 2, 3, 1, 2, 3])))

async def main():
    print(await asyncio.gather(*[refund(1) for _ in range(6)], refund(2, reason="late")))

asyncio.run(main())
"""


@pytest.mark.parametrize("level", ["causal", "strict"])
def test_a_program_replays_identical(tmp_path, level):
    done = again(tmp_path, AGENT, level=level).identical()
    assert done.recorded.returncode == 0, done.recorded.stderr
    assert done.report.boundaries == {"tool": {Fidelity.EXACT: 16}}


def test_a_call_has_a_span(tmp_path):
    program = Program.of(tmp_path, AGENT)
    try:
        assert program.recorded().returncode == 0
        spans = program.spans()
    finally:
        program.close()
    tools = [span for span in spans if span.name.startswith("execute_tool")]
    assert [span.name for span in tools[:3]] == ["execute_tool order"] * 3
    found = attributes(tools[0])
    assert found[a.GEN_AI_OPERATION_NAME] == "execute_tool"
    assert found[a.GEN_AI_TOOL_NAME] == "order"
    assert found[a.GEN_AI_TOOL_TYPE] == "function"
    assert found[a.GEN_AI_TOOL_DESCRIPTION] == "Looks an order up."
    assert json.loads(found[a.GEN_AI_TOOL_CALL_ARGUMENTS]) == {"number": 1}
    assert json.loads(found[a.GEN_AI_TOOL_CALL_RESULT])["class"] == ["__main__", "Row"]
    failed = attributes(tools[2])
    assert failed[a.ERROR_TYPE] == "__main__.Gone"
    assert tools[2].status.message == "order 4 is gone"
    assert {span.parent_span_id for span in tools} == {
        next(span.span_id for span in spans if span.name == "run agent.py")
    }


def test_a_changed_program_is_told_which_argument(tmp_path):
    program = Program.of(tmp_path, AGENT, PYTHONHASHSEED="0")
    _, tape = recorded(program)
    program = Program.of(tmp_path, AGENT.replace("print(order(1), order(1))", "order(1), order(7)"))
    done, now = replayed(program, tape)
    assert done.returncode == 1 and "ExchangeUnmatched" in done.stderr
    first = compare(tape, now).first_divergence
    assert first is not None and first.kind == "blocked"
    assert list(first.lines()) == [
        "step 2: blocked main#tool:1 order",
        "  the request no longer matches recording main#tool:1: number changed",
        "  - recorded: 1",
        "  + now:      7",
    ]
