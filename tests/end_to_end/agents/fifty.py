"""Fifty small agents. Their requests depend on the script, on answers, on clocks and on entropy alone.

``fifty.py NAME...`` runs some in turn. The provider is at ``TOOLS_URL`` and ``OPENAI_BASE_URL``.
"""

from __future__ import annotations

import asyncio
import base64
import concurrent.futures
import contextvars
import datetime
import email.utils
import functools
import http.client
import json
import logging
import os
import queue
import random
import secrets
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable
from typing import Any

import aiohttp
import anyio
import httpx
import requests

URL = os.environ["TOOLS_URL"]
PROGRAMS: dict[str, Callable[[], Any]] = {}


def program(function: Callable[[], Any]) -> Callable[[], Any]:
    PROGRAMS[function.__name__] = function
    return function


def ask(said: Any, **more: Any) -> Any:
    answered = httpx.post(f"{URL}/tool", json={"said": said}, timeout=60, **more)
    return answered.json()["tool"]


async def ask_async(client: httpx.AsyncClient, said: Any) -> Any:
    answered = await client.post(f"{URL}/tool", json={"said": said})
    return answered.json()["tool"]


def chat(client: Any, said: Any, **more: Any) -> Any:
    return client.chat.completions.create(
        model="gpt-4o", messages=[{"role": "user", "content": str(said)}], **more
    )


def sdk() -> Any:
    """Its import takes longer than most of the programs."""
    import openai

    return openai


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat()


@program
def plain():
    return [ask(number) for number in range(3)]


@program
def identifier():
    return ask(str(uuid.uuid4()))


@program
def identifiers_again():
    session = str(uuid.uuid4())
    return [ask({"session": session, "turn": turn, "id": uuid.uuid4().hex}) for turn in range(4)]


@program
def seconds():
    return ask(time.time())


@program
def whole_seconds():
    return [ask(int(time.time())), ask(time.time_ns()), ask(int(time.time() * 1000))]


@program
def iso_time():
    return ask(f"It is {now()}. What now?")


@program
def local_time():
    return ask(datetime.datetime.now().strftime("Today is %A, %Y-%m-%d, %H:%M:%S."))


@program
def date_header():
    return ask("date", headers={"date": email.utils.formatdate(time.time(), usegmt=True)})


@program
def token():
    return ask({"nonce": secrets.token_hex(16), "state": secrets.token_urlsafe(24)})


@program
def bytes_of_the_system():
    return ask({"salt": base64.b64encode(os.urandom(18)).decode(), "short": os.urandom(4).hex()})


@program
def shared_random():
    return [ask(random.random()), ask(random.randint(1, 10**9)), ask(random.choice("abcdefgh"))]


@program
def own_random():
    dice = random.Random(7)
    return ask([dice.random() for _ in range(5)])


@program
def identifier_in_path():
    job = uuid.uuid4()
    first = httpx.put(f"{URL}/tool/jobs/{job}", json={"job": str(job)}, timeout=60)
    return [first.json(), httpx.get(f"{URL}/tool/jobs/{job}", params={"at": int(time.time())}).json()]


@program
def echoed_identifier():
    sent = str(uuid.uuid4())
    got = httpx.post(f"{URL}/echo", json={"id": sent}, timeout=60).json()["id"]
    return ask("same" if got == sent else "another")


@program
def echoed_in_a_stream():
    sent = str(uuid.uuid4())
    with httpx.stream("POST", f"{URL}/echo", json={"id": sent}, timeout=60) as got:
        text = b"".join(got.iter_bytes(7)).decode()
    return ask(json.loads(text)["id"] == sent)


@program
def form_fields():
    fields = {"id": uuid.uuid4().hex, "at": now(), "text": "a b&c"}
    return httpx.post(f"{URL}/tool", data=fields, timeout=60).json()


@program
def uploaded_file():
    return httpx.post(f"{URL}/tool", files={"file": ("a.txt", b"text")}, data={"at": now()}).json()


@program
def threads():
    said: list[Any] = [None] * 6

    def work(number: int) -> None:
        said[number] = ask({"number": number, "id": str(uuid.uuid4())})

    running = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for one in running:
        one.start()
    for one in running:
        one.join()
    return ask(len(said))


@program
def pool():
    with concurrent.futures.ThreadPoolExecutor(4) as several:
        return sorted(several.map(ask, range(12)))


@program
def first_completed():
    with concurrent.futures.ThreadPoolExecutor(4) as several:
        jobs = [several.submit(ask, number) for number in range(4)]
        got = [job.result() for job in concurrent.futures.as_completed(jobs)]
    return ask(sorted(got))


