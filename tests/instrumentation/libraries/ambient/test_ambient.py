"""Clocks and entropy: programs recorded in a process of their own, replayed in another."""

import asyncio
import copy
import datetime as dt
import json
import os
import pickle
import random
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter

import aiohttp
import httpx
import httpx2
import pytest
import requests
from support.observed.again import again
from support.servers.scripted import ScriptedServer, chat_sse, json_reply, openai_chat
from support.tapes.sessions import record, replay

from playhead_core.facts import Fidelity
from playhead_replay.report.compare import compare
from playhead_semconv import attributes as a
from playhead_semconv import events as e

CLOCKS = """
import datetime as dt, time
from datetime import date, datetime
from time import monotonic as early

class Timer:
    clock = time.perf_counter

class Own(datetime):
    pass

class Day(date):
    pass

class Stamp(datetime):
    @classmethod
    def fromtimestamp(cls, stamp):
        return super().fromtimestamp(stamp, dt.UTC)

east = dt.timezone(dt.timedelta(hours=3))
print(time.time(), time.time_ns(), time.monotonic(), time.monotonic_ns(), early(), Timer().clock())
print(time.perf_counter_ns(), time.localtime(), time.gmtime(), time.ctime(), time.asctime())
print(time.localtime().tm_zone, time.strftime("%H:%M:%S"), time.gmtime(5).tm_sec, time.ctime(None))
print(datetime.now(), datetime.now(east), datetime.now(tz=dt.UTC), datetime.utcnow(), datetime.today())
print(date.today(), repr(Own.now()), repr(Own.now(east)), repr(Own.today()), repr(Own.utcnow()))
print(repr(Day.today()), repr(Stamp.today()))
"""

ENTROPY = """
import os, random, secrets, tempfile, uuid
import numpy, uuid_utils, uuid_utils.compat

print(os.urandom(9), secrets.token_hex(), secrets.randbelow(10**9), uuid.uuid1(), uuid.uuid4())
print(random.random(), random.choice(range(10**9)), random.Random().random())
print(random.SystemRandom().random())
random.seed(); print(random.random())
random.seed(7); print(random.random())
with tempfile.NamedTemporaryFile() as file:
    print(file.name)
with tempfile.TemporaryDirectory() as folder:
    print(folder)
print(numpy.random.random(), numpy.random.default_rng().random(), numpy.random.RandomState().rand())
print(uuid_utils.uuid7(), uuid_utils.compat.uuid7(), uuid_utils.uuid4())
print(type(uuid_utils.uuid4()).__module__)
"""

CONCURRENT = """
import asyncio, threading, time, uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

def read(number):
    return number, uuid.uuid4(), time.time(), datetime.now(), time.monotonic_ns()

async def task(number):
    first = read(number)
    await asyncio.sleep(0)
    return first, read(number)

async def main():
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(task(number)) for number in range(8)]
    print([one.result() for one in tasks])
    print(await asyncio.to_thread(read, 1))

found = {}
threads = [threading.Thread(target=lambda n=n: found.update({n: read(n)})) for n in range(8)]
for one in threads: one.start()
for one in threads: one.join()
print([found[n] for n in range(8)])
with ThreadPoolExecutor(4) as pool:
    print(list(pool.map(read, range(12))))
asyncio.run(main())
"""

MOVED_TIME = """
import time, uuid
from datetime import date, datetime, timezone
import freezegun, time_machine

then = datetime(2001, 2, 3, 4, 5, 6, tzinfo=timezone.utc)
with time_machine.travel(then, tick=False):
    assert time.time() == then.timestamp() and datetime.now(timezone.utc) == then
    assert datetime.utcnow() == then.replace(tzinfo=None) and date.today() == date(2001, 2, 3)
    assert time.gmtime()[:6] == (2001, 2, 3, 4, 5, 6) and time.strftime("%Y-%m-%d") == "2001-02-03"
    with time_machine.travel(0, tick=False):
        assert time.time_ns() == 0
    assert time.time() == then.timestamp()
    print(uuid.uuid1())
with time_machine.travel(then):
    print(datetime.now(), time.time_ns())
assert datetime.now().year > 2025 and time.time() > 1.7e9

with freezegun.freeze_time("2010-01-02 03:04:05") as frozen:
    assert datetime.now() == datetime(2010, 1, 2, 3, 4, 5) and time.time() == 1262401445.0
    assert isinstance(datetime.now(), datetime) and date.today() == date(2010, 1, 2)
    frozen.tick(5)
    assert time.gmtime()[5] == 10 and time.strftime("%S") == "10"
    before = time.monotonic()
    frozen.tick(2)
    assert time.monotonic() == before + 2
    assert uuid.uuid1().time // 10**7 == uuid.uuid1().time // 10**7
with freezegun.freeze_time("2010-01-02", tick=True):
    print(datetime.now(), time.time())
assert datetime.now().year > 2025 and time.time() > 1.7e9
print(datetime.now(), time.time())
"""

