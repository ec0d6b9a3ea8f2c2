"""A request whose caller has disconnected ends early."""

import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from playhead_receiver.api.routes import search
from playhead_receiver.server import Receiver


def test_sums_that_nobody_waits_for_any_more_end(receiver: Receiver, monkeypatch: pytest.MonkeyPatch):
    begun, over = threading.Event(), threading.Event()

    def endless(store: Any, wanted: Any) -> Iterator[Any]:
        [run] = store.runs(wanted.query)
        try:
            while True:
                yield run
                begun.set()
        finally:
            over.set()

    monkeypatch.setattr(search, "ask_runs", endless)
    url = httpx.URL(receiver.query_endpoint)
    with socket.create_connection((url.host, url.port)) as asking:
        asking.sendall(f"GET /v1/stats HTTP/1.1\r\nhost: {url.host}:{url.port}\r\n\r\n".encode())
        assert begun.wait(60)
        assert not over.is_set()
    assert over.wait(60)
