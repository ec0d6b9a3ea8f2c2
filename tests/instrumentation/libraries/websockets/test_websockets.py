"""WebSockets of the websockets library: recorded, and replayed with the server gone."""

import asyncio
import json
import threading
import time

import pytest
import websockets
from support.servers.websocket_server import SECRET, WebSocketServer
from support.tapes.sessions import record, replay
from websockets.asyncio.client import connect
from websockets.sync.client import connect as connect_sync
from websockets.sync.client import reconnect

from playhead_core.settings import Settings
from playhead_replay.report.compare import compare
from playhead_semconv import attributes as a
from playhead_semconv import events as e

pytestmark = pytest.mark.filterwarnings("ignore:connect\\(\\) must be used:DeprecationWarning")

LEVELS = ["causal", "strict"]
KEY = "sk-sent0123456789abcdefghij"


def described(error):
    response = getattr(error, "response", None)
    body = None if response is None else bytes(response.body)
    return type(error).__name__, str(error), repr(error.__cause__), body


async def talk(url):
    """Everything that goes well."""
    seen = []
    options = {"subprotocols": ["realtime"], "additional_headers": {"Authorization": f"Bearer {KEY}"}}
    async with connect(url + "/chat?model=m", **options) as socket:
        seen.append((type(socket), socket.subprotocol, socket.response.status_code))
        seen.append((socket.remote_address, socket.local_address, socket.request.path))
        await socket.send("hello")
        seen.append(await socket.recv())
        await socket.send(b"\x00\x01" * 50_000)
        seen.append(await socket.recv())
        for word in ("burst", "burst", "fragments", "ping"):
            await socket.send(word)
            seen.append(await socket.recv())
        await socket.send(["in ", "pieces"])
        await socket.send("large")
        await (await socket.ping())
        await socket.send("bye")
        try:
            async for message in socket:
                seen.append(message)
        except websockets.ConnectionClosed as closed:
            seen.append(repr(closed))
    return [*seen, socket.close_code, socket.close_reason, socket.state.name]


def talk_sync(url):
    seen = []
    options = {"subprotocols": ["realtime"], "additional_headers": {"Authorization": f"Bearer {KEY}"}}
    with connect_sync(url + "/chat?model=m", **options) as socket:
        seen.append((type(socket), socket.subprotocol, socket.response.status_code))
        seen.append((socket.remote_address, socket.local_address, socket.request.path))
        socket.send("hello")
        seen.append(socket.recv())
        socket.send(b"\x00\x01" * 50_000)
        seen.append(socket.recv())
        for word in ("burst", "burst", "fragments", "ping"):
            socket.send(word)
            seen.append(socket.recv())
        socket.send(["in ", "pieces"])
        socket.send("large")
        socket.ping().wait()
        socket.send("bye")
        try:
            for message in socket:
                seen.append(message)
        except websockets.ConnectionClosed as closed:
            seen.append(repr(closed))
    return [*seen, socket.close_code, socket.close_reason, socket.state.name]


async def fail(url):
    """Everything that goes wrong."""
    seen = []
    for word in ("drop", "end", "garbage"):
        async with connect(url + "/chat") as socket:
            await socket.send(word)
            try:
                await socket.recv()
            except websockets.ConnectionClosed as error:
                seen.append(described(error))
    refused = url.replace(url.rpartition(":")[2], "9")
    for where in (url + "/denied", url + "/noise", url + "/hangup", refused, url.replace("ws:", "wss:")):
        try:
            async with connect(where):
                seen.append("connected")
        except Exception as error:
            seen.append(described(error))
    async with connect(url + "/moved") as socket:
        await socket.send("redirected")
        seen.append(await socket.recv())
    rounds = 0
    async for socket in connect(url + "/flaky", reconnect_delays=lambda: iter([0] * 20)):
        try:
            await socket.send("again")
            seen.append(await socket.recv())
            rounds += 1
            if rounds == 3:
                break
            await socket.send("drop")
            await socket.recv()
        except websockets.ConnectionClosed:
            continue
    return seen


