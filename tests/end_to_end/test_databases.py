"""Services that keep their state in PostgreSQL and Redis replay when both servers are gone."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.servers.postgres import PostgresServer
from support.servers.redis import RedisServer
from support.starting.home import Home
from support.starting.services import RecordedService, at_once, home_with, identical

from playhead_cli.demo.provider import Provider

SERVICE = ("--level", "causal", "-m", "uvicorn", "orders_service:app", "--port", "0")
PASSWORD = "hidden-in-the-cache-77"


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider() as provider:
        yield provider


def orders(folder: Path, provider: Provider, count: int, driver: str) -> Home:
    """A service recorded with ``count`` requests, at the same time and one after the other.

    One of them asks for a table before and after it makes it. Its servers are stopped. ``driver``: of
    its asynchronous engine; the other engine has psycopg.
    """
    home = home_with(folder, provider, "orders_service.py")
    database, cache = PostgresServer(), RedisServer(PASSWORD)
    try:
        database.start()
        home.environ["DATABASE_URL"] = database.url().replace("postgresql:", "postgresql+psycopg:")
        home.environ["ASKED_URL"] = database.url().replace("postgresql:", f"postgresql+{driver}:")
        home.environ["REDIS_URL"] = cache.url.replace("//", f"//:{PASSWORD}@")
        with RecordedService(home, *SERVICE) as service:

            def ask(number: int) -> httpx.Response:
                path = f"/orders/shoe-{number // 2 % 20}"
                return service.client.post(path) if number % 2 == 0 else service.client.get(path)

            together = count // 2
            answers = at_once([functools.partial(ask, number) for number in range(together)])
            answers += [ask(number) for number in range(together, count - 1)]
            answers.append(service.client.post("/archive"))
            assert {answer.status_code for answer in answers} <= {200, 404, 409}
            assert answers[-1].json() == {"archived": 0}
            assert sum(answer.status_code == 200 for answer in answers) >= count // 2
    finally:
        database.remove()
        cache.stop()
    return home


def all_identical(home: Home, count: int) -> None:
    runs = home.runs("-n", str(count + 10))
    assert len(runs) == count
    for run in runs:
        report = identical(home, run["name"])
        assert report["asked"] >= 2


def test_requests_replay_identical_without_the_servers(tmp_path: Path, provider: Provider):
    home = orders(tmp_path, provider, 4, "asyncpg")
    all_identical(home, 4)
    stored = b"".join(one.read_bytes() for one in home.data_dir.rglob("*") if one.is_file())
    assert PASSWORD.encode() not in stored


@pytest.mark.acceptance
@pytest.mark.timeout(900)
@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_fifty_requests_replay_identical_without_the_servers(
    tmp_path: Path, provider: Provider, driver: str
):
    all_identical(orders(tmp_path, provider, 50, driver), 50)
