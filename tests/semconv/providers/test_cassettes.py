"""Recorded traffic of providers, and some of our own making: what is derived from it."""

import base64
import json
import struct
from collections.abc import Iterator
from itertools import groupby
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.answers.cassettes import Interaction, own, recorded
from support.tapes.conventions import check_content

from playhead_genai.messages import Reasoning, Text, ToolCall, read_output_messages
from playhead_genai.providers import Derived, PrefixCache, WireResponse, decode_body, derive, recognised

FILES = {
    name: list(found)
    for name, found in groupby([*own(), *recorded()], key=lambda one: f"{one.provider} {one.name}")
}


@pytest.mark.parametrize("name", FILES)
def test_cassette(name: str):
    cache = PrefixCache()
    for one in FILES[name]:
        wire = recognised(one.method, one.url, one.body)
        if wire is None:
            assert not one.body  # one that its authors left out
            continue
        check(one, wire, cache)


def check(one: Interaction, wire: str, cache: PrefixCache) -> None:
    url, body = one.url, one.body
    response = WireResponse(one.status, one.headers, [one.data], True)
    found = derive(wire, body, response, cache, url)
    assert found == derive(wire, body, response, url=url)
    elsewhere = f"http://127.0.0.1:8080{urlsplit(url).path}?{urlsplit(url).query}"
    assert recognised("POST", elsewhere, body) == wire
    assert found == derive(wire, body, response, url=elsewhere)
    pieces = [one.data[i : i + 3] for i in range(0, len(one.data), 3)]
    split = WireResponse(one.status, one.headers, pieces, True)
    assert derive(wire, body, split, url=url) == found
    assert check_content(found.attributes) >= 1
    assert found.problem == ""
    assert found.content_complete
    assert found.request_model
    assert bool(found.error_type) == (one.status != 200)
    if one.status == 200 and found.operation != "embeddings":
        check_answer(found, url, response)


def check_answer(found: Derived, url: str, response: WireResponse) -> None:
    """What is derived equals what a plain reading of the JSON finds, by its words alone."""
    bodies = plain_bodies(response)
    at = found.attributes
    said = read_output_messages(str(at.get("gen_ai.output.messages", "[]")))
    parts = [part for message in said for part in message.parts]
    written = "".join(part.content for part in parts if isinstance(part, Text | Reasoning))
    plain = "".join(texts_in(bodies))
    if len(said) > 1:  # the choices of a stream come in turns
        written, plain = "".join(sorted(written)), "".join(sorted(plain))
    assert written == plain
    assert [part.name for part in parts if isinstance(part, ToolCall)] == names_in(bodies)
    assert at["gen_ai.response.finish_reasons"]
    counts = [count for body in bodies for count in counts_in(body)]
    counts += [int(value) for name, value in response.headers if name.lower().endswith("token-count")]
    for name in ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"):
        assert name not in at or at[name] in {*counts, *(x + y for x in counts for y in counts)}
    assert "gen_ai.usage.output_tokens" in at or not counts


def plain_bodies(response: WireResponse) -> list[Any]:
    """The JSON of an answer or of the events of its stream, by the standard library alone."""
    data, _ = decode_body(response.headers, response.chunks)
    media_type = dict((name.lower(), value) for name, value in response.headers)["content-type"]
    if "amazon" in media_type:
        found: list[Any] = []
        at = 0
        while at < len(data):
            total, head = struct.unpack_from(">II", data, at)
            value = json.loads(data[at + 12 + head : at + total - 4])
            found.append(json.loads(base64.b64decode(value["bytes"])) if "bytes" in value else value)
            at += total
        return found
    if "event-stream" in media_type:
        lines = [line[5:].strip() for line in data.splitlines() if line.startswith(b"data:")]
        return [json.loads(line) for line in lines if line != b"[DONE]"]
    return [json.loads(data)]


TEXTS = ("text", "content", "outputText", "generation", "completion", "thinking", "reasoning_content")


def texts_in(bodies: list[Any]) -> Iterator[str]:
    """Texts that the model has written, in order. Of the Responses API, the last event repeats them."""
    last = bodies[-1]
    if isinstance(last, dict) and last.get("type") == "response.completed":
        bodies = [last["response"]]
    for body in bodies:
        if isinstance(body, dict) and body.get("object") == "response":
            body = body["output"]
        yield from _texts(body)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name in TEXTS and isinstance(item, str):
                yield item
            elif name not in ("prompt", "chat_history", "annotations"):
                yield from _texts(item)


def names_in(bodies: list[Any]) -> list[str]:
    """Names of the tools that are called."""
    last = bodies[-1]
    if isinstance(last, dict) and last.get("type") == "response.completed":
        bodies = [last["response"]]
    for body in bodies:
        if isinstance(body, dict) and body.get("object") == "response":
            bodies = [body["output"]]
    return list(_names(bodies))


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _names(item)
    elif isinstance(value, dict):
        own = value.get("name")
        if isinstance(own, str) and {"arguments", "args", "input", "toolUseId"} & set(value):
            yield own
        for name, item in value.items():
            if name not in ("args", "input", "chat_history", "tools"):
                yield from _names(item)


def counts_in(value: Any) -> Iterator[int]:
    """All counts of tokens."""
    if isinstance(value, dict):
        for name, item in value.items():
            if isinstance(item, int) and "token" in name.lower():
                yield item
            else:
                yield from counts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from counts_in(item)
