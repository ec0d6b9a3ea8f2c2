"""Asks, then waits to be told by a thread whose own question is never answered."""

import json
import os
import threading
from urllib.request import Request, urlopen


def asked(what):
    body = {"model": "gpt-5.5", "messages": [{"role": "user", "content": what}]}
    head = {"Content-Type": "application/json"}
    place = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    with urlopen(Request(place, json.dumps(body).encode(), head)) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]


def help_out():
    print(asked("second"))
    told.set()


told = threading.Event()
print(asked("first"), flush=True)
threading.Thread(target=help_out).start()
told.wait()