def fail_sync(url):
    seen = []
    for word in ("drop", "end", "garbage"):
        with connect_sync(url + "/chat") as socket:
            socket.send(word)
            try:
                socket.recv()
            except websockets.ConnectionClosed as error:
                seen.append(described(error))
    refused = url.replace(url.rpartition(":")[2], "9")
    for where in (url + "/denied", url + "/noise", url + "/hangup", refused, url.replace("ws:", "wss:")):
        try:
            with connect_sync(where):
                seen.append("connected")
        except Exception as error:
            seen.append(described(error))
    with connect_sync(url + "/moved") as socket:
        socket.send("redirected")
        seen.append(socket.recv())
    rounds = 0
    for socket in reconnect(url + "/flaky", reconnect_delays=lambda: iter([0] * 20)):
        try:
            socket.send("again")
            seen.append(socket.recv())
            rounds += 1
            if rounds == 3:
                break
            socket.send("drop")
            socket.recv()
        except websockets.ConnectionClosed:
            continue
    return seen


async def many(url):
    """Identical questions at once, on connections of their own; who answers first goes on first."""
    order = []

    async def one(name):
        async with connect(url + "/chat") as socket:
            for _ in range(5):
                await socket.send("same")
                order.append((name, await socket.recv()))

    await asyncio.gather(*(one(name) for name in range(8)))
    return order


