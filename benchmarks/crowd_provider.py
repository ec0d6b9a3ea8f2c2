"""A scripted provider for many concurrent clients, in a process of its own, with delayed answers.

It is a bare asyncio protocol, because a server with a framework could not write to 1,000 streams in
time. It measures this itself: ``GET /late`` returns how late its writes were since the last such
request.
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics

from crowd_workloads import CHUNKS

from playhead_cli.demo.shapes import openai_chat, sse

THINKS_S = 0.02
"""Seconds before an answer, or before the first chunk of a stream."""
SAYS_S = 0.5
"""Seconds between chunks."""

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n%b\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def whole(body: bytes) -> bytes:
    """An answer in one piece."""
    return _HEAD % (b"application/json", b"content-length: %d" % len(body)) + body


def streamed() -> list[bytes]:
    """An answer in `CHUNKS` pieces."""
    words = " ".join(["word"] * (CHUNKS - 3))
    *events, last, done = sse.chat(openai_chat.chunks(openai_chat.completion(words)))
    first, *others = (b"%x\r\n%b\r\n" % (len(one), one) for one in [*events, last + done])
    others[-1] += b"0\r\n\r\n"
    return [_HEAD % (b"text/event-stream", b"transfer-encoding: chunked") + first, *others]


WHOLE = [whole(sse.encode(openai_chat.completion("It is done.")))]
STREAMED = streamed()

late_s: list[float] = []


class Provider(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.asked = b""

    def data_received(self, data: bytes) -> None:
        self.asked += data
        head, _, body = self.asked.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if length is not None and len(body) < int(length[1]):
            return
        self.asked = b""
        if head.startswith(b"GET /late "):
            self.transport.write(whole(json.dumps(lateness()).encode()))
        else:
            pieces = STREAMED if b'"stream":true' in body else WHOLE
            due_s = asyncio.get_running_loop().time() + THINKS_S
            asyncio.get_running_loop().call_at(due_s, self.say, pieces, 0, due_s)

    def say(self, pieces: list[bytes], number: int, due_s: float) -> None:
        """Write one piece and schedule the next."""
        loop = asyncio.get_running_loop()
        late_s.append(loop.time() - due_s)
        self.transport.write(pieces[number])
        if number + 1 < len(pieces):
            due_s += SAYS_S
            loop.call_at(due_s, self.say, pieces, number + 1, due_s)


def lateness() -> dict[str, float]:
    """Lateness of the writes since the last call, in ms."""
    of_all = [0.0, *late_s]
    late_s.clear()
    return {"p99": statistics.quantiles(of_all, n=100)[98] * 1000, "most": max(of_all) * 1000}


async def main() -> None:
    """Serve until killed."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Provider, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
