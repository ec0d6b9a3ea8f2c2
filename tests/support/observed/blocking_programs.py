"""Programs that use a blocking HTTP library, and what they observe."""

from __future__ import annotations

import functools
import gc
import http.client
import io
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3
from botocore.awsrequest import AWSRequest
from botocore.httpsession import URLLib3Session
from requests.adapters import HTTPAdapter
from support.observed.http_programs import EVENTS
from support.servers.ports import nobody
from support.servers.scripted import Gate, Reply, hang_up, json_reply, sse_reply
from urllib3.util import Retry

HELD: list[Any] = []

LATE_S = 0.1
"""How long something is awaited that does not come."""


def failure(error: BaseException) -> list[tuple[str, str, str]]:
    """Class and text of an exception and of its causes."""
    found: list[tuple[str, str, str]] = []
    while True:
        found.append((type(error).__module__, type(error).__qualname__, str(error)))
        inner = getattr(error, "reason", None) or (error.args[0] if error.args else None)
        if not isinstance(inner, BaseException):
            return found
        error = inner


def headers(response: Any) -> list[tuple[str, str]]:
    return [(name, value) for name, value in response.headers.items()]


@dataclass(frozen=True)
class Case:
    """A program, the server's answers, and how its exchanges end."""

    name: str
    script: Callable[[], list[Reply]]
    run: Callable[[str], Any]
    ends: list[str]


def parts_of_a_body() -> Iterator[bytes]:
    yield b'{"made":'
    yield b' "while sent"}'