def many_sync(url):
    order = []

    def one(name):
        with connect_sync(url + "/chat") as socket:
            for _ in range(5):
                socket.send("same")
                order.append((name, socket.recv()))

    threads = [threading.Thread(target=one, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return order


async def concurrent(url):
    """Receiving while sending, and giving up waiting."""
    seen = []
    async with connect(url + "/chat") as socket:

        async def receive():
            while len(seen) < 10:
                seen.append(await socket.recv())

        receiving = asyncio.create_task(receive())
        for number in range(10):
            await socket.send(f"number {number}")
            await asyncio.sleep(0)
        await receiving
        await socket.send("silence")
        try:
            await asyncio.wait_for(socket.recv(), 0.05)
        except TimeoutError:
            seen.append("timeout")
        await socket.send("after")
        seen.append(await socket.recv())
    return seen


def give_up_sync(url):
    """An answer that does not come, and a connection closed while another thread listens."""
    seen = []

    def listen(socket):
        try:
            seen.append(socket.recv())
        except websockets.ConnectionClosed as closed:
            seen.append((repr(closed), repr(closed.__cause__)))

    try:
        with connect_sync(url + "/silent", open_timeout=0.2):
            seen.append("connected")
    except TimeoutError as error:
        seen.append(described(error))
    seen.append(threading.Event().wait(0.01))
    with connect_sync(url + "/chat", close_timeout=0.05) as socket:
        socket.send("deaf")
        listening = threading.Thread(target=listen, args=(socket,))
        listening.start()
    seen.append((socket.close_code, socket.state.name))
    listening.join(60)
    return [*seen, listening.is_alive()]


def run(program):
    def called(url):
        made = program(url)
        return asyncio.run(made) if asyncio.iscoroutine(made) else made

    return called


PROGRAMS = [talk, talk_sync, fail, fail_sync, many, many_sync, concurrent, give_up_sync]


def recorded(program, level="causal"):
    called = run(program)
    with WebSocketServer() as server:
        url = server.url("")
        seen, tape = record(lambda: called(url), settings=Settings(quiet=True, level=level))
    return seen, tape, lambda: called(url)


def masked(text):
    return repr(text).replace("received-cookie-0123456789", "[redacted]")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_replay_is_identical_with_the_server_gone(program, level):
    seen, tape, again = recorded(program, level)
    replayed, now = replay(again, tape)
    if level == "causal" and program in (many_sync, give_up_sync):  # the order of threads is not held
        seen, replayed = sorted(seen, key=repr), sorted(replayed, key=repr)
    assert masked(replayed) == masked(seen)
    report = compare(tape, now)
    assert report.divergences == []
    assert report.verdict == "identical"


@pytest.mark.parametrize(
    "program", [talk_sync, fail_sync, many_sync, give_up_sync], ids=lambda program: program.__name__
)
def test_threads_of_the_library_have_turns_and_nobody_loses_one(program):
    _, tape, _ = recorded(program, "strict")
    assert [fact.attributes for fact in tape.named(e.PLAYHEAD_TURN_LOST)] == []


def test_closing_does_not_wait_for_its_time_limit():
    _, tape, _ = recorded(many_sync, "strict")
    assert [fact for fact in tape.named(e.PLAYHEAD_WAKE) if fact.exchange.kind == "join"] == []


async def refused(url):
    with pytest.raises(websockets.InvalidStatus) as failed:
        await connect(url + "/denied")
    return described(failed.value)


def refused_sync(url):
    with pytest.raises(websockets.InvalidStatus) as failed:
        connect_sync(url + "/denied")
    return described(failed.value)


async def unanswered(url):
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await connect(url + "/silent")


@pytest.mark.parametrize(
    ("program", "level"),
    [
        (refused, "exchanges"),
        (refused_sync, "exchanges"),
        (unanswered, "strict"),
        (unanswered, "exchanges"),
    ],
)
def test_a_handshake_that_fails_ends_again_as_it_did(program, level):
    seen, tape, again = recorded(program, level)
    replayed, now = replay(again, tape)
    assert replayed == seen
    assert compare(tape, now).divergences == []


@pytest.mark.parametrize("client", ["asyncio", "sync"])
def test_the_other_side_had_closed_when_the_program_does(client):
    waits = True

    async def program(url):
        socket = await connect(url + "/chat")
        await socket.send("bye")
        while waits and socket.state.name == "OPEN":
            await asyncio.sleep(0)
        await socket.close(1000)
        return socket.close_code, socket.close_reason

    def program_sync(url):
        socket = connect_sync(url + "/chat")
        socket.send("bye")
        while waits and socket.state.name == "OPEN":
            time.sleep(0)
        socket.close(1000)
        return socket.close_code, socket.close_reason

    seen, tape, again = recorded(program if client == "asyncio" else program_sync, "exchanges")
    waits = False  # a replay goes on as soon as it can
    replayed, now = replay(again, tape)
    assert (replayed, seen) == ((4001, "see you"), (4001, "see you"))
    assert compare(tape, now).divergences == []


def test_the_tape_holds_messages_as_the_program_has_them():
    _, tape, _ = recorded(talk)
    [exchange] = tape.exchanges().values()
    assert exchange.ask.key.startswith("GET ws://127.0.0.1:")
    assert exchange.ask.key.endswith("/chat?model=m")
    assert exchange.head[a.HTTP_RESPONSE_STATUS_CODE] == 101
    assert exchange.head[a.PLAYHEAD_WEBSOCKET_SUBPROTOCOL] == "realtime"
    kinds = [sent.attributes[a.PLAYHEAD_WEBSOCKET_OPCODE] for sent in exchange.sent]
    assert kinds[:2] == ["text", "binary"]
    assert kinds[6:9] == ["text", "continuation", "continuation"]
    assert "ping" in kinds
    came = [part.attributes[a.PLAYHEAD_WEBSOCKET_OPCODE] for part in exchange.parts]
    assert came[0] == "text" and "continuation" in came and "pong" in came and "close" in came
    assert [part.data.size for part in exchange.parts][1] == 100_000
    assert exchange.end is not None and exchange.end.how == "complete"


def test_credentials_do_not_reach_the_tape():
    key, cookie = KEY.encode(), b"received-cookie-0123456789"

    async def program(url):
        headers = {"Authorization": f"Bearer {KEY}", "Cookie": "id=sent-cookie-0123456789"}
        async with connect(url + "/chat?api_key=sent-query-0123", additional_headers=headers) as socket:
            await socket.send(json.dumps({"session_token": "sent-field-0123456789"}))
            await socket.recv()
            await socket.send("secret")
            answer = await socket.recv()
        try:
            await connect(url + "/denied")
        except websockets.InvalidStatus as error:
            return answer, error.response.headers["Set-Cookie"]

    seen, tape, again = recorded(program)
    assert SECRET in seen[0]
    written = b"".join(
        repr(fact.attributes).encode() + (fact.body.inline or b"" if fact.body else b"")
        for fact in tape.facts()
        if fact.name.startswith("playhead.exchange")
    )
    for secret in (key, cookie, b"sent-cookie", b"sent-query", b"sent-field", SECRET.encode()):
        assert secret not in written
    _, now = replay(again, tape)
    assert list(compare(tape, now).divergences) == []


def test_a_credential_over_two_fragments_or_messages_does_not_reach_the_tape():
    text = '{"session_token": "sent-field-0123456789", "plain": "as it was"}'

    async def program(url):
        async with connect(url + "/chat") as socket:
            await socket.send([text[:26], text[26:40], text[40:]])
            await socket.recv()
            for piece in (text[:26], text[26:]):
                await socket.send(piece)
                await socket.recv()

    _, tape, again = recorded(program)
    [exchange] = tape.exchanges().values()
    sent = [part.data.inline or b"" for part in exchange.sent]
    assert b"".join(sent[:3]) == b'{"session_token": "[redacted]", "plain": "as it was"}'
    assert b"as it was" in b"".join(sent[3:])
    assert not any(piece in b"".join(sent) for piece in (b"sent-f", b"ield-0", b"123456789"))
    _, now = replay(again, tape)
    assert list(compare(tape, now).divergences) == []


@pytest.mark.parametrize("client", ["asyncio", "sync"])
def test_another_message_is_refused_and_named(client):
    messages = [{"n": 1}, {"n": 2, "text": "as recorded"}]

    async def program(url):
        async with connect(url + "/chat") as socket:
            for message in messages:
                await socket.send(json.dumps(message))
                await socket.recv()

    def program_sync(url):
        with connect_sync(url + "/chat") as socket:
            for message in messages:
                socket.send(json.dumps(message))
                socket.recv()

    _, tape, again = recorded(program if client == "asyncio" else program_sync)
    messages[1] = {"n": 2, "text": "changed"}
    failed = {}

    def caught():
        try:
            again()
        except Exception as error:
            failed["text"] = str(error)

    _, now = replay(caught, tape)
    assert failed["text"].splitlines() == [
        "error[exchange-unmatched]: message 2 is not the one on the tape",
        'cause: first difference at message 2 $.text: tape "as recorded", now "changed"',
    ]
    report = compare(tape, now)
    assert report.verdict == "blocked"
    first = report.first_divergence
    assert first is not None and first.difference is not None
    assert (first.kind, first.difference.path) == ("blocked", "message 2 $.text")


@pytest.mark.parametrize("client", ["asyncio", "sync"])
def test_waiting_for_more_than_was_recorded_is_refused(client):
    more = False

    async def program(url):
        async with connect(url + "/chat") as socket:
            await socket.send("hello")
            await socket.recv()
            if more:
                await socket.recv()

    def program_sync(url):
        with connect_sync(url + "/chat") as socket:
            socket.send("hello")
            socket.recv()
            if more:
                socket.recv()

    _, tape, again = recorded(program if client == "asyncio" else program_sync)
    more = True

    def caught():
        with pytest.raises(websockets.ConnectionClosedError) as failed:
            again()
        return failed.value.__cause__

    cause, now = replay(caught, tape)
    assert "nothing comes before message 2 is sent" in str(cause)
    assert compare(tape, now).verdict == "blocked"


def test_a_connection_that_was_never_recorded_is_refused():
    _, tape, _ = recorded(talk)

    def program():
        with pytest.raises(Exception, match="the tape has no answer to GET ws:"):
            asyncio.run(elsewhere())

    async def elsewhere():
        await connect("ws://127.0.0.1:9/other")

    _, now = replay(program, tape)
    assert compare(tape, now).verdict == "blocked"


def test_pings_of_the_library_are_on_no_tape():
    async def program(url):
        async with connect(url + "/chat", ping_interval=0.01) as socket:
            while socket.latency == 0:
                await asyncio.sleep(0.01)
            await socket.send("hello")
            return await socket.recv()

    called = run(program)
    with WebSocketServer() as server:
        _, tape = record(lambda: called(server.url("")))
    [exchange] = tape.exchanges().values()
    kinds = {part.attributes[a.PLAYHEAD_WEBSOCKET_OPCODE] for part in (*exchange.parts, *exchange.sent)}
    assert kinds == {"text", "close", "eof"}
    lanes = [fact for fact in tape.facts() if fact.name == e.PLAYHEAD_LANE]
    assert len(lanes) == 2


def test_a_machine_that_is_slow_opens_a_recorded_connection_all_the_same():
    """The time that the program gives is over before the replay begins to open it."""
    given_s = 10.0

    def program(url):
        with connect_sync(url + "/chat", open_timeout=given_s) as socket:
            return socket.state.name

    def waits(url):
        with pytest.raises(TimeoutError):
            connect_sync(url + "/silent", open_timeout=min(given_s, 0.1))

    for made in (program, waits):
        given_s = 10.0
        seen, tape, again = recorded(made)
        given_s = 0.0
        replayed, now = replay(again, tape)
        assert (replayed, compare(tape, now).divergences) == (seen, [])
