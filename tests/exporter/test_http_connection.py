"""Answers as servers and proxies write them, and as they break off."""

import socket
import threading
from contextlib import contextmanager

import pytest

from playhead_exporter.shipping.http_connection import (
    LONGEST_ANSWER_BYTES,
    LONGEST_HEAD_BYTES,
    HttpConnection,
    NotHttp,
)

PATIENCE_S = 60.0


@contextmanager
def server(*connections):
    """Each connection answers its requests, which have no body, with the given bytes, and ends."""
    heads = []

    def serve():
        for answers in connections:
            with listening.accept()[0] as taken, taken.makefile("rb") as coming:
                for answer in answers:
                    heads.append(b"".join(iter(coming.readline, b"\r\n")))
                    taken.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        connection = HttpConnection(f"http://127.0.0.1:{listening.getsockname()[1]}/base", None)
        yield connection, heads
        connection.close()
        thread.join(PATIENCE_S)


def ask(connection, **headers):
    return connection.ask("GET", "/base/x", headers, None, PATIENCE_S, PATIENCE_S)


WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Said: a: b \r\n\r\nok"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"1;x=y\r\no\r\n1\r\nk\r\n0\r\nTrailer: t\r\n\r\n"
)


@pytest.mark.parametrize("first", [WHOLE, CHUNKED, b"HTTP/1.1 204 No Content\r\n\r\n"])
def test_a_connection_carries_another_request(first):
    with server([first, WHOLE]) as (connection, heads):
        ask(connection)
        answer = ask(connection, Authorization="Bearer t")
        assert (answer.status, answer.body, answer.headers["x-said"]) == (200, b"ok", "a: b")
        assert heads[1].startswith(b"GET /base/x HTTP/1.1\r\nHost: 127.0.0.1:")
        assert b"\r\nAuthorization: Bearer t\r\n" in heads[1]


def test_a_body_in_chunks_is_joined():
    with server([CHUNKED]) as (connection, _):
        assert ask(connection).body == b"ok"


def test_interim_answers_are_skipped():
    with server([b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + WHOLE]) as (connection, _):
        answer = ask(connection)
        assert (answer.status, "link" in answer.headers) == (200, False)


@pytest.mark.parametrize(
    "first",
    [
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\n\r\nok",
        WHOLE + b"HTTP/1.1 408 Request Timeout\r\n\r\n",
    ],
    ids=["version", "header", "no length", "more than asked for"],
)
def test_a_new_connection_follows_one_that_ends(first):
    with server([first], [WHOLE]) as (connection, _):
        assert ask(connection).body == b"ok"
        assert ask(connection).status == 200


def test_a_long_answer_is_cut_off():
    size = 2 * LONGEST_ANSWER_BYTES
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size
    with server([head + b"x" * LONGEST_ANSWER_BYTES], [WHOLE]) as (connection, _):
        assert len(ask(connection).body) == LONGEST_ANSWER_BYTES
        assert ask(connection).body == b"ok"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok",
        CHUNKED[:-20],
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
        b"HTTP/2 200\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n",
        b"x" * (LONGEST_HEAD_BYTES + 1),
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * LONGEST_HEAD_BYTES,
    ],
    ids=[
        "none",
        "short",
        "short chunk",
        "length",
        "negative length",
        "version",
        "protocol",
        "line",
        "head",
    ],
)
def test_what_is_no_whole_answer_is_refused(answer):
    with server([answer], [WHOLE]) as (connection, _):
        with pytest.raises((NotHttp, ConnectionError)):
            ask(connection)
        assert ask(connection).body == b"ok"


def test_a_header_has_one_line():
    with server([WHOLE]) as (connection, heads):
        with pytest.raises(ValueError, match="more than one line"):
            ask(connection, Authorization="a\r\nX-Other: b")
        assert ask(connection).status == 200
        assert len(heads) == 1