@program
def polled_queue():
    waiting: queue.Queue[int | None] = queue.Queue()
    got: list[Any] = []

    def work() -> None:
        while True:
            try:
                number = waiting.get(timeout=0.02)
            except queue.Empty:
                continue
            if number is None:
                return
            got.append(ask({"number": number}))

    worker = threading.Thread(target=work)
    worker.start()
    for number in range(3):
        time.sleep(0.05)
        waiting.put(number)
    waiting.put(None)
    worker.join()
    return ask(len(got))


@program
def deadline_loop():
    until = time.monotonic() + 0.2
    turns = 0
    while time.monotonic() < until:
        turns += 1
        time.sleep(0.01)
    return ask(turns > 1)


@program
def spinning_loop():
    until = time.monotonic() + 0.002
    while time.monotonic() < until:
        pass
    return ask("over")


@program
def slept():
    began = time.monotonic()
    time.sleep(0.3)
    return ask(time.monotonic() - began >= 0.3)


@program
def event_in_time():
    heard = threading.Event()
    threading.Thread(target=lambda: (ask("first"), heard.set())).start()
    return ask(heard.wait(30))


@program
def event_in_vain():
    return ask(threading.Event().wait(0.1))


@program
def gathered():
    async def main() -> Any:
        async with httpx.AsyncClient(timeout=60) as client:
            said = [ask_async(client, {"n": n, "id": str(uuid.uuid4())}) for n in range(10)]
            return await asyncio.gather(*said)

    return asyncio.run(main())


@program
def task_group():
    async def main() -> Any:
        async with httpx.AsyncClient(timeout=60) as client, asyncio.TaskGroup() as group:
            tasks = [group.create_task(ask_async(client, n)) for n in range(5)]
        return [task.result() for task in tasks]

    return asyncio.run(main())


@program
def as_completed():
    async def main() -> Any:
        async with httpx.AsyncClient(timeout=60) as client:
            tasks = [ask_async(client, n) for n in range(5)]
            got = [await one for one in asyncio.as_completed(tasks)]
            return await ask_async(client, got)

    return asyncio.run(main())


@program
def timeout_not_reached():
    async def main() -> Any:
        async with httpx.AsyncClient(timeout=60) as client, asyncio.timeout(5):
            return [await ask_async(client, n) for n in range(3)]

    return asyncio.run(main())


@program
def timeout_reached():
    async def main() -> Any:
        async with httpx.AsyncClient(timeout=60) as client:
            try:
                async with asyncio.timeout(0.05):
                    await asyncio.Event().wait()
            except TimeoutError:
                return await ask_async(client, "late")

    return asyncio.run(main())


@program
def request_given_up():
    async def main() -> Any:
        async with httpx.AsyncClient(timeout=60) as client:
            try:
                async with asyncio.timeout(1):
                    await client.post(f"{URL}/slow", json={})
            except TimeoutError:
                return await ask_async(client, "given up")

    return asyncio.run(main())


@program
def hedged():
    async def main() -> Any:
        async with httpx.AsyncClient(timeout=60) as client:
            first = asyncio.create_task(client.post(f"{URL}/slow", json={"try": 1}))
            done, _ = await asyncio.wait({first}, timeout=0.05)
            second = asyncio.create_task(ask_async(client, "second"))
            got = await second
            first.cancel()
            return [len(done), got]

    return asyncio.run(main())


@program
def workers():
    async def main() -> Any:
        waiting: asyncio.Queue[int] = asyncio.Queue()
        for number in range(9):
            waiting.put_nowait(number)
        async with httpx.AsyncClient(timeout=60) as client:

            async def work() -> None:
                while not waiting.empty():
                    await ask_async(client, waiting.get_nowait())
                    await asyncio.sleep(random.random() / 100)

            await asyncio.gather(*(work() for _ in range(3)))

    return asyncio.run(main())


@program
def anyio_tasks():
    async def main() -> None:
        async with httpx.AsyncClient(timeout=60) as client, anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(ask_async, client, number)
            with anyio.move_on_after(5):
                await anyio.sleep(0.05)

    return anyio.run(main)


@program
def sdk_call():
    return chat(sdk().OpenAI(), f"Today is {now()}").choices[0].message.content


@program
def sdk_stream():
    parts = chat(sdk().OpenAI(), f"id {uuid.uuid4()}", stream=True)
    return "".join(part.choices[0].delta.content or "" for part in parts if part.choices)


