"""Runs a program that uses many boundaries: unrecorded, and recorded by a recorder with a defect.

::

    python breaking_program.py LEVEL HTTP_URL WEBSOCKET_URL GRPC_TARGET {each|all}

Each case runs in a fork of its own. Prints one JSON object per case on standard output: its name, and
the program's output if it differs from the output without recording.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import datetime
import functools
import inspect
import json
import logging
import os
import platform
import queue
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import aiohttp
import grpc
import grpc.aio
import httpx
import openai
import requests
import websockets.asyncio.client
import websockets.sync.client

from playhead_instrumentation.patching import patches

PATIENCE_S = 60
TYPED = b"first line\nsecond line\n"


# --- the program ---


def blocking(url: str, socket_url: str, target: str) -> None:
    for ask in (httpx.post, requests.post):
        answer = ask(url, json={"question": "what"}, timeout=PATIENCE_S)
        print(ask.__module__, answer.status_code, answer.json())
    with httpx.stream("POST", url, content=iter([b"a", b"b"])) as streamed:
        print(b"".join(streamed.iter_bytes()))
    asked = urllib.request.Request(url, b"{}", {"content-type": "application/json"})
    with urllib.request.urlopen(asked, timeout=PATIENCE_S) as response:
        print(response.status, response.read())
    client = openai.OpenAI(base_url=url, api_key="x", max_retries=0)
    print(client.chat.completions.create(model="m", messages=[]).model_extra)
    try:
        httpx.get("http://127.0.0.1:9/")
    except httpx.ConnectError as error:
        print(type(error))
    with websockets.sync.client.connect(f"{socket_url}/chat") as connection:
        connection.send("hello")
        print(type(connection.recv()))
    with grpc.insecure_channel(target) as channel:
        print(type(channel.unary_unary("/test.Service/Ask")(b"what", timeout=PATIENCE_S)))
        print(len(list(channel.unary_stream("/test.Service/List")(b"2", timeout=PATIENCE_S))))
        try:
            channel.unary_unary("/test.Service/Ask")(b"fail", timeout=PATIENCE_S)
        except grpc.RpcError as error:
            print(error.code(), error.details())


async def asynchronous(url: str, socket_url: str, target: str) -> None:
    async with httpx.AsyncClient() as client:
        print((await client.post(url, json={})).json())
    async with aiohttp.ClientSession() as session, session.post(url, json={}) as answer:
        print(answer.status, await answer.json())
    async with websockets.asyncio.client.connect(f"{socket_url}/chat") as connection:
        await connection.send("hello")
        print(type(await connection.recv()))
    async with grpc.aio.insecure_channel(target) as channel:
        print(type(await channel.unary_unary("/test.Service/Ask")(b"what")))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(asyncio.sleep(0.001, number)) for number in range(3)]
    print([task.result() for task in tasks], len(set(tasks)))
    print(
        sorted(
            [await one for one in asyncio.as_completed([asyncio.sleep(0, "b"), asyncio.sleep(0, "a")])]
        )
    )
    try:
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()
    except TimeoutError as error:
        print(repr(error))
    print(await asyncio.to_thread(len, "four"))
    child = await asyncio.create_subprocess_exec("echo", "async", stdout=subprocess.PIPE)
    print(await child.communicate(), child.returncode)


def machine() -> None:
    print(type(time.time()), time.monotonic() <= time.monotonic(), time.strftime("%Y", time.gmtime(0)))
    print(type(datetime.datetime.now()), datetime.datetime.now(datetime.UTC).tzinfo)
    print(type(datetime.date.today()), datetime.datetime.fromtimestamp(0, datetime.UTC))
    print(
        len(os.urandom(7)), uuid.uuid4().version, uuid.uuid1().version, len(random.Random().randbytes(3))
    )
    random.seed(3)
    print(random.random(), random.getrandbits(9), random.Random(4).random())
    print(
        os.getpid() == os.getpid(), socket.gethostname() == platform.node(), os.isatty(0), os.uname()[0]
    )
    print(sys.stdin.readline(), input(), sys.stdin.read())
    try:
        input()
    except EOFError as error:
        print(repr(error))
    record = logging.LogRecord("x", 10, "f", 1, "said %s", ("this",), None)
    print(record.getMessage(), type(record.created))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.txt")
        with open(path, "w") as file:
            file.write("text")
        print(os.stat(path).st_size, os.listdir(folder), open(path).read())
        with sqlite3.connect(os.path.join(folder, "a.db")) as database:
            database.execute("create table t (n)")
            database.execute("insert into t values (abs(random()) >= 0)")
            print(database.execute("select n, typeof(current_timestamp) from t").fetchall())
        database.close()
        try:
            open(os.path.join(folder, "absent"))
        except FileNotFoundError as error:
            print(error.errno)


def threads() -> None:
    seen: list[int] = []
    workers = [threading.Thread(target=seen.append, args=(number,)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(PATIENCE_S)
    print(sorted(seen), len(set(workers)))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(pow, number, 2) for number in range(4)]
        print(sorted(job.result() for job in concurrent.futures.as_completed(jobs)), len(set(jobs)))
    waiting: queue.Queue[int] = queue.Queue()
    try:
        waiting.get(timeout=0.001)
    except queue.Empty as error:
        print(repr(error))
    lock, simple = threading.RLock(), queue.SimpleQueue[int]()
    with lock, threading.Lock():
        simple.put(5)
    print(simple.get(), threading.Event().wait(0.001), threading.Condition().acquire())
    time.sleep(0.001)


def processes() -> None:
    done = subprocess.run(["sh", "-c", "cat; exit 3"], input=b"in", capture_output=True)
    print(done.returncode, done.stdout)
    with subprocess.Popen(["echo", "read"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        print(child.stdout.read(), child.wait(PATIENCE_S))
    print(os.waitstatus_to_exitcode(os.system("exit 4")))
    pid = os.fork()
    if not pid:
        os._exit(5)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    try:
        subprocess.run(["/no/such/program"])
    except FileNotFoundError as error:
        print(error.filename)


def program(words: list[str]) -> None:
    machine()
    threads()
    processes()
    blocking(*words)
    asyncio.run(asynchronous(*words))
    try:
        sys.exit(7)
    except SystemExit as error:
        print("exit", error.code, flush=True)


# --- what is broken ---


class Broken(Exception):
    """An exception that no code expects."""


looked_up: dict[str, None] = {}
"""Attributes that a patch has requested."""
layered: dict[str, None] = {}
"""Layers that were put before a function."""


class Breaks:
    """The defects in this process."""

    absent: Callable[[str], bool] = staticmethod(lambda name: False)
    fails: Callable[[str], bool] = staticmethod(lambda name: False)
    when = ""
    """A layer fails ``before`` or ``after`` it has called the next one."""


_required, _around = patches.required, patches.Patches.around


def _name(owner: Any, name: str) -> str:
    home = owner if isinstance(owner, type) or inspect.ismodule(owner) else type(owner)
    return f"{getattr(home, '__module__', '')}.{home.__name__}.{name}".lstrip(".")


def required(owner: Any, name: str) -> Any:
    said = _name(owner, name)
    looked_up[said] = None
    if Breaks.absent(said):
        raise patches.Unpatchable(f"no {said}")
    return _required(owner, name)


def around(self: Any, owner: Any, name: str, layer: Any, **more: Any) -> None:
    inner = layer.func if isinstance(layer, functools.partial) else layer
    said = f"{_name(owner, name)} {inner.__module__.rpartition('.')[2]}.{inner.__name__}"
    layered[said] = None
    # The gate counts loops that wait to begin: a layer that fails after the call has begun.
    relied_on = layer if name == "run_forever" and Breaks.when == "after" else None
    _around(
        self,
        owner,
        name,
        _failing(layer, Breaks.when, relied_on) if Breaks.fails(said) else layer,
        **more,
    )


@functools.cache
def _failing(layer: Any, when: str, relied_on: Any) -> Any:
    async def failing_async(following: Any, *args: Any, **kwargs: Any) -> Any:
        if relied_on is not None:
            await relied_on(following, *args, **kwargs)
        elif when == "after":
            await following(*args, **kwargs)
        raise Broken

    def failing(following: Any, *args: Any, **kwargs: Any) -> Any:
        if relied_on is not None:
            relied_on(following, *args, **kwargs)
        elif when == "after":
            following(*args, **kwargs)
        raise Broken

    return failing_async if inspect.iscoroutinefunction(layer) else failing


def broken(*_: Any, **__: Any) -> Any:
    raise Broken


def places() -> Iterator[tuple[Any, str]]:
    """Our functions that layers call."""
    from playhead_exporter.spool.spool import Spool
    from playhead_instrumentation.libraries.http import exchange as http_exchange
    from playhead_instrumentation.recorder import driver
    from playhead_instrumentation.redaction import Redactor

    yield Spool, "append"
    yield driver.Driver, "open"
    yield driver.Driver, "effect"
    yield http_exchange.HttpExchange, "__init__"
    yield Redactor, "text"
    yield Redactor, "headers"


Prepare = Callable[[], Callable[[], None] | None]
"""Breaks something before the recording starts; the function that it returns, after the start."""


def run(words: list[str], level: str, prepare: Prepare | None) -> str:
    """The output of the program in a fork. None: without recording."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            signal.alarm(PATIENCE_S)
            os.close(reader)
            os.dup2(writer, 1)
            typed = os.memfd_create("typed")
            os.write(typed, TYPED)
            os.lseek(typed, 0, os.SEEK_SET)
            os.dup2(typed, 0)
            sys.stdout = open(1, "w", closefd=False)
            sys.stdin = open(0, closefd=False)
            recording: Any = None
            if prepare is not None:
                os.environ["PLAYHEAD_LEVEL"] = level
                begun = prepare()
                from playhead_instrumentation.bootstrap.start import start_recording

                recording = start_recording()
                assert recording is not None
                if begun is not None:
                    begun()
            try:
                program(words)
                if recording is not None:
                    recording.end()
            except BaseException:
                traceback.print_exc(file=sys.stdout)
            sys.stdout.flush()
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as file:
        printed = file.read()
    os.waitpid(pid, 0)
    return printed


