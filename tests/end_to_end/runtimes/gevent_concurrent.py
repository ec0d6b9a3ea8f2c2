"""Greenlets that ask a model at once, by three clients; queues, pools, threads, timeouts."""

# ruff: noqa: E402

from gevent import monkey

monkey.patch_all()

import os
import sys
import threading
import time

import gevent
import gevent.event
import gevent.pool
import gevent.queue
import httpx
import openai
import requests

URL = os.environ["MODEL_URL"]
client = openai.OpenAI(base_url=URL, api_key="k", max_retries=0)
order = []
"""Questions in the order in which they were answered, which every later question tells."""


def body(question, **more):
    return {"model": "m", "messages": [{"role": "user", "content": f"{question} {len(order)}"}], **more}


def done(question, answer):
    order.append(question)
    return answer


def ask(question):
    answer = client.chat.completions.create(**body(question))
    return done(question, answer.choices[0].message.content)


def ask_httpx(question):
    answer = httpx.post(f"{URL}/chat/completions", json=body(question), timeout=60).json()
    return done(question, answer["choices"][0]["message"]["content"])


def ask_requests(question):
    answer = requests.post(f"{URL}/chat/completions", json=body(question), timeout=60).json()
    return done(question, answer["choices"][0]["message"]["content"])


def stream(question):
    parts = client.chat.completions.create(**body(question, stream=True))
    text = [done(question, part.choices[0].delta.content or "") for part in parts if part.choices]
    return "".join(text)


def chain(number):
    second = ask(f"second of {ask(f'first {number}')}")
    time.sleep(0.02)
    return second


def work(tasks, results):
    for task in tasks:
        results.put(ask_requests(task))


def main():
    jobs = [gevent.spawn(chain, number) for number in range(5)]
    gevent.joinall(jobs, raise_error=True)
    print([job.value for job in jobs])
    print(gevent.pool.Pool(3).map(stream, list("abcde")))
    print(list(gevent.pool.Pool(4).imap_unordered(ask_httpx, "uvwxy")))
    tasks, results = gevent.queue.Queue(), gevent.queue.Queue()
    workers = [gevent.spawn(work, tasks, results) for _ in range(3)]
    for task in [*"klmnop", *[StopIteration] * 3]:
        tasks.put(task)
    gevent.joinall(workers, raise_error=True)
    print([results.get() for _ in range(6)])
    threads = [threading.Thread(target=ask, args=(f"thread {number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stalled = iter(client.chat.completions.create(**body("stalls", stream=True)))
    next(stalled)
    try:
        with gevent.Timeout(0.2):
            next(stalled)
    except gevent.Timeout as late:
        print("late", late)
    try:
        gevent.queue.Queue().get(timeout=0.05)
    except gevent.queue.Empty:
        print("empty", gevent.event.Event().wait(0.05))
    later = gevent.spawn_later(0.05, ask, "later")
    print(gevent.with_timeout(60, later.get), gevent.joinall([later], timeout=60) == [later])
    print(ask(f"end {order}"))


main()
sys.exit(3)
