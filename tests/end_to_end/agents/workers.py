"""Processes of `multiprocessing` that speak with each other, in the ways that are asked for."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any
from urllib.request import Request, urlopen


def asked(what: str) -> int:
    body = {"model": "gpt-5.5", "messages": [{"role": "user", "content": what}]}
    head = {"Content-Type": "application/json"}
    place = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    with urlopen(Request(place, json.dumps(body).encode(), head)) as reply:
        return len(json.load(reply)["choices"][0]["message"]["content"])


def work(name: str) -> Any:
    if name == "bad":
        raise ValueError(f"no {name}")
    if name == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    return name, asked(name), time.time(), random.random()


def executor(context: Any) -> None:
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        for one in as_completed([pool.submit(work, name) for name in ("a", "b", "c", "bad")]):
            print(one.exception() or one.result())
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        try:
            print(pool.submit(work, "killed").result())
        except BrokenProcessPool as error:
            print(repr(error))


def pool(context: Any) -> None:
    with context.Pool(2) as pool:
        print(pool.map(work, ["e", "f", "g"]))
        for one in pool.imap_unordered(work, ["h", "i", "j", "k"]):
            print(one)
        try:
            pool.apply(work, ("bad",))
        except ValueError as error:
            print(repr(error))


def put(queue: Any, count: Any, values: Any, barrier: Any, pipe: Any, handles: Any) -> None:
    name = multiprocessing.current_process().name
    barrier.wait()
    for number in range(4):
        with count.get_lock():
            count.value += 1
            mine = count.value
        values[mine % 4] = mine
        queue.put((name, number, mine, asked(f"{name} {mine}"), random.random()))
    pipe.send((name, pipe.recv(), list(values), os.getpid()))
    handles.get().send(name)


def racing(context: Any) -> None:
    queue, count, values = context.Queue(), context.Value("i", 0), context.Array("i", 4)
    barrier, handles = context.Barrier(3), context.Queue()
    workers, pipes = [], []
    for _ in range(2):
        ours, theirs = context.Pipe()
        given = (queue, count, values, barrier, theirs, handles)
        workers.append(context.Process(target=put, args=given))
        pipes.append(ours)
        workers[-1].start()
    barrier.wait()
    for _ in range(8):
        print(queue.get())
    for pipe in pipes:
        pipe.send("enough")
        while not pipe.poll(0.01):
            pass
        print(pipe.recv())
    ends = [context.Pipe(duplex=False) for _ in workers]
    for _, sends in ends:
        handles.put(sends)
    print([receives.recv() for receives, _ in ends])
    for worker in workers:
        worker.join()
    print([worker.exitcode for worker in workers], count.value, list(values))


def note(names: Any, log: Any, lock: Any, event: Any, jobs: Any) -> None:
    name = multiprocessing.current_process().name
    event.wait()
    while (job := jobs.get()) is not None:
        with lock:
            names[job] = name
        log.append((job, asked(job)))
        jobs.task_done()
    jobs.task_done()


def manager(context: Any) -> None:
    with context.Manager() as manager:
        names, log, lock, event = manager.dict(), manager.list(), context.Lock(), context.Event()
        jobs = context.JoinableQueue()
        workers = [context.Process(target=note, args=(names, log, lock, event, jobs)) for _ in range(2)]
        for worker in workers:
            worker.start()
        for one in ("one", "two", "three", None, None):
            jobs.put(one)
        event.set()
        jobs.join()
        for worker in workers:
            worker.join()
        print(sorted(names.items()), list(log))


if __name__ == "__main__":
    for way in sys.argv[2:]:
        globals()[way](multiprocessing.get_context(sys.argv[1]))
