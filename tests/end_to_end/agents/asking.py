"""Asks a model without an SDK, of which the import takes longer than most tests."""

import json
import os
from urllib.error import HTTPError
from urllib.request import Request, urlopen


def posted(**body):
    """The open answer to a chat."""
    key = os.environ["OPENAI_API_KEY"]
    head = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    place = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    text = json.dumps({"model": "gpt-5.5", **body}, separators=(",", ":"))
    return urlopen(Request(place, text.encode(), head))


def answered(**body):
    """The message that answers a chat."""
    try:
        with posted(**body) as reply:
            return json.load(reply)["choices"][0]["message"]
    except HTTPError as problem:
        if problem.code != 429:
            raise
    return answered(**body)


def asked(what, **more):
    """The text that answers a question."""
    return answered(messages=[{"role": "user", "content": what}], **more)["content"]


def streamed(**body):
    """The pieces of the text that answers a chat, as they come."""
    with posted(stream=True, **body) as reply:
        for line in reply:
            found = line.removeprefix(b"data: ").strip()
            if found.startswith(b"{"):
                yield from (one["delta"].get("content") or "" for one in json.loads(found)["choices"])
