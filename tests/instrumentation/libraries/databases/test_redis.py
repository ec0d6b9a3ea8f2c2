"""Commands over redis-py: recorded, and replayed where nothing may be connected to."""

from __future__ import annotations

import asyncio
import threading

import pytest
import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncioRetry
from redis.backoff import ConstantBackoff
from redis.retry import Retry
from support.servers.redis import RedisServer
from support.tapes.sessions import record, replay

from playhead_core.errors import ExchangeUnmatched
from playhead_core.settings import Settings
from playhead_instrumentation.libraries.redis.resp import Replies
from playhead_replay.report.compare import compare
from playhead_semconv import attributes as a

LEVELS = ["exchanges", "causal", "strict"]
PASSWORD = "hidden-under-the-mat-88"

WAITS_S = 60
"""How long a client waits for an answer. By default redis-py gives a server 5 s, and asks again."""


def same(program, level="causal"):
    """The result of ``program``, which its replay has too; and its tape."""
    result, tape = record(program, settings=Settings(quiet=True, level=level))
    again, now = replay(program, tape)
    assert repr(again) == repr(result)
    assert compare(tape, now).divergences == []
    return result, tape


def failed(ask, *arguments):
    try:
        ask(*arguments)
    except redis.RedisError as error:
        return type(error), str(error)
    raise AssertionError("it did not fail")


def commands(server, **options):
    seen = []
    client = redis.Redis.from_url(server.url, socket_timeout=WAITS_S, **options)
    client.flushdb()
    seen.append(client.set("a", b"\xff\x00", ex=30))
    seen.append(client.get("a") if not options.get("decode_responses") else None)
    with client.pipeline() as together:
        together.incr("n")
        together.hset("h", mapping={"x": 1, "é": "ü" * 70_000})
        together.hgetall("h")
        seen.append(together.execute())
    with client.pipeline(transaction=False) as together:
        together.get("none")
        together.lpush("a", 1)
        seen.append([type(one) for one in together.execute(raise_on_error=False)])
    seen.append(failed(client.lpush, "a", 1))
    seen.append((client.get("none"), client.blpop(["queue"], timeout=0.1)))
    client.zadd("z", {"one": 1, "two": 2.5})
    seen.append((client.zrange("z", 0, -1, withscores=True), client.smembers("none")))
    seen.append(client.register_script("return {KEYS[1], 7, {1, false}}")(keys=["k"]))
    seen.append(client.xadd("s", {"f": "v"}, id="1-1"))
    seen.append(client.xrange("s"))
    with client.lock("lock", timeout=60):
        seen.append(client.exists("lock"))
    client.close()
    seen.append(failed(redis.Redis(port=1, retry=Retry(ConstantBackoff(0.01), 2)).get, "a"))
    return seen


def channels(server):
    seen = []
    client = redis.Redis.from_url(server.url, socket_timeout=WAITS_S)
    with client.pubsub() as heard:
        heard.subscribe("news")
        heard.psubscribe("w*")
        seen += [heard.get_message(timeout=60) for _ in range(2)]
        client.publish("news", "hi")
        client.publish("weather", b"\xff")
        seen += [heard.get_message(timeout=60) for _ in range(2)]
        seen += [heard.get_message(timeout=0.01), heard.get_message()]
        heard.unsubscribe()
        seen.append(heard.get_message(timeout=60))
    client.close()
    return seen


def in_threads(server):
    """What each thread has seen; at *causal* they may note it in another order than it came."""
    seen = [[] for _ in range(4)]
    client = redis.Redis.from_url(server.url, socket_timeout=WAITS_S)
    client.delete("counted")

    def one(number):
        for _ in range(5):
            seen[number].append(client.incr("counted"))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.close()
    return seen