MODELS = """
import pickle, time, uuid
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from pydantic import BaseModel, Field

class Model(BaseModel):
    at: datetime = Field(default_factory=datetime.now)
    utc: datetime = Field(default_factory=lambda: datetime.now(timezone.utc))
    number: float = Field(default_factory=time.time)
    day: date = Field(default_factory=date.today)
    id: uuid.UUID = Field(default_factory=uuid.uuid4)

@dataclass
class Record:
    at: datetime = field(default_factory=datetime.now)
    number: float = field(default_factory=time.time)

model = Model()
assert Model.model_validate_json(model.model_dump_json()) == model
assert pickle.loads(pickle.dumps(model)) == model
assert type(model.at) is datetime and type(model.day) is date
print(model, Record())
"""

FORKING = """
import os, sys, time, uuid
print(uuid.uuid4(), time.time(), flush=True)
if os.fork() == 0:
    uuid.uuid4(), time.time()
    os._exit(0)
os.wait()
print(uuid.uuid4(), time.time())
"""

AGENT = """
import asyncio, datetime, random, time, uuid
from openai import AsyncOpenAI, OpenAI

def ask(**more):
    content = f"{uuid.uuid4()} at {datetime.datetime.now()}, {random.random()}, {time.time()}"
    return {"model": "m", "messages": [{"role": "user", "content": content}], **more}

print(OpenAI().chat.completions.create(**ask()).choices[0].message.content, time.monotonic())

async def main():
    client = AsyncOpenAI()
    for _ in range(2):
        async for chunk in await client.chat.completions.create(**ask(stream=True)):
            if chunk.choices and chunk.choices[0].delta.content:
                print(chunk.choices[0].delta.content, time.time_ns())

asyncio.run(main())
"""


def replayed(folder, source, **environ):
    """A program recorded and replayed: what it printed, the report, and the tape of the replay."""
    done = again(folder, source, **environ)
    assert done.recorded.returncode == 0, done.recorded.stderr
    assert done.replayed.returncode == 0, done.replayed.stderr
    assert done.replayed.stdout == done.recorded.stdout
    return done.recorded.stdout, done.report, done.now


def kinds(tape, fidelity=None):
    """How many reads of each kind are on a tape."""
    return Counter(
        fact.attributes[a.PLAYHEAD_READ_KIND]
        for fact in tape.facts()
        if fact.name == e.PLAYHEAD_READ and fact.attributes.get(a.PLAYHEAD_FIDELITY) == fidelity
    )


@pytest.mark.parametrize(
    "source",
    [CLOCKS, ENTROPY, CONCURRENT, MOVED_TIME, MODELS, FORKING],
    ids=lambda text: text[:40].strip(),
)
def test_a_replay_prints_what_was_printed(source, tmp_path):
    _, report, now = replayed(tmp_path, source, PLAYHEAD_BOUNDARIES="+secrets")
    assert report.verdict == "identical", "\n".join(report.lines())
    assert not kinds(now, Fidelity.LIVE)


def test_reads_are_counted_in_the_report(tmp_path):
    _, report, now = replayed(
        tmp_path, "import os, time\nprint(time.time(), time.time(), os.urandom(3))"
    )
    assert kinds(now, Fidelity.EXACT) == {
        "clock/time.time": 2,
        "entropy/os.urandom": 1,
        "entropy/random.state": 1,
    }
    assert report.reads == {"clock": {Fidelity.EXACT: 2}, "entropy": {Fidelity.EXACT: 1}}
    assert "reads: clock exact 2; entropy exact 1" in list(report.lines())
    assert report.to_json()["reads"]["clock"]["exact"] == 2


def test_an_agent_asks_the_same_again_with_its_provider_gone(tmp_path):
    whole = openai_chat.completion("hello there")
    with ScriptedServer() as server:
        server.script([json_reply(whole), chat_sse(whole), chat_sse(whole)])
        _, report, now = replayed(tmp_path, AGENT, OPENAI_BASE_URL=server.openai_url)
    assert report.verdict == "identical", "\n".join(report.lines())
    assert report.boundaries["http"] == {Fidelity.EXACT: 3}
    # Only what the agent reads: nothing of SDK, HTTP stack, asyncio; and what anyio asks its loop.
    not_counted = ("time_ns", "loop.time")
    assert {
        kind: count
        for kind, count in kinds(now, Fidelity.EXACT).items()
        if not kind.endswith(not_counted)
    } == {
        "clock/time.time": 3,
        "clock/time.monotonic": 1,
        "clock/datetime.now": 3,
        "entropy/os.urandom": 3,
        "entropy/random.state": 1,
    }


