"""Recorded traffic of providers, where ``PLAYHEAD_CASSETTES`` names a folder of VCR files of it."""

import base64
import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from support.conventions import check_content

from playhead_semconv.genai.messages import Reasoning, Text, ToolCall, read_output_messages
from playhead_semconv.wire import (
    Derived,
    PrefixCache,
    WireResponse,
    decode_body,
    derive,
    recognised,
)

FOLDER = os.environ.get("PLAYHEAD_CASSETTES")


def exchanges(path: Path) -> Iterator[tuple[str, str, bytes, WireResponse]]:
    document: dict[str, Any] = yaml.load(
        path.read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )
    for interaction in document["interactions"]:
        request, response = interaction["request"], interaction["response"]
        url = request["uri"]
        wire = recognised(request["method"], url, raw(request["body"]))
        if wire is None:
            assert not request["body"]  # one that its authors left out
            continue
        data = response["body"]["string"]
        headers = [(name, value) for name, values in response["headers"].items() for value in values]
        yield (
            wire,
            url,
            raw(request["body"]),
            WireResponse(response["status"]["code"], headers, [raw(data)], True),
        )


def raw(body: Any) -> bytes:
    return body if isinstance(body, bytes) else (body or "").encode()


if FOLDER:
    FILES = [path for path in sorted(Path(FOLDER).rglob("*.yaml")) if any(exchanges(path))]

    @pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
    def test_cassette(path: Path):
        cache = PrefixCache()
        for wire, url, body, response in exchanges(path):
            found = derive(wire, body, response, cache, url)
            assert found == derive(wire, body, response, url=url)
            elsewhere = f"http://127.0.0.1:8080{urlsplit(url).path}?{urlsplit(url).query}"
            assert recognised("POST", elsewhere, body) == wire
            assert found == derive(wire, body, response, url=elsewhere)
            pieces = [response.chunks[0][i : i + 3] for i in range(0, len(response.chunks[0]), 3)]
            split = WireResponse(response.status_code, response.headers, pieces, True)
            assert derive(wire, body, split, url=url) == found
            assert check_content(found.attributes) >= 1
            assert found.problem == ""
            assert found.content_complete
            assert found.request_model
            assert bool(found.error_type) == (response.status_code != 200)
            if response.status_code == 200 and found.operation != "embeddings":
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
