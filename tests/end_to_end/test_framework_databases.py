"""Programs of frameworks with state in PostgreSQL and Redis replay when both servers are gone."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest
from support.servers.postgres import PostgresServer
from support.servers.redis import RedisServer
from support.starting.home import PATIENCE_S, Home
from support.starting.running import AGENTS

APART = Path(__file__).parents[2] / ".venv" / "apart-langgraph"


def home_for(folder: Path, program: str) -> Home:
    (folder / "work").mkdir()
    shutil.copy(AGENTS / program, folder / "work")
    home = Home(folder, {})
    home.folder = folder / "work"
    return home


def on_postgres(home: Home, *words: str) -> None:
    """Record a program beside a server of its own, which is gone then."""
    server = PostgresServer()
    try:
        server.start()
        for environ in (home.environ, home.bare):
            environ["DATABASE_URL"] = server.url()
        done = home.playhead("record", *words)
        assert done.returncode == 0, done.stderr
    finally:
        server.remove()


def identical(home: Home, name: str, asked: int) -> None:
    status, report = home.report(name)
    assert report["divergences"] == []
    assert (status, report["verdict"]) == (0, "identical")
    assert report["fidelity"]["exact"] == report["asked"] >= asked


def test_django_on_postgresql(tmp_path: Path):
    home = home_for(tmp_path, "shop_django.py")
    on_postgres(home, "--level", "causal", "shop_django.py")
    identical(home, "shop_django-1", 15)


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("how", "level"),
    [("sync", "strict"), ("pool", "strict"), ("together", "strict"), ("async", "causal")],
)
def test_savers_of_langgraph_on_postgresql(tmp_path: Path, how: str, level: str):
    """Threads of a blocking saver take turns at one connection: an order that *strict* alone holds."""
    home = home_for(tmp_path, "saved_graphs.py")
    for environ in (home.environ, home.bare):
        environ["PYTHONPATH"] = str(APART)
    on_postgres(home, "--level", level, "saved_graphs.py", how)
    identical(home, "saved_graphs-1", 40)


def celery_on_redis(home: Home, level: str, pool: str, asks: str, *more: str) -> None:
    """Record a client and a worker, which is ended by a signal. Replay both."""
    server = RedisServer()
    try:
        for environ in (home.environ, home.bare):
            environ["REDIS_URL"] = server.url
        quiet = ("--without-mingle", "--without-gossip", "--without-heartbeat")
        words = (
            "-q",
            "-A",
            "celery_tasks",
            "worker",
            "-l",
            "INFO",
            *quiet,
            "--pool",
            pool,
            "-c",
            "2",
            *more,
        )
        worker = home.start("record", "--level", level, "-m", "celery", *words)
        assert worker.stderr is not None
        assert any("ready." in line for line in worker.stderr)
        client = home.playhead("record", "--level", level, "celery_tasks.py", asks)
        worker.send_signal(signal.SIGTERM)
        worker.communicate(timeout=PATIENCE_S)
    finally:
        server.stop()
    assert (client.returncode, worker.returncode) == (0, 0), client.stderr
    runs = home.runs("--all")
    assert len(runs) == 2
    for run in runs:
        identical(home, run["name"], 5)


def test_celery_on_redis(tmp_path: Path):
    celery_on_redis(home_for(tmp_path, "celery_tasks.py"), "causal", "prefork", "one")


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("level", "pool"),
    [
        ("causal", "solo"),
        ("causal", "prefork"),
        ("strict", "solo"),
        ("strict", "prefork"),
        ("strict", "threads"),
    ],
)
def test_more_of_celery_on_redis(tmp_path: Path, level: str, pool: str):
    celery_on_redis(home_for(tmp_path, "celery_tasks.py"), level, pool, "several")


@pytest.mark.acceptance
def test_celery_whose_processes_are_replaced(tmp_path: Path):
    more = ("--max-tasks-per-child", "1")
    celery_on_redis(home_for(tmp_path, "celery_tasks.py"), "causal", "prefork", "several", *more)