def test_what_the_tape_does_not_hold_is_answered_by_the_world_and_said():
    before = time.monotonic()
    _, tape = record(lambda: [time.time(), time.monotonic()])

    def more():
        return [time.time(), time.time(), time.monotonic(), time.monotonic()]

    (first, second, begin, end), now = replay(more, tape)
    assert first < second
    assert before <= begin <= end <= time.monotonic()
    assert kinds(now, Fidelity.LIVE) == {"clock/time.time": 1, "clock/time.monotonic": 1}
    report = compare(tape, now)
    assert (report.verdict, report.exit_code) == ("diverged", 1)
    assert [(one.kind, one.what, one.detail) for one in report.divergences] == [
        ("live", "live time.time in main", "the tape holds 1, the program read 1 more"),
        ("live", "live time.monotonic in main", "the tape holds 1, the program read 1 more"),
    ]
    assert report.reads == {"clock": {Fidelity.EXACT: 2, Fidelity.LIVE: 2}}


def test_reads_less_than_the_tape_are_counted():
    _, tape = record(lambda: [time.time(), time.time()])
    _, now = replay(time.time, tape)
    assert compare(tape, now).reads == {"clock": {Fidelity.EXACT: 1, Fidelity.UNUSED: 1}}


def test_types_and_names_stay():
    _, tape = record(lambda: None)
    assert type(dt.datetime.now()) is dt.datetime
    assert issubclass(dt.datetime, dt.date)
    assert dt.datetime.__module__ == "datetime"
    assert pickle.loads(pickle.dumps(time.time)) is time.time
    assert pickle.loads(pickle.dumps(os.urandom)) is os.urandom
    assert copy.deepcopy(time.monotonic) is time.monotonic
    assert pickle.loads(pickle.dumps(dt.datetime.now)) == dt.datetime.now
    assert pickle.loads(pickle.dumps(dt.datetime.now(dt.UTC))).tzinfo is dt.UTC
    assert type(random.Random()) is random.Random
    assert uuid.uuid1().version == 1
    assert not kinds(tape)["clock/datetime.now"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: dt.datetime.now("UTC"),
        lambda: dt.datetime.now(1, 2),
        lambda: dt.date.today(1),
        lambda: time.time(1),
        lambda: time.localtime("x"),
        lambda: time.strftime(),
        lambda: os.urandom(-1),
        lambda: os.urandom("x"),
    ],
)
def test_a_wrong_call_is_as_wrong_as_ever(call):
    def wrong():
        with pytest.raises((TypeError, ValueError)) as caught:
            call()
        return type(caught.value)

    expected, _ = record(wrong)
    assert expected in (TypeError, ValueError)


def test_a_zone_that_fails_does_so_again_and_shifts_nothing():
    class Broken(dt.tzinfo):
        def fromutc(self, dt):
            raise ArithmeticError("no such hour")

    def program():
        with pytest.raises(ArithmeticError):
            dt.datetime.now(Broken())
        return dt.datetime.now(dt.UTC)

    first, tape = record(program)
    assert replay(program, tape)[0] == first


def test_the_loop_and_its_locks_read_the_real_clock():
    def program():
        condition = threading.Condition()
        with condition:
            condition.wait(0.01)
        return json.dumps(None)

    _, tape = record(program)
    assert kinds(tape) == {"entropy/random.state": 1}


def test_a_seeded_program_draws_what_it_draws_unrecorded(tmp_path):
    source = "import random\nrandom.seed(3)\n{}print([random.random() for _ in range(3)])"
    asking = (
        "from opentelemetry import trace\nwith trace.get_tracer('x').start_as_current_span('y'): pass\n"
    )
    alone = subprocess.run([sys.executable, "-c", source.format("")], capture_output=True, text=True)
    printed, _, _ = replayed(tmp_path, source.format(asking))
    assert printed == alone.stdout


def test_a_form_has_the_same_line_between_its_fields_again():
    async def sent_async():
        form = aiohttp.FormData()
        form.add_field("file", b"text", filename="a.txt")
        async with aiohttp.ClientSession() as session, session.post(server.url, data=form) as answer:
            return await answer.json()

    def sent():
        answers = [send(server.url, files={"file": b"text"}).json() for send in senders]
        return [*answers, asyncio.run(sent_async())]

    senders = httpx.post, httpx2.post, requests.post
    with ScriptedServer() as server:
        server.script([json_reply({"number": number}) for number in range(4)])
        said, tape = record(sent)
        borders = [request.body.partition(b"\r\n")[0] for request in server.requests]
    again, now = replay(sent, tape)
    assert again == said == [{"number": number} for number in range(4)]
    assert len(set(borders)) == 4
    assert kinds(tape)["entropy/os.urandom"] == 4
    report = compare(tape, now)
    assert report.verdict == "identical", "\n".join(report.lines())
    assert report.boundaries["http"] == {Fidelity.EXACT: 4}
