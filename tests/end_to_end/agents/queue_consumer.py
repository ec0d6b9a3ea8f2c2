"""A consumer of queues: each message is a run, of a plain function, an async one, or a block."""

import asyncio
import os
import queue
import sys
import threading
import time
import uuid

import httpx

import playhead

REFUNDS = {"limit": 80}
PLACE = os.environ["OPENAI_BASE_URL"] + "/chat/completions"


def asked(text):
    return {"model": "gpt-5.5", "messages": [{"role": "user", "content": text}]}


def content(answer):
    return answer.json()["choices"][0]["message"]["content"]


def ask(text):
    return content(httpx.post(PLACE, json=asked(text), timeout=60))


@playhead.run
def refund(message):
    print("refunding", message["order"])
    if message["order"] > REFUNDS["limit"]:
        raise ValueError(f"no order {message['order']}")
    answer = ask(f"refund {message['order']} at {time.time()}")
    return {"answer": answer, "id": str(uuid.uuid4()), "token": message.get("api_key")}


@playhead.run("triage")
async def sort_out(message, *, urgent=False):
    question = asked(f"{message} {uuid.uuid4()}")
    async with httpx.AsyncClient(timeout=60) as client:
        answers = await asyncio.gather(*(client.post(PLACE, json=question) for _ in range(2)))
    return [content(one) for one in answers], urgent


def work(messages):
    while (message := messages.get()) is not None:
        try:
            refund(message)
        except ValueError as problem:
            print("failed:", problem)
        messages.task_done()


async def sort_all(count):
    await asyncio.gather(*(sort_out(f"mail {number}", urgent=number == 1) for number in range(count)))


def main():
    waiting = queue.Queue()
    workers = [threading.Thread(target=work, args=(waiting,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for order in (*range(int(sys.argv[1])), 99):
        if order == 99:
            waiting.join()  # its run begins when those of the others are over
        waiting.put({"order": order, "api_key": "sk-received0123456789abcdef"})
    for _ in workers:
        waiting.put(None)
    for worker in workers:
        worker.join()
    asyncio.run(sort_all(2))
    with playhead.run("tidy", input={"all": True}) as tidying:
        tidying.output = ask("tidy up")


if __name__ == "__main__":
    main()
