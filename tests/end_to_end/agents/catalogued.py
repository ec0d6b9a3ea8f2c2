"""Puts the credentials of `support.catalogue` everywhere; the plan comes packed in the environment."""

import base64
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
from opentelemetry import trace
from websockets.sync.client import connect

import playhead

plan: dict[str, list[Any]] = json.loads(zlib.decompress(base64.b85decode(os.environ.pop("PLAN"))))
base, socket = os.environ["BASE_URL"], os.environ["SOCKET_URL"]
tracer = trace.get_tracer("another.instrumentor")


def of(place: str) -> list[Any]:
    return plan.get(place, [])


def pieces(parts: list[str]) -> Iterator[bytes]:
    for part in parts:
        yield part.encode()


with httpx.Client(timeout=60) as http:
    messages = [{"role": "user", "content": text} for text in of("prompt")]
    http.post(f"{base}/sent", json={"model": "m", "messages": messages})
    http.post(f"{base}/sent", json={"fields": [{name: value} for name, value in of("json")]})
    for name, value in of("form"):
        http.post(f"{base}/sent", data={"a": "1", name: value})
    if of("multipart"):
        http.post(f"{base}/sent", files={name: (None, value) for name, value in of("multipart")})
    for name, value in of("query"):
        http.get(f"{base}/sent", params={"a": "1", name: value})
    if of("header"):
        http.get(f"{base}/sent", headers={name.replace("_", "-"): value for name, value in of("header")})
    for parts in of("request"):
        http.post(f"{base}/sent", content=pieces(parts))
    for name in ("answer", "stream", "arguments", "tool", "cut"):
        http.get(f"{base}/{name}").read()
    for value in of("known"):
        http.get(f"{base}/sent", headers={"Authorization": f"Bearer {value}".encode()})
        coded = base64.b64encode(f"a {value} b".encode()).decode()
        print(value, quote(value, safe=""), json.dumps(value), coded)
        http.post(f"{base}/sent", json={"text": value, "url": quote(value, safe=""), "coded": coded})
    for value in of("deltas") + of("hex"):
        http.get(f"{base}/sent", headers={"X-Api-Key": value})
        http.post(f"{base}/sent", json={"text": value, "hex": value.encode().hex()})
    http.get(f"{base}/deltas").read()
if of("websocket") or of("fragments"):
    with connect(f"{socket}/chat") as channel:
        for sent in of("websocket") + of("fragments"):
            channel.send(sent)
            channel.recv()
for text in of("stdout"):
    print(text)
for text in of("stderr"):
    print(text, file=sys.stderr)
for number, text in enumerate(of("file")):
    with open(f"written-{number}.txt", "w") as file:
        file.write(text)
    with open(f"handed-{number}.txt") as file:
        file.read()
with tracer.start_as_current_span("work") as span:
    for number, text in enumerate(of("attribute")):
        span.set_attribute(f"note.{number}", text)
    for name, value in of("named attribute"):
        span.set_attribute(f"app.{name}", value)
    for text in of("event"):
        span.add_event(text, {"text": text})
    for text in of("exception"):
        try:
            raise ValueError(text)
        except ValueError as problem:
            span.record_exception(problem)
playhead.checkpoint({"texts": of("checkpoint"), **dict(of("state"))}, label="here")
variables = dict(of("environment"))
code = "import sys; print(sys.argv[1:])"
words = [part for name, value in of("environment") for part in (f"--{name}", value)]
environ = {**os.environ, **variables}
subprocess.run([sys.executable, "-c", code, *words], env=environ, check=True, capture_output=True)
print("plain words of the program")