@functools.cache
def not_tls() -> str:
    """The address of a server that does not speak TLS."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            connection = listener.accept()[0]
            with connection, suppress(OSError):
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 400 no\r\n\r\n")

    threading.Thread(target=serve, name="playhead-not-tls", daemon=True).start()
    return f"https://127.0.0.1:{listener.getsockname()[1]}/"


# urllib3


def pool_json(url: str) -> Any:
    with urllib3.PoolManager() as pool:
        answer = pool.request("POST", f"{url}/a?q=1", json={"question": "what"})
        return answer.status, answer.reason, answer.version, headers(answer), answer.data, answer.json()


def pool_streamed(url: str) -> Any:
    chunks: list[bytes] = []
    with urllib3.PoolManager(retries=False) as pool:
        answer = pool.request("POST", url, body=b"{}", preload_content=False)
        try:
            for chunk in answer.stream(decode_content=False):
                chunks.append(chunk)
        except urllib3.exceptions.HTTPError as error:
            return headers(answer), chunks, failure(error)
        return headers(answer), chunks, answer.tell()


def pool_failing(url: str, timeout_s: float = 60) -> Any:
    with urllib3.PoolManager(retries=False, timeout=timeout_s) as pool:
        try:
            return pool.request("GET", url).data
        except urllib3.exceptions.HTTPError as error:
            return failure(error)


def pool_late(url: str) -> Any:
    return pool_failing(url, LATE_S)


def pool_late_within(url: str) -> Any:
    with urllib3.PoolManager(retries=False) as pool:
        answer: Any = pool.request("GET", url, preload_content=False)
        if answer.connection.sock is not None:  # a replay has none
            answer.connection.sock.settimeout(LATE_S)
        try:
            return answer.read()
        except urllib3.exceptions.HTTPError as error:
            return failure(error)


def pool_refused(_: str) -> Any:
    return [pool_failing(REFUSED), pool_failing("http://no-such-host.invalid/")]


def pool_untrusted(_: str) -> Any:
    return pool_failing(not_tls())


def pool_proxied(url: str) -> Any:
    with urllib3.ProxyManager(url, retries=False) as pool:
        return pool.request("GET", "http://example.test/a").data


def pool_proxy_gone(_: str) -> Any:
    found: list[Any] = []
    for target in ("http://example.test/a", "https://example.test/a"):
        with urllib3.ProxyManager(REFUSED, retries=False) as pool:
            try:
                pool.request("GET", target)
            except urllib3.exceptions.HTTPError as error:
                found.append(failure(error))
    return found


def pool_tunnel_refused(url: str) -> Any:
    with urllib3.ProxyManager(url, retries=False) as pool:
        try:
            pool.request("GET", "https://example.test/a")
        except urllib3.exceptions.HTTPError as error:
            return failure(error)
    return None


def pool_reused(url: str) -> Any:
    with urllib3.PoolManager() as pool:
        return [pool.request("GET", f"{url}/{n}").data for n in range(3)]


def pool_head(url: str) -> Any:
    with urllib3.PoolManager() as pool:
        return [
            (answer.status, answer.data)
            for answer in (pool.request("HEAD", url), pool.request("GET", url), pool.request("GET", url))
        ]


def pool_closed(url: str) -> Any:
    with urllib3.PoolManager() as pool:
        answer = pool.request("GET", url, preload_content=False)
        first = next(answer.stream())
        answer.close()
        return first


def pool_dropped(url: str) -> Any:
    pool = urllib3.PoolManager()
    answer = pool.request("GET", url, preload_content=False)
    first = next(answer.stream())
    del answer
    pool.clear()
    gc.collect()
    return first


def pool_held(url: str) -> Any:
    answer = urllib3.PoolManager().request("GET", url, preload_content=False)
    HELD.append(answer)
    return next(answer.stream())


def pool_generated(url: str) -> Any:
    with urllib3.PoolManager() as pool:
        one = pool.request("POST", url, body=parts_of_a_body()).json()
        two = pool.request("POST", url, body=io.BytesIO(b"from a file")).json()
        return one, two


# requests and botocore


def session_json(url: str) -> Any:
    with requests.Session() as client:
        answer = client.post(url, json={"question": "what"})
        return answer.status_code, answer.reason, headers(answer), answer.content, answer.json()


def session_redirected(url: str) -> Any:
    with requests.Session() as client:
        answer = client.get(f"{url}/old")
        return (
            answer.url,
            [one.status_code for one in answer.history],
            client.cookies.keys(),
            answer.json(),
        )


def session_retrying(url: str) -> Any:
    with requests.Session() as client:
        client.mount("http://", HTTPAdapter(max_retries=Retry(3, status_forcelist=[503])))
        return client.get(url).json()


def session_exhausted(url: str) -> Any:
    with requests.Session() as client:
        client.mount("http://", HTTPAdapter(max_retries=Retry(1, backoff_factor=0)))
        try:
            client.get(url)
        except requests.RequestException as error:
            return failure(error)
    return None


def session_streamed(url: str) -> Any:
    with requests.get(url, stream=True) as answer:
        return list(answer.iter_content(None)), headers(answer)


def session_lines(url: str) -> Any:
    with requests.get(url, stream=True) as answer:
        return list(answer.iter_lines())


def session_upload(url: str) -> Any:
    return requests.post(url, files={"upload": ("a.txt", b"hello")}, timeout=60).json()


def session_generated(url: str) -> Any:
    return requests.post(url, data=parts_of_a_body()).json()


def session_timeout(url: str) -> Any:
    try:
        requests.get(url, timeout=LATE_S)
    except requests.RequestException as error:
        return failure(error)
    return None


def session_refused(_: str) -> Any:
    try:
        requests.get(REFUSED)
    except requests.RequestException as error:
        return failure(error)
    return None


def aws(url: str) -> Any:
    answer = URLLib3Session().send(AWSRequest("POST", f"{url}/model/invoke", data=b"{}").prepare())
    return answer.status_code, answer.content


def aws_streamed(url: str) -> Any:
    session = URLLib3Session()
    answer = session.send(AWSRequest("POST", url, data=b"{}", stream_output=True).prepare())
    return list(answer.raw.stream())


def aws_refused(_: str) -> Any:
    try:
        URLLib3Session().send(AWSRequest("GET", REFUSED).prepare())
    except Exception as error:
        return type(error).__qualname__, str(error)
    return None


# urllib and http.client


def opened(url: str) -> Any:
    ask = urllib.request.Request(f"{url}/a?q=1", data=b'{"question": "what"}')
    with urllib.request.urlopen(ask, timeout=60) as answer:
        return answer.status, answer.reason, headers(answer), answer.read()


def opened_pieces(url: str) -> Any:
    chunks: list[bytes] = []
    with urllib.request.urlopen(url) as answer:
        while chunk := answer.read1(7):
            chunks.append(chunk)
    return chunks


def opened_lines(url: str) -> Any:
    with urllib.request.urlopen(url) as answer:
        return list(answer)


def opened_redirected(url: str) -> Any:
    with urllib.request.urlopen(f"{url}/old") as answer:
        return answer.url, answer.read()


def opened_failing(url: str, timeout_s: float = 60) -> Any:
    try:
        with urllib.request.urlopen(url, timeout=timeout_s) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()
    except (OSError, http.client.HTTPException) as error:
        return failure(error)


def opened_late(url: str) -> Any:
    return opened_failing(url, LATE_S)


def opened_refused(_: str) -> Any:
    return [opened_failing(REFUSED), opened_failing("http://no-such-host.invalid/")]


def opened_untrusted(_: str) -> Any:
    return opened_failing(not_tls())


def connected(url: str) -> Any:
    place = urlsplit(url).netloc
    connection = http.client.HTTPConnection(place)
    found: list[Any] = []
    for method, body in (("GET", None), ("HEAD", None), ("POST", b"x"), ("POST", parts_of_a_body())):
        connection.request(method, "/", body)
        answer = connection.getresponse()
        found.append((answer.status, answer.getheaders(), answer.read()))
    connection.close()
    return found


def connected_by_hand(url: str) -> Any:
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    connection.connect()
    connection.putrequest("POST", "/")
    connection.putheader("content-length", "11")
    connection.endheaders()
    connection.send(b"by ")
    connection.send(io.BytesIO(b"own hand"))
    answer = connection.getresponse()
    buffer = bytearray(4)
    count = answer.readinto(buffer)
    rest = answer.read()
    connection.close()
    return count, bytes(buffer), rest


def connected_and_left(url: str) -> Any:
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    connection.request("GET", "/")
    answer = connection.getresponse()
    first = answer.read(4)
    answer.close()
    connection.close()
    return first


def long(gate: Gate) -> list[Reply]:
    return [sse_reply([EVENTS[0], gate, *EVENTS[1:]])]


REFUSED = f"{nobody()}/"


def answers(count: int) -> Callable[[], list[Reply]]:
    return lambda: [json_reply({"n": n}) for n in range(count)]


def events() -> list[Reply]:
    return [sse_reply(EVENTS)]


def empties() -> list[Reply]:
    return [json_reply({"a": 1}).but(parts=()), Reply((), 204), Reply((), 304)]


def moved() -> list[Reply]:
    there = [("location", "/new"), ("set-cookie", "theme=dark; Path=/")]
    return [Reply((), 302, there), json_reply({"there": True})]


URLLIB3 = [
    Case("json", answers(1), pool_json, ["complete"]),
    Case("gzip", lambda: [json_reply({"a": "b" * 500}, gzip=True)], pool_json, ["complete"]),
    Case("stream", events, pool_streamed, ["complete"]),
    Case("stream of gzip", lambda: [sse_reply(EVENTS, gzip=True)], pool_streamed, ["complete"]),
    Case("until close", lambda: [sse_reply(EVENTS, framing="close")], pool_streamed, ["complete"]),
    Case("truncated", lambda: [sse_reply(EVENTS, truncate_at=15)], pool_streamed, ["error"]),
    Case(
        "truncated length",
        lambda: [json_reply({"a": "b" * 50}, truncate_at=15)],
        pool_streamed,
        ["error"],
    ),
    Case("truncated preload", lambda: [sse_reply(EVENTS, truncate_at=15)], pool_failing, ["error"]),
    Case("hang up", lambda: [hang_up()], pool_failing, ["error"]),
    Case("reset", lambda: [hang_up(end="reset")], pool_failing, ["error"]),
    Case("timeout", lambda: [Reply(before=Gate())], pool_late, ["error"]),
    Case("timeout within", lambda: long(Gate()), pool_late_within, ["error"]),
    Case("refused, no name", lambda: [], pool_refused, ["error", "error"]),
    Case("not TLS", lambda: [], pool_untrusted, ["error"]),
    Case("proxy", answers(1), pool_proxied, ["complete"]),
    Case("proxy gone", lambda: [], pool_proxy_gone, ["error", "error"]),
    Case("tunnel refused", lambda: [Reply((), 403)], pool_tunnel_refused, ["error"]),
    Case("kept alive", answers(3), pool_reused, ["complete"] * 3),
    Case("nothing in it", empties, pool_head, ["complete"] * 3),
    Case("closed", lambda: long(Gate()), pool_closed, ["abandoned"]),
    Case("dropped", lambda: long(Gate()), pool_dropped, ["abandoned"]),
    Case("held", lambda: long(Gate()), pool_held, ["abandoned"]),
    Case("generated body", answers(2), pool_generated, ["complete"] * 2),
]

REQUESTS = [
    Case("json", answers(1), session_json, ["complete"]),
    Case("redirect", moved, session_redirected, ["complete"] * 2),
    Case(
        "retry",
        lambda: [json_reply({}, 503), json_reply({}, 503), json_reply({"ok": 1})],
        session_retrying,
        ["complete"] * 3,
    ),
    Case("exhausted", lambda: [hang_up(), hang_up()], session_exhausted, ["error"] * 2),
    Case("stream", events, session_streamed, ["complete"]),
    Case("lines", lambda: [sse_reply(EVENTS, gzip=True)], session_lines, ["complete"]),
    Case("timeout", lambda: [Reply(before=Gate())], session_timeout, ["error"]),
    Case("refused", lambda: [], session_refused, ["error"]),
    Case("upload", answers(1), session_upload, ["complete"]),
    Case("generated body", answers(1), session_generated, ["complete"]),
    Case("botocore", answers(1), aws, ["complete"]),
    Case("botocore stream", events, aws_streamed, ["complete"]),
    Case("botocore refused", lambda: [], aws_refused, ["error"]),
]

STDLIB = [
    Case("open", answers(1), opened, ["complete"]),
    Case("pieces", events, opened_pieces, ["complete"]),
    Case("lines", events, opened_lines, ["complete"]),
    Case("redirect", moved, opened_redirected, ["complete"] * 2),
    Case("not found", lambda: [json_reply({"no": 1}, 404)], opened_failing, ["complete"]),
    Case("truncated", lambda: [sse_reply(EVENTS, truncate_at=15)], opened_failing, ["error"]),
    Case(
        "truncated length",
        lambda: [json_reply({"a": "b" * 50}, truncate_at=9)],
        opened_failing,
        ["error"],
    ),
    Case("hang up", lambda: [hang_up()], opened_failing, ["error"]),
    Case("reset", lambda: [hang_up(end="reset")], opened_failing, ["error"]),
    Case("timeout", lambda: [Reply(before=Gate())], opened_late, ["error"]),
    Case("refused, no name", lambda: [], opened_refused, ["error", "error"]),
    Case("not TLS", lambda: [], opened_untrusted, ["error"]),
    Case("connection", answers(4), connected, ["complete"] * 4),
    Case("by hand", answers(1), connected_by_hand, ["complete"]),
    Case("left", lambda: long(Gate()), connected_and_left, ["abandoned"]),
]
