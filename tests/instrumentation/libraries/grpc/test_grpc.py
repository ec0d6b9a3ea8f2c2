"""gRPC, blocking and async: recorded, and replayed with the server gone."""

import asyncio
import queue
import threading

import grpc
import grpc.aio
import pytest
from grpc_status import rpc_status
from support.servers.grpc_server import SECRET, GrpcServer
from support.tapes.sessions import record, replay

from playhead_core.settings import Settings
from playhead_replay.report.compare import compare
from playhead_semconv import attributes as a

LEVELS = ["causal", "strict"]
KEY = "sk-sent0123456789abcdefghij"
NOWHERE = "127.0.0.1:9"


class Stubs:
    """The four kinds of calls of a channel."""

    def __init__(self, channel):
        self.ask = channel.unary_unary("/test.Service/Ask")
        self.list = channel.unary_stream("/test.Service/List")
        self.collect = channel.stream_unary("/test.Service/Collect")
        self.chat = channel.stream_stream("/test.Service/Chat")


def described(error):
    trailers = [tuple(pair) for pair in error.trailing_metadata() or ()]
    status = rpc_status.from_call(error) if isinstance(error, grpc.Call) else None
    rich = None if status is None else (status.code, status.message, status.details[0].type_url)
    return type(error).__name__, error.code(), error.details(), trailers, rich


def talk(target):
    """Everything that goes well."""
    seen = []
    with grpc.insecure_channel(target) as channel:
        stubs = Stubs(channel)
        seen.append(stubs.ask(b"hello", metadata=(("authorization", f"Bearer {KEY}"),)))
        answer, call = stubs.ask.with_call(b"with call")
        seen.append((answer, call.code(), tuple(call.initial_metadata()), call.trailing_metadata()))
        future = stubs.ask.future(b"future")
        told = queue.Queue()
        future.add_done_callback(lambda done: told.put((done.result(), done.code())))
        seen += [future.result(), told.get(), future.done()]
        seen.append(list(stubs.list(b"list")))
        seen.append(stubs.collect(iter([b"a", b"b", b"c"])))
        seen.append(stubs.collect.future(iter([b"d", b"e"])).result())
        seen.append(list(stubs.chat(iter([b"x", b"y", b"z"]))))
        questions = queue.Queue()
        answers = stubs.chat(iter(questions.get, None))
        for number in range(3):
            questions.put(b"turn %d" % number)
            seen.append(next(answers))
        questions.put(None)
        seen.append(list(answers))
        large = stubs.chat(iter([b"\x00\xff" * 500_000]))
        seen.append(len(next(large)))
    return seen


def fail(target):
    """Everything that goes wrong."""
    seen = []

    def failing(call, *args, **options):
        try:
            answer = call(*args, **options)
            for one in answer if not isinstance(answer, bytes) else ():
                seen.append(one)
        except grpc.RpcError as error:
            seen.append(described(error))

    with grpc.insecure_channel(target) as channel, grpc.insecure_channel(NOWHERE) as nowhere:
        stubs = Stubs(channel)
        failing(stubs.ask, b"fail")
        failing(stubs.ask, b"rich")
        failing(stubs.ask, b"slow", timeout=0.2)
        failing(stubs.list, b"fail")
        failing(stubs.chat, iter([b"fine", b"fail", b"never"]))
        failing(Stubs(nowhere).ask, b"x")
        failing(Stubs(nowhere).list, b"x")
        failing(channel.unary_unary("/test.Service/Nothing"), b"x")
        cancelled = stubs.ask.future(b"slow")
        cancelled.cancel()
        seen.append((cancelled.cancelled(), cancelled.code()))
        stream = stubs.list(b"slow")
        seen.append(next(stream))
        stream.cancel()
        failing(lambda: next(stream))
    return seen


