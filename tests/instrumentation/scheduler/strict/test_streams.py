"""Two threads read streams at once: who waits for a piece of one holds up nobody."""

import threading
import urllib.request

import httpx
import pytest
import requests
import urllib3
from support.servers.scripted import Gate, ScriptedServer, sse_reply
from support.tapes.sessions import record, replay

from playhead_core.settings import Settings
from playhead_instrumentation.session import session

STRICT = Settings(quiet=True, level="strict")
PIECES = [b"data: %d\n\n" % number for number in range(4)]


def by_urllib(url):
    with urllib.request.urlopen(url) as response:
        while piece := response.read1(1000):
            yield piece


def by_requests(url):
    with requests.get(url, stream=True) as response:
        yield from response.iter_content(None)


def by_urllib3(url):
    response = urllib3.PoolManager().request("GET", url, preload_content=False)
    yield from response.stream()
    response.release_conn()


def by_httpx(url):
    with httpx.stream("GET", url, timeout=60) as response:
        yield from response.iter_raw()


@pytest.mark.parametrize(
    "read", [by_urllib, by_requests, by_urllib3, by_httpx], ids=lambda one: one.__name__
)
def test_two_threads_stream_at_once(read):
    """One has its first piece and waits for the second until the other has all of its own."""

    def program(live):
        seen, begun, found = [], threading.Event(), {}

        def slow():
            found["place"] = threading.get_ident()
            for piece in read(f"{server.url}/slow"):
                seen.append(("slow", piece))
                begun.set()

        def quick():
            begun.wait()
            if live:
                held.wait_reached()
            for piece in read(f"{server.url}/quick"):
                seen.append(("quick", piece))
            if live:
                ledger = session.current().driver.gate.ledger
                found["away"] = found["place"] in ledger._away
                found["stuck"] = found["place"] in ledger._stuck
                held.open()

        threads = [threading.Thread(target=slow), threading.Thread(target=quick)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return seen, found

    held = Gate()
    with ScriptedServer() as server:
        server.on("/slow", sse_reply([PIECES[0], held, *PIECES[1:]]))
        server.on("/quick", sse_reply(PIECES))
        (seen, found), tape = record(lambda: program(True), settings=STRICT)
    assert (found["away"], found["stuck"]) == (True, False)
    assert b"".join(piece for who, piece in seen if who == "slow") == b"".join(PIECES)
    assert [who for who, _ in seen[:1]] == ["slow"]
    assert seen[1][0] == "quick"
    for _ in range(3):
        assert replay(lambda: program(False), tape)[0][0] == seen
