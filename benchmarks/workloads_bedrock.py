"""The workloads of `workloads` for boto3 on Bedrock, over connections that answer in the process."""

from __future__ import annotations

import binascii
import io
import json
import struct
import time
from collections.abc import Callable
from typing import Any

import boto3
from botocore.awsrequest import AWSHTTPConnection, AWSHTTPConnectionPool
from clocks import call_ns
from workloads import CHUNKS, PAUSE_S, STEPS, SYSTEM, history

USAGE = {"inputTokens": 12, "outputTokens": 5, "totalTokens": 17}
MODEL = "anthropic.claude-sonnet-5-v1:0"


def event(name: str, value: Any) -> bytes:
    """One message of Amazon's event streams."""
    payload = json.dumps(value).encode()
    head = b""
    for key, text in ((b":event-type", name.encode()), (b":message-type", b"event")):
        head += bytes([len(key)]) + key + b"\x07" + struct.pack(">H", len(text)) + text
    prelude = struct.pack(">II", 16 + len(head) + len(payload), len(head))
    whole = prelude + struct.pack(">I", binascii.crc32(prelude)) + head + payload
    return whole + struct.pack(">I", binascii.crc32(whole))


WHOLE = json.dumps(
    {
        "output": {"message": {"role": "assistant", "content": [{"text": "It is done."}]}},
        "stopReason": "end_turn",
        "usage": USAGE,
        "metrics": {"latencyMs": 1},
    }
).encode()
WORD = {"contentBlockIndex": 0, "delta": {"text": "word "}}
EVENTS = b"".join(
    [
        event("messageStart", {"role": "assistant"}),
        *[event("contentBlockDelta", WORD)] * (CHUNKS - 4),
        event("contentBlockStop", {"contentBlockIndex": 0}),
        event("messageStop", {"stopReason": "end_turn"}),
        event("metadata", {"usage": USAGE, "metrics": {"latencyMs": 1}}),
    ]
)


def answer(kind: str, body: bytes) -> bytes:
    """An answer as its bytes come."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


ANSWERS = (
    answer("application/json", WHOLE),
    answer("application/vnd.amazon.eventstream", EVENTS),
)


class Loopback:
    """A socket that answers every request at once. What reads the answer is the library's own code."""

    def __init__(self) -> None:
        self.streamed = False

    def sendall(self, data: bytes) -> None:
        """Take a request; its body may come by itself."""
        if data.startswith(b"POST "):
            self.streamed = b"/converse-stream " in data[:200]

    def makefile(self, *_: Any) -> io.BytesIO:
        """The answer to the last request."""
        return io.BytesIO(ANSWERS[self.streamed])

    def settimeout(self, *_: Any) -> None:
        """Nothing is waited for."""

    def close(self) -> None:
        """Nothing is open."""


class Answering(AWSHTTPConnection):
    """A connection over `Loopback`."""

    is_connected = True

    def connect(self) -> None:
        self.sock = Loopback()


def client() -> Any:
    """A client over `Answering`."""
    AWSHTTPConnectionPool.ConnectionCls = Answering
    return boto3.client(
        "bedrock-runtime",
        "eu-west-1",
        endpoint_url="http://bench.invalid",
        aws_access_key_id="bench",
        aws_secret_access_key="bench",
    )


def messages(steps: int) -> list[dict[str, Any]]:
    """The messages of an agent after ``steps`` tool calls: about 2.3 KB a step."""
    found: list[dict[str, Any]] = []
    for step, message in enumerate(history(steps)[1:]):
        block: dict[str, Any] = {"text": str(message["content"])}
        if message["role"] == "assistant":
            use = {"toolUseId": f"c-{step}", "name": "search", "input": {"query": "step", "limit": 5}}
            block = {"toolUse": use}
        elif message["role"] == "tool":
            result = [{"text": str(message["content"])}]
            block = {"toolResult": {"toolUseId": f"c-{step - 1}", "content": result}}
        role = "assistant" if message["role"] == "assistant" else "user"
        found.append({"role": role, "content": [block]})
    return found


def _call(bedrock: Any, asked: list[dict[str, Any]], pause_s: float = PAUSE_S) -> int:
    more = {"system": [{"text": SYSTEM}]} if len(asked) > 1 else {}
    time.sleep(pause_s)
    begin = call_ns()
    bedrock.converse(modelId=MODEL, messages=asked, **more)
    return call_ns() - begin


def small(bedrock: Any, count: int) -> list[float]:
    """Calls with one short message; ns each."""
    return [_call(bedrock, messages(0)) for _ in range(count)]


def hurried(bedrock: Any, count: int) -> list[float]:
    """Calls with one short message without a pause; ns each."""
    return [_call(bedrock, messages(0), 0) for _ in range(count)]


def repeated(bedrock: Any, count: int) -> list[float]:
    """Calls with the same 115 KB history; ns each."""
    asked = messages(STEPS)
    return [_call(bedrock, asked) for _ in range(count)]


def streamed(bedrock: Any, count: int) -> list[float]:
    """Streams of 200 chunks; ns per chunk of each stream."""
    taken: list[float] = []
    asked = messages(0)
    for _ in range(count):
        time.sleep(PAUSE_S)
        stream = bedrock.converse_stream(modelId=MODEL, messages=asked)["stream"]
        begin = call_ns()
        chunks = sum(1 for _ in stream)
        taken.append((call_ns() - begin) / chunks)
    return taken


WORKLOADS: dict[str, tuple[Callable[[Any, int], list[float]], int, int]] = {
    "small call": (small, 60, 1),
    "small call, no pause": (hurried, 60, 1),
    "115 KB, repeated": (repeated, 12, 1),
    "chunk": (streamed, 8, CHUNKS),
}
"""As in `workloads`."""