async def talk_async(target):
    seen = []

    async def requests(*messages):
        for message in messages:
            yield message

    async with grpc.aio.insecure_channel(target) as channel:
        stubs = Stubs(channel)
        seen.append(await stubs.ask(b"hello", metadata=(("authorization", f"Bearer {KEY}"),)))
        call = stubs.ask(b"call")
        call.add_done_callback(lambda _: seen.append("done"))
        seen.append((await call, await call.code(), tuple(await call.initial_metadata())))
        seen.append(tuple(await call.trailing_metadata()))
        seen.append([one async for one in stubs.list(b"list")])
        seen.append(await stubs.collect(requests(b"a", b"b")))
        call = stubs.collect()
        for message in (b"c", b"d"):
            await call.write(message)
        await call.done_writing()
        seen.append(await call)
        seen.append([one async for one in stubs.chat(requests(b"x", b"y", b"z"))])
        call = stubs.chat()
        for number in range(3):
            await call.write(b"turn %d" % number)
            seen.append(await call.read())
        await call.done_writing()
        seen.append(await call.read() is grpc.aio.EOF)
    return seen


async def fail_async(target):
    seen = []

    async def failing(call):
        try:
            if hasattr(call, "__aiter__"):
                async for one in call:
                    seen.append(one)
            else:
                await call
        except grpc.RpcError as error:
            seen.append(described(error))

    async def requests(*messages):
        for message in messages:
            yield message

    nowhere = grpc.aio.insecure_channel(NOWHERE)
    async with grpc.aio.insecure_channel(target) as channel, nowhere:
        stubs = Stubs(channel)
        await failing(stubs.ask(b"fail"))
        await failing(stubs.ask(b"rich"))
        await failing(stubs.ask(b"slow", timeout=0.2))
        await failing(stubs.list(b"fail"))
        await failing(stubs.chat(requests(b"fine", b"fail")))
        await failing(Stubs(nowhere).ask(b"x"))
        await failing(Stubs(nowhere).list(b"x"))
        call = stubs.list(b"slow")
        seen.append(await call.read())
        call.cancel()
        try:
            await call.read()
        except asyncio.CancelledError:
            seen.append((call.cancelled(), await call.code()))
        task = asyncio.create_task(failing(stubs.ask(b"slow")))
        await asyncio.sleep(0)
        task.cancel()
        seen.append(await asyncio.gather(task, return_exceptions=True))
    return repr(seen)


def many(target):
    """Identical questions at once, in threads and as futures."""
    order = []
    with grpc.insecure_channel(target) as channel:
        stubs = Stubs(channel)

        def one(name):
            for _ in range(4):
                order.append((name, stubs.ask(b"same")))
            for answer in stubs.list(b"same"):
                order.append((name, answer))

        threads = [threading.Thread(target=one, args=(name,)) for name in range(5)]
        for thread in threads:
            thread.start()
        futures = [stubs.ask.future(b"same") for _ in range(8)]
        for future in futures:
            future.add_done_callback(lambda done: order.append(("callback", done.result())))
        for thread in threads:
            thread.join()
        last = [future.result() for future in futures]
    return [*order, ("last", *last)]


async def many_async(target):
    order = []
    async with grpc.aio.insecure_channel(target) as channel:
        stubs = Stubs(channel)

        async def one(name):
            for _ in range(4):
                order.append((name, await stubs.ask(b"same")))
            async for answer in stubs.list(b"same"):
                order.append((name, answer))

        await asyncio.gather(*(one(name) for name in range(8)))
    return order


PROGRAMS = [talk, talk_async, fail, fail_async, many, many_async]


def recorded(program, level="causal", **options):
    def called():
        made = program(target)
        return asyncio.run(made) if asyncio.iscoroutine(made) else made

    with GrpcServer() as server:
        target = server.target
        seen, tape = record(called, settings=Settings(quiet=True, level=level), **options)
    return seen, tape, called


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_replay_is_identical_with_the_server_gone(program, level):
    seen, tape, again = recorded(program, level)
    replayed, now = replay(again, tape)
    if program in (many, many_async) and level == "causal":  # not held: who goes on first in a batch
        seen, replayed = sorted(map(repr, seen)), sorted(map(repr, replayed))
    assert repr(replayed) == repr(seen).replace("received-cookie-0123", "[redacted]")
    assert compare(tape, now).divergences == []