def cases(which: str) -> Iterator[tuple[str, Prepare]]:
    """Names of cases, and what breaks something."""

    def absent_where(wanted: Callable[[str], bool]) -> Prepare:
        return lambda: setattr(Breaks, "absent", staticmethod(wanted))

    def fails_where(wanted: Callable[[str], bool], when: str) -> Prepare:
        def prepare() -> None:
            Breaks.fails, Breaks.when = staticmethod(wanted), when

        return prepare

    def fails_at(owner: Any, name: str) -> Prepare:
        return lambda: lambda: setattr(owner, name, broken)

    yield "nothing is broken", lambda: None
    yield "nothing is found", absent_where(lambda name: True)
    for when in ("before", "after"):
        yield f"every layer fails {when}", fails_where(lambda name: True, when)
    for owner, name in places():
        yield f"{owner.__name__}.{name} fails", fails_at(owner, name)
    if which == "each":
        for one in looked_up:
            yield f"no {one}", absent_where(one.__eq__)
        for one in layered:
            for when in ("before", "after"):
                yield f"{one} fails {when}", fails_where(one.__eq__, when)
    else:
        for part in range(4):
            wanted = [one for one in looked_up if sum(map(ord, one)) % 4 == part]
            yield f"no {part} of 4", absent_where(wanted.__contains__)


def learn(words: list[str], level: str) -> None:
    """Collect the names of requested attributes and of layers in this process too."""
    reader, writer = os.pipe()
    if not os.fork():
        os.close(reader)
        os.environ["PLAYHEAD_LEVEL"] = level
        from playhead_instrumentation.bootstrap.start import start_recording

        start_recording()
        with open(writer, "w") as file:
            json.dump([list(looked_up), list(layered)], file)
        os._exit(0)
    os.close(writer)
    with open(reader) as file:
        names = json.load(file)
    os.wait()
    looked_up.update(dict.fromkeys(names[0]))
    layered.update(dict.fromkeys(names[1]))


def main() -> None:
    level, *words, which = sys.argv[1:]
    patches.required, patches.Patches.around = required, around  # type: ignore[method-assign]
    learn(words, level)
    expected = run(words, level, None)
    print(json.dumps({"case": "unrecorded", "printed": expected}), flush=True)
    for name, prepare in cases(which):
        printed = run(words, level, prepare)
        print(json.dumps({"case": name, "printed": "" if printed == expected else printed}), flush=True)


if __name__ == "__main__":
    main()
