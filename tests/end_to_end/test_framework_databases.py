"""Programs of frameworks with state in PostgreSQL and Redis replay when both servers are gone."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.home import PATIENCE_S, Home
from support.postgres import PostgresServer
from support.redis import RedisServer
from support.running import AGENTS

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
@pytest.mark.parametrize("how", ["sync", "pool", "async"])
def test_savers_of_langgraph_on_postgresql(tmp_path: Path, how: str):
    """Its threads take turns at one connection: an order that *strict* alone holds."""
    home = home_for(tmp_path, "saved_graphs.py")
    for environ in (home.environ, home.bare):
        environ["PYTHONPATH"] = str(APART)
    on_postgres(home, "--level", "strict", "saved_graphs.py", how)
    identical(home, "saved_graphs-1", 40)


def recorded_worker(home: Home, level: str, *words: str, asks: str) -> str:
    """Record a worker of Celery that does what a client asks, and is ended by a signal; its run."""
    server = RedisServer()
    try:
        for environ in (home.environ, home.bare):
            environ["REDIS_URL"] = server.url
        quiet = ("--without-mingle", "--without-gossip", "--without-heartbeat")
        given = ("-q", "-A", "celery_tasks", "worker", "-l", "INFO", *quiet, *words)
        worker = home.start("record", "--level", level, "-m", "celery", *given)
        assert worker.stderr is not None
        assert any("ready." in line for line in worker.stderr)
        asked = [sys.executable, "celery_tasks.py", asks]
        client = subprocess.run(
            asked, cwd=home.folder, env=home.environ, timeout=PATIENCE_S, check=False
        )
        worker.send_signal(signal.SIGTERM)
        worker.communicate(timeout=PATIENCE_S)
    finally:
        server.stop()
    assert (client.returncode, worker.returncode) == (0, 0)
    [run] = home.runs()
    return run["name"]


def test_a_worker_of_celery_with_a_process_of_its_own(tmp_path: Path):
    home = home_for(tmp_path, "celery_tasks.py")
    name = recorded_worker(home, "causal", "-c", "1", asks="one")
    identical(home, name, 20)


@pytest.mark.acceptance
@pytest.mark.parametrize("level", ["causal", "strict"])
@pytest.mark.parametrize("pool", ["solo", "prefork", "threads"])
def test_workers_of_celery_on_redis(tmp_path: Path, level: str, pool: str):
    home = home_for(tmp_path, "celery_tasks.py")
    name = recorded_worker(home, level, f"--pool={pool}", "-c", "2", asks="several")
    identical(home, name, 20)
