"""Services whose requests do not go smoothly, and those of Django: each replays identical alone."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import httpx
import pytest
from support.starting.home import Home
from support.starting.services import RecordedService, home_with, identical
from websockets.sync.client import connect

from playhead_cli.demo.provider import Provider

EDGES = ("-m", "uvicorn", "edges_service:app", "--port", "0")
DJANGO = {
    "wsgi": ("django_service.py",),
    "asgi": ("-m", "uvicorn", "django_service:asgi", "--port", "0"),
}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider(pace_s=0.002) as provider:
        yield provider


def by_key(home: Home) -> dict[str, str]:
    """The runs by what they were asked."""
    return {home.run(run["name"]).requests[0].key: run["name"] for run in home.runs()}


def cut_upload(url: str) -> None:
    """A client that goes in the middle of what it has announced."""
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(b"POST /upload HTTP/1.1\r\nhost: here\r\ncontent-length: 100\r\n\r\n" + b"x" * 40)
        client.sendall(b"y" * 20)


@pytest.fixture(scope="module")
def edges(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Home:
    """A home in which all of that has happened once, at a time."""
    home = home_with(tmp_path_factory.mktemp("edges"), provider, "edges_service.py")
    with RecordedService(home, *EDGES) as service:
        with service.client.stream("GET", "/endless") as answer:
            pieces = answer.iter_raw()
            assert len(next(pieces)) + len(next(pieces)) > 0
        cut_upload(service.url)
        with pytest.raises(httpx.RemoteProtocolError):
            service.client.get("/breaks")
        assert service.client.get("/behind").status_code == 200
        with connect(f"ws{service.url[4:]}/talk", subprotocols=["chat"], open_timeout=60) as talking:
            for text in ("one", "two"):
                talking.send(text)
                assert isinstance(talking.recv(), str)
                assert isinstance(talking.recv(), bytes)
    return home


@pytest.mark.parametrize(
    ("key", "ended", "asked"),
    [
        ("GET /endless", "complete", 0),
        ("POST /upload", "ClientDisconnect", 0),
        ("GET /breaks", "ValueError: in the middle", 1),
        ("GET /behind", "complete", 2),
        ("GET /talk", "complete", 2),
    ],
)
def test_it_replays_identical(edges, key, ended, asked):
    name = by_key(edges)[key]
    assert ended in edges.run(name).requests[0].how
    assert identical(edges, name)["asked"] == asked


@pytest.mark.parametrize("interface", ["asgi", pytest.param("wsgi", marks=pytest.mark.acceptance)])
def test_requests_to_django_replay_identical(tmp_path, provider, interface):
    home = home_with(tmp_path, provider, "django_service.py")
    paths = ("/chat", "/stream", "/later")
    with RecordedService(home, *DJANGO[interface]) as service:
        for path in paths:
            assert service.client.post(path, json={"text": f"{path}?"}).status_code == 200
        assert service.client.get("/broken").status_code == 500
    named = by_key(home)
    assert sorted(named) == ["GET /broken", "POST /chat", "POST /later", "POST /stream"]
    for key in ("POST /chat", "POST /stream", "POST /later")[: 2 if interface == "wsgi" else 3]:
        assert identical(home, named[key])["asked"] == 1
    assert json.loads(home.run(named["POST /chat"]).requests[0].pieces[0])["answer"]