@program
def sdk_retries():
    return chat(sdk().OpenAI(), "storm 2").choices[0].message.content


@program
def sdk_conversation():
    client, said = sdk().OpenAI(), f"start {uuid.uuid4()}"
    for _ in range(4):
        said = chat(client, f"{now()}: {said[-40:]}").choices[0].message.content
    return said


@program
def sdk_streams_at_once():
    async def main() -> Any:
        client = sdk().AsyncOpenAI()

        async def one(number: int) -> str:
            parts = await chat(client, f"{number} {uuid.uuid4()}", stream=True)
            return "".join([p.choices[0].delta.content or "" async for p in parts if p.choices])

        return await asyncio.gather(*(one(number) for number in range(6)))

    return asyncio.run(main())


@program
def sdk_in_threads():
    client = sdk().OpenAI()
    with concurrent.futures.ThreadPoolExecutor(4) as several:
        said = several.map(lambda n: chat(client, f"{n}").choices[0].message.content, range(8))
        return len(list(said))


@program
def over_requests():
    with requests.Session() as session:
        session.headers["x-request-id"] = str(uuid.uuid4())
        return session.post(f"{URL}/tool", json={"id": secrets.token_hex(8), "at": now()}).json()


@program
def over_aiohttp():
    async def main() -> Any:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:

            async def one(number: int) -> Any:
                body = {"n": number, "id": str(uuid.uuid4())}
                async with session.post(f"{URL}/tool", json=body) as got:
                    return await got.json()

            return await asyncio.gather(*(one(number) for number in range(5)))

    return asyncio.run(main())


@program
def over_urllib():
    body = json.dumps({"at": time.time()}).encode()
    asked = urllib.request.Request(f"{URL}/tool", body, {"content-type": "application/json"})
    with urllib.request.urlopen(asked) as got:
        return json.load(got)


@program
def over_http_client():
    place = urllib.parse.urlsplit(URL)
    connection = http.client.HTTPConnection(place.hostname or "", place.port)
    connection.request("POST", f"/tool?id={uuid.uuid4().hex}", b"{}")
    return json.load(connection.getresponse())


@program
def children():
    out = subprocess.run(["sh", "-c", "echo one; echo two"], capture_output=True, text=True, check=True)
    child = subprocess.Popen(["sleep", "0.1"])
    while child.poll() is None:
        time.sleep(0.02)
    return ask({"out": out.stdout, "code": child.returncode})


@program
def children_of_a_loop():
    async def main() -> Any:
        child = await asyncio.create_subprocess_exec("sh", "-c", "cat; exit 4", stdin=-1, stdout=-1)
        out, _ = await child.communicate(b"text")
        async with httpx.AsyncClient(timeout=60) as client:
            return await ask_async(client, {"out": out.decode(), "code": child.returncode})

    return asyncio.run(main())


@program
def log_times():
    written: list[str] = []
    handler = logging.Handler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    handler.emit = lambda record: written.append(handler.format(record))
    log = logging.getLogger("program")
    log.addHandler(handler)
    log.warning("said")
    return ask(written)


@program
def backoff():
    waits = [random.uniform(0.01, 0.05) * 2**turn for turn in range(3)]
    for wait in waits:
        time.sleep(wait)
    return ask("after")


@program
def expiring_cache():
    kept: dict[str, tuple[float, Any]] = {}

    def cached(name: str) -> Any:
        at, value = kept.get(name, (0.0, None))
        if time.monotonic() - at > 0.2 or not at:
            value = ask(name)
            kept[name] = time.monotonic(), value
        return value

    got = [cached("a"), cached("a")]
    time.sleep(0.4)
    return [*got, cached("a")]


@program
def contexts():
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")

    async def one(client: httpx.AsyncClient, name: str) -> Any:
        who.set(name)
        await asyncio.sleep(0.01)
        return await ask_async(client, {"who": who.get(), "trace": secrets.token_hex(8)})

    async def main() -> Any:
        async with httpx.AsyncClient(timeout=60) as client:
            return await asyncio.gather(*(one(client, name) for name in "abc"))

    return asyncio.run(main())


@program
def temporary_names():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "note")
        with open(path, "w", encoding="utf-8") as file:
            file.write("text")
        with open(path, encoding="utf-8") as file:
            return ask(file.read())


@program
def from_an_executor():
    async def main() -> Any:
        loop = asyncio.get_running_loop()
        jobs = [loop.run_in_executor(None, functools.partial(ask, n)) for n in range(4)]
        return await asyncio.gather(*jobs)

    return asyncio.run(main())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(PROGRAMS[name]())