async def awaited(server, **options):
    seen = []
    async with redis.asyncio.Redis.from_url(server.url, socket_timeout=WAITS_S, **options) as client:
        await client.flushdb()
        seen.append((await client.set("a", "1"), await client.get("a"), await client.get("none")))
        async with client.pipeline() as together:
            seen.append(await together.incr("n").hset("h", "x", "ü" * 70_000).hgetall("h").execute())

        async def one():
            for _ in range(3):
                seen.append(await client.incr("counted"))

        await asyncio.gather(*(one() for _ in range(5)))
        try:
            await client.lpush("a", 1)
        except redis.RedisError as error:
            seen.append((type(error), str(error)))
        async with client.pubsub() as heard:
            await heard.subscribe("news")
            seen.append(await heard.get_message(timeout=60))
            await client.publish("news", "hi")
            seen.append(await heard.get_message(timeout=60))
            seen.append(await heard.get_message(timeout=0.01))
        waiting = asyncio.create_task(client.blpop(["queue"], timeout=60))
        while not (await client.info("clients"))["blocked_clients"]:
            pass  # what is cancelled earlier, redis may ask all the same
        try:
            await asyncio.wait_for(waiting, 0.1)
        except TimeoutError as error:
            seen.append(repr(error))
    try:
        await redis.asyncio.Redis(port=1, retry=AsyncioRetry(ConstantBackoff(0.01), 2)).get("a")
    except redis.RedisError as error:
        seen.append((type(error), str(error)))
    return seen


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("protocol", [2, 3])
def test_what_a_program_gets_of_redis_it_gets_again(redis_server, level, protocol):
    same(lambda: commands(redis_server, protocol=protocol), level)
    same(lambda: asyncio.run(awaited(redis_server, protocol=protocol, decode_responses=True)), level)


@pytest.mark.parametrize("level", LEVELS)
def test_messages_of_channels_come_again(redis_server, level):
    same(lambda: channels(redis_server), level)


@pytest.mark.parametrize("level", ["causal", "strict"])
def test_threads_get_their_answers_in_the_recorded_order(redis_server, level):
    same(lambda: in_threads(redis_server), level)


def test_another_command_is_refused_and_the_nearest_is_named(redis_server):
    def asks(name):
        with redis.Redis.from_url(redis_server.url, socket_timeout=WAITS_S) as client:
            return client.get(name)

    _, tape = record(lambda: asks("shoes"))
    with pytest.raises(ExchangeUnmatched, match=r"\$\[0\]\[1\]: tape \"shoes\", now \"boots\""):
        replay(lambda: asks("boots"), tape)


def test_passwords_are_on_no_tape(tmp_path):
    server = RedisServer(PASSWORD)

    def program():
        seen = []
        with redis.Redis.from_url(server.url, password=PASSWORD, socket_timeout=WAITS_S) as client:
            seen.append(client.get("a"))
            seen.append(client.config_set("requirepass", "and-this-one-too-12"))
            seen.append(client.execute_command("AUTH", "default", "and-this-one-too-12"))
            seen.append(client.acl_setuser("guest", passwords="+as-well-as-this-34", enabled=True))
            seen.append(client.config_set("requirepass", PASSWORD))
        return seen

    try:
        result, tape = record(program)
    finally:
        server.stop()
    again, now = replay(program, tape)
    assert again == result
    assert compare(tape, now).divergences == []
    kept = b"".join((fact.body.inline or b"") for fact in tape.facts() if fact.body is not None)
    kept += repr([fact.attributes for fact in tape.facts()]).encode()
    for secret in (PASSWORD, "and-this-one-too-12", "as-well-as-this-34"):
        assert secret.encode() not in kept


def test_a_connection_over_a_socket_file_is_named_by_its_path(redis_server):
    def program():
        with redis.Redis(unix_socket_path=redis_server.path, db=3, socket_timeout=WAITS_S) as client:
            return client.dbsize()

    _, tape = same(program)
    keys = [fact.attributes.get(a.PLAYHEAD_ASK_KEY) for fact in tape.facts()]
    assert f"DBSIZE redis://{redis_server.path}/3" in keys


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_the_end_of_replies_is_found_however_they_are_cut(size):
    said = (
        b"+OK\r\n:1\r\n$-1\r\n$3\r\na\r\n\r\n*2\r\n$1\r\nx\r\n*0\r\n%1\r\n+k\r\n*1\r\n:2\r\n>2\r\n+p\r\n+q\r\n"
        b"|1\r\n+t\r\n:3\r\n_\r\n*-1\r\n$0\r\n\r\n-ERR no\r\n"
    )
    replies = Replies(10)
    pieces = [said[at : at + size] for at in range(0, len(said), size)]
    over = [replies.feed(piece) for piece in pieces]
    assert over == [False] * (len(pieces) - 1) + [True]
    assert replies.failure == b"ERR no"
