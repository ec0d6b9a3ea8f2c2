"""Calls over gRPC of both kinds: they wait before they go out, are let go or rejected, and replay so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future

import grpc
import grpc.aio
import pytest
from support.outside.halting import at_control_server, going
from support.servers.grpc_server import GrpcServer
from support.starting.running import until
from support.tapes.sessions import replay

from playhead_core.control.messages import HandAnswer
from playhead_core.rerun.plans import Edit
from playhead_core.settings import Settings
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_instrumentation.patching.lanes import Shadow
from playhead_replay.report.compare import compare
from playhead_semconv import attributes as a
from playhead_semconv import events as e

Seen = list[object]
Program = Callable[[str], Seen]

DENIED = [grpc.StatusCode.PERMISSION_DENIED, "not today"]
TIMEOUT_S = 60.0


def failed(error: object) -> Seen:
    assert isinstance(error, grpc.RpcError | grpc.aio.AioRpcError)
    return [error.code(), error.details()]  # pyright: ignore[reportAttributeAccessIssue]


def by_unary(target: str, request: bytes = b"hello") -> Seen:
    with grpc.insecure_channel(target) as channel:
        try:
            return [channel.unary_unary("/test.Service/Ask")(request, timeout=TIMEOUT_S)]
        except grpc.RpcError as error:
            return failed(error)


def by_future(target: str) -> Seen:
    with grpc.insecure_channel(target) as channel:
        call = channel.unary_unary("/test.Service/Ask").future(b"hello", timeout=TIMEOUT_S)
        told: list[object] = []
        call.add_done_callback(lambda done: told.append(done.code()))
        try:
            return [call.result()]
        except grpc.RpcError as error:
            return failed(error)


def by_stream(target: str, request: bytes = b"hello") -> Seen:
    with grpc.insecure_channel(target) as channel:
        try:
            return list(channel.unary_stream("/test.Service/List")(request, timeout=TIMEOUT_S))
        except grpc.RpcError as error:
            return failed(error)


def by_chat(target: str) -> Seen:
    with grpc.insecure_channel(target) as channel:
        try:
            return list(channel.stream_stream("/test.Service/Chat")(iter([b"x", b"y"])))
        except grpc.RpcError as error:
            return failed(error)


def by_aio_unary(target: str, request: bytes = b"hello") -> Seen:
    async def program() -> Seen:
        async with grpc.aio.insecure_channel(target) as channel:
            try:
                return [await channel.unary_unary("/test.Service/Ask")(request, timeout=TIMEOUT_S)]
            except grpc.RpcError as error:
                return failed(error)

    return asyncio.run(program())


def by_aio_stream(target: str, request: bytes = b"hello") -> Seen:
    async def program() -> Seen:
        async with grpc.aio.insecure_channel(target) as channel:
            call = channel.unary_stream("/test.Service/List")(request, timeout=TIMEOUT_S)
            try:
                return [one async for one in call]
            except grpc.RpcError as error:
                return failed(error)

    return asyncio.run(program())


def by_aio_chat(target: str) -> Seen:
    async def asked() -> AsyncIterator[bytes]:
        for one in (b"x", b"y"):
            yield one

    async def program() -> Seen:
        async with grpc.aio.insecure_channel(target) as channel:
            try:
                return [one async for one in channel.stream_stream("/test.Service/Chat")(asked())]
            except grpc.RpcError as error:
                return failed(error)

    return asyncio.run(program())


PROGRAMS = (by_unary, by_future, by_stream, by_chat, by_aio_unary, by_aio_stream, by_aio_chat)
LEVELS = ("exchanges", "strict")


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with GrpcServer() as server:
        yield server.target


def acting(act: Callable[[], None]) -> Future[None]:
    """An operator beside the program, in a thread that is no part of it."""
    with Shadow():
        return going(act)


def told(tape: MemoryTape) -> list[tuple[str, object]]:
    """What the tape says was done to each exchange before it went out."""
    return [
        (fact.name.rpartition(".")[2], fact.attributes.get(a.PLAYHEAD_CONTROL_ACTION))
        for exchange in tape.exchanges().values()
        for fact in exchange.controls
    ]


def replays(program: Callable[[], Seen], seen: Seen, tape: MemoryTape, level: str) -> None:
    """The replay is identical; the server would have counted further."""
    settings = Settings(quiet=True, level=level)
    again, now = replay(program, tape, settings=settings)
    assert again == seen
    assert told(now) == told(tape)
    assert compare(tape, now).divergences == []


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_call_waits_until_it_is_let_go_and_replays(program: Program, level: str, target: str):
    def act() -> None:
        (waits,) = operator.halted()
        assert (waits.kind, waits.key.partition("/")[0]) == ("grpc", target)
        assert "protobuf: it cannot be edited" in operator.order("edit", edits=[Edit("x", 1)])
        assert "cannot be answered by hand" in operator.order("answer", answer=HandAnswer("{}", 200))
        assert operator.order("continue") == ""

    with at_control_server(settings=Settings(quiet=True, level=level)) as operator:
        assert operator.order("pause") == ""
        acts = acting(act)
        seen = program(target)
    acts.result(60)
    tape = operator.sink.tape()
    assert all(isinstance(one, bytes) for one in seen)
    assert told(tape) == [("halt", None), ("release", "continue")]
    replays(lambda: program(target), seen, tape, level)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_rejected_call_does_not_go_out_and_replays(program: Program, level: str, target: str):
    def act() -> None:
        operator.halted()
        assert operator.order("reject", said="not today") == ""

    with at_control_server(settings=Settings(quiet=True, level=level)) as operator:
        operator.order("pause")
        acts = acting(act)
        assert program(target) == DENIED
    acts.result(60)
    tape = operator.sink.tape()
    (exchange,) = tape.exchanges().values()
    assert (exchange.sent, exchange.parts) == ([], [])
    assert told(tape) == [("halt", None), ("release", "reject")]
    replays(lambda: program(target), DENIED, tape, level)


@pytest.mark.parametrize("program", [by_unary, by_stream, by_aio_unary])
def test_a_rule_stops_a_call(program: Program, target: str):
    with at_control_server("stop steps>1") as operator:
        first, second = going(lambda: [program(target), program(target)]).result(60)
    tape = operator.sink.tape()
    assert isinstance(first[0], bytes)
    assert second == [DENIED[0], "the rule stop steps>1 applies"]
    assert told(tape) == [("halt", None), ("release", "reject")]


@pytest.mark.parametrize("program", [by_unary, by_stream, by_aio_unary])
def test_a_checkpoint_is_made_before_a_call_and_again_in_a_replay(program: Program, target: str):
    with at_control_server() as operator:
        assert operator.order("checkpoint", said="here") == ""
        seen = program(target)
    tape = operator.sink.tape()
    assert told(tape) == [("checkpoint", None)]
    (made,) = operator.sink.named(e.PLAYHEAD_CHECKPOINT)
    assert made.attributes[a.PLAYHEAD_CHECKPOINT_LABEL] == "here"
    replays(lambda: program(target), seen, tape, "causal")


def test_other_calls_of_a_channel_go_on_while_one_waits(target: str):
    """Also those whose events the same thread of the channel takes."""

    def talk(channel: grpc.Channel) -> bytes:
        return next(channel.unary_stream("/test.Service/List")(b"talk"))

    with at_control_server() as operator, grpc.insecure_channel(target) as channel:
        operator.order("pause")
        calls = [going(lambda: talk(channel)) for _ in range(2)]
        first, second = operator.halted(2)
        assert operator.order("continue", halt=second.number) == ""
        until(lambda: any(one.done() for one in calls), "the second has its answer")
        assert [one.number for one in operator.halted()] == [first.number]
        assert operator.order("continue") == ""
        assert [one.result(60) for one in calls] == [b"talk 0", b"talk 0"]


def test_a_rejected_call_leaves_the_channel_as_it_was(target: str):
    """Its events are no events of the channel, whose thread goes on for others, and ends after them."""
    with at_control_server() as operator, grpc.insecure_channel(target) as channel:
        stub = channel.unary_stream("/test.Service/List")
        open_call = stub(b"slow")
        assert next(open_call) == b"slow 0"
        operator.order("pause")
        running = going(lambda: next(stub(b"never")))
        operator.halted()
        operator.order("reject", said="not today")
        with pytest.raises(grpc.RpcError) as caught:
            running.result(60)
        assert failed(caught.value) == DENIED
        assert next(open_call) == b"slow 1"
        operator.order("continue")
        assert next(stub(b"after")) == b"after 0"
        open_call.cancel()


def test_a_deadline_does_not_count_the_time_that_a_call_waits(target: str):
    """Counted from when they are let go, the server still has the whole of it."""
    programs, waited_s = (by_unary, by_stream, by_aio_unary, by_aio_stream), 1.0
    with at_control_server() as operator:
        operator.order("pause")
        running = [going(lambda program=program: program(target, b"left")) for program in programs]
        last = max(one.since_ns for one in operator.halted(len(programs)))
        until(lambda: time.time_ns() - last > waited_s * 1e9, "each has waited for a while")
        let_go_s = time.monotonic()
        operator.order("continue")
        left_s = [float(one.result(60)[0]) for one in running]
        assert min(left_s) > TIMEOUT_S - waited_s / 2 - (time.monotonic() - let_go_s)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("by_task", [False, True])
def test_a_call_that_is_cancelled_while_it_waits_replays(by_task: bool, level: str, target: str):
    async def talk() -> Seen:
        async with grpc.aio.insecure_channel(target) as channel:
            call = channel.unary_unary("/test.Service/Ask")(b"hello")
            stream = channel.unary_stream("/test.Service/List")(b"hello")

            async def whole() -> bytes:
                return await call

            tasks = [asyncio.create_task(one) for one in (whole(), stream.read())]
            await asyncio.wait(tasks, timeout=0.05)
            for one in tasks if by_task else (call, stream):
                one.cancel()
            await asyncio.wait(tasks)
            return [call.cancelled(), stream.cancelled(), *(one.cancelled() for one in tasks)]

    def program() -> Seen:
        return asyncio.run(talk())

    with at_control_server(settings=Settings(quiet=True, level=level)) as operator:
        operator.order("pause")
        seen = program()
    tape = operator.sink.tape()
    assert seen == [True] * 4
    assert told(tape) == [("halt", None), ("release", "left")] * 2
    replays(program, seen, tape, level)