def test_the_tape_holds_a_call_as_it_went():
    _, tape, _ = recorded(talk)
    first, second, *_ = tape.exchanges().values()
    assert first.ask.key.endswith("/test.Service/Ask")
    assert tape.read(first.ask.body) == b"hello"
    assert tape.read(second.parts[0].data).endswith(b":with call")
    assert second.head[a.PLAYHEAD_GRPC_METADATA][:4] == ["served-by", "test", "raw-bin", "AP8="]
    assert second.end is not None
    assert second.end.values[a.RPC_GRPC_STATUS_CODE] == 0
    assert second.end.values[a.PLAYHEAD_GRPC_TRAILERS] == ["took", "1"]
    collect = next(one for one in tape.exchanges().values() if one.ask.key.endswith("/Collect"))
    assert [tape.read(sent.data) for sent in collect.sent] == [b"a", b"b", b"c"]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_credentials_do_not_reach_the_tape(asynchronous):
    metadata = (("authorization", f"Bearer {KEY}"), ("x-goog-api-key", "sent-google-key-0123"))

    def program(target):
        with grpc.insecure_channel(target) as channel:
            stubs = Stubs(channel)
            stubs.ask(b'{"client_secret": "sent-field-0123456789"}', metadata=metadata)
            with pytest.raises(grpc.RpcError):
                stubs.ask(b"fail")
            return stubs.ask(b"secret")

    async def program_async(target):
        async with grpc.aio.insecure_channel(target) as channel:
            stubs = Stubs(channel)
            await stubs.ask(b'{"client_secret": "sent-field-0123456789"}', metadata=metadata)
            with pytest.raises(grpc.RpcError):
                await stubs.ask(b"fail")
            return await stubs.ask(b"secret")

    seen, tape, again = recorded(program_async if asynchronous else program)
    assert SECRET in seen
    written = b"".join(
        repr(fact.attributes).encode() + (fact.body.inline or b"" if fact.body else b"")
        for fact in tape.facts()
        if fact.name.startswith("playhead.exchange")
    )
    secrets = (KEY.encode(), b"sent-google", b"sent-field", b"received-cookie", SECRET)
    assert [secret for secret in secrets if secret in written] == []
    _, now = replay(again, tape)
    assert compare(tape, now).divergences == []


@pytest.mark.parametrize("asynchronous", [False, True])
def test_another_request_or_message_is_refused_and_named(asynchronous):
    asked = {"ask": b'{"n": 1}', "message": b'{"text": "as recorded"}'}

    def program(target):
        seen = []
        with grpc.insecure_channel(target) as channel:
            for call in (
                lambda: Stubs(channel).ask(asked["ask"]),
                lambda: list(Stubs(channel).chat(iter([b"{}", asked["message"]]))),
            ):
                try:
                    call()
                except grpc.RpcError as error:
                    seen.append((error.code(), error.details()))
        return seen

    async def program_async(target):
        seen = []

        async def requests():
            yield b"{}"
            yield asked["message"]

        async with grpc.aio.insecure_channel(target) as channel:
            try:
                await Stubs(channel).ask(asked["ask"])
            except grpc.RpcError as error:
                seen.append((error.code(), error.details()))
            try:
                async for _ in Stubs(channel).chat(requests()):
                    pass
            except grpc.RpcError as error:
                seen.append((error.code(), error.details()))
        return seen

    seen, tape, again = recorded(program_async if asynchronous else program)
    assert seen == []
    asked.update(ask=b'{"n": 2}', message=b'{"text": "changed"}')
    [(code, unmatched), (_, changed)], now = replay(again, tape)
    assert code is grpc.StatusCode.INTERNAL
    assert "first difference at $.n: tape 1, now 2" in unmatched
    assert "message 2 is not the one on the tape" in changed
    assert 'message 2 $.text: tape "as recorded", now "changed"' in changed
    report = compare(tape, now)
    assert report.verdict == "blocked"
    paths = [one.difference.path for one in report.divergences if one.difference is not None]
    assert {"$.n", "message 2 $.text"} <= set(paths)


def test_an_interceptor_is_in_front_of_what_is_recorded():
    class Adding(grpc.UnaryUnaryClientInterceptor):
        def intercept_unary_unary(self, continuation, details, request):
            return continuation(details, request + b" and more")

    def program(target):
        channel = grpc.intercept_channel(grpc.insecure_channel(target), Adding())
        with channel:
            return Stubs(channel).ask(b"asked")

    seen, tape, again = recorded(program)
    [exchange] = tape.exchanges().values()
    assert tape.read(exchange.ask.body) == b"asked and more"
    assert replay(again, tape)[0] == seen
