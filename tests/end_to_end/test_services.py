"""Services: each request is a run of its own, and replays alone, without a server."""

from __future__ import annotations

import functools
import json
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from support.starting.home import Home
from support.starting.services import RecordedService, at_once, home_with, identical, under_pytest

from playhead_cli.demo.provider import Provider

ASGI = ("-m", "uvicorn", "chat_service:app", "--port", "0")
WSGI = ("shop_service.py",)
HYPERCORN = ("-m", "hypercorn", "chat_service:app", "-b", "127.0.0.1:0")
GUNICORN = ("-m", "gunicorn", "shop_service:app", "-k", "gthread", "--threads", "4", "-b", "127.0.0.1:0")

GOLDEN_TEST = """
def test_packing(tape):
    run = tape.replay("packing")
    run.assert_steps(at_most=1, at_least=1)
    run.assert_status("success")
    assert run.messages[0].input[0].parts[0].content == "What do I pack?"
"""


GOLDENS_TEST = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("golden", sorted(Path(__file__).parent.glob("goldens/*.tape")))
def test_packing(tape, golden):
    run = tape.replay(golden)
    run.assert_steps(at_most=1, at_least=1)
    run.assert_status("success")
"""


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider(pace_s=0.002) as provider:
        yield provider


def asked_at_once(service: RecordedService, count: int, paths: tuple[str, ...]) -> None:
    """Make ``count`` requests at the same time."""

    def ask(number: int) -> httpx.Response:
        return service.client.post(paths[number % len(paths)], json={"text": f"Order {number}?"})

    answers = at_once([functools.partial(ask, number) for number in range(count)])
    assert {answer.status_code for answer in answers} == {200}


def served_at_once(
    home: Home,
    words: tuple[str, ...],
    count: int,
    paths: tuple[str, ...],
    ends: signal.Signals = signal.SIGINT,
) -> list[str]:
    """Record ``count`` requests that come at the same time; the names of their runs."""
    with RecordedService(home, *words, ends=ends) as service:
        asked_at_once(service, count, paths)
    runs = home.runs("-n", str(count + 10))
    assert len(runs) == count
    assert {run["status"] for run in runs} == {"success"}
    assert all(run["missing"] == [] for run in runs)
    return [run["name"] for run in runs]


UPLOAD, PACKING, BROKEN = 2, 9, 10
"""Of the ten requests to `chat`, the numbers of those that are not like the others."""


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Home:
    """A service that was recorded with ten requests, six of them at the same time."""
    home = home_with(tmp_path_factory.mktemp("chat"), provider, "chat_service.py")
    with RecordedService(home, *ASGI) as service:
        service.client.post("/chat", json={"text": "Now?"})
        service.client.post("/upload", content=iter([b"a" * 10, b"b" * 20]))
        asked_at_once(service, 6, ("/chat", "/stream", "/thread"))
        service.client.post("/stream", json={"text": "What do I pack?"})
        assert service.client.get("/broken?how=badly").status_code == 500
    return home


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Home:
    """A service under threads: four requests at the same time, then two of two calls each."""
    home = home_with(tmp_path_factory.mktemp("shop"), provider, "shop_service.py")
    with RecordedService(home, *WSGI) as service:
        asked_at_once(service, 4, ("/chat", "/stream"))
        for number in range(2):
            service.client.post("/twice", json={"text": f"Order {number}?"})
    return home


@contextmanager
def changed(home: Home, program: str, old: str, new: str) -> Iterator[None]:
    """Today the program is another one."""
    path = home.folder / program
    source = path.read_text()
    assert old in source
    path.write_text(source.replace(old, new))
    try:
        yield
    finally:
        path.write_text(source)


def one_of_each(home: Home, names: Iterable[str]) -> dict[str, str]:
    """A run of each request, by what was asked."""
    return {home.run(name).requests[0].key: name for name in names}


def test_requests_that_come_at_the_same_time_replay_identical_alone(chat: Home):
    names = one_of_each(chat, (f"chat_service-{number}" for number in range(UPLOAD + 1, PACKING)))
    asked = {key: identical(chat, name)["asked"] for key, name in names.items()}
    assert asked == {"POST /chat": 2, "POST /stream": 1, "POST /thread": 1}


@pytest.mark.acceptance
@pytest.mark.timeout(900)
def test_fifty_requests_at_the_same_time_replay_identical_alone(tmp_path: Path, provider: Provider):
    home = home_with(tmp_path, provider, "chat_service.py")
    for name in served_at_once(home, ASGI, 50, ("/chat", "/stream", "/thread")):
        identical(home, name)


def test_requests_in_threads_replay_identical_alone(shop: Home):
    names = one_of_each(shop, (run["name"] for run in shop.runs()))
    for path in ("/chat", "/stream"):
        assert identical(shop, names[f"POST {path}"])["asked"] == 1


@pytest.mark.acceptance
@pytest.mark.timeout(900)
def test_fifty_requests_in_threads_replay_identical_alone(tmp_path: Path, provider: Provider):
    home = home_with(tmp_path, provider, "shop_service.py")
    for name in served_at_once(home, WSGI, 50, ("/chat", "/stream")):
        identical(home, name)


def test_workers_that_were_forked_serve_runs_too(tmp_path: Path, provider: Provider):
    home = home_with(tmp_path, provider, "shop_service.py")
    # At ^C a worker of gunicorn shuts its pool down in the handler of the signal. Where that comes while
    # the pool starts a thread, as for a connection that is closed, it waits for itself for 30 s.
    names = served_at_once(home, GUNICORN, 2, ("/chat", "/stream"), signal.SIGTERM)
    assert sorted(names) == ["shop_service-1", "shop_service-2"]
    for name in names:
        identical(home, name)


def test_workers_that_were_spawned_serve_runs_too(tmp_path: Path, provider: Provider):
    home = home_with(tmp_path, provider, "chat_service.py")
    [name] = served_at_once(home, HYPERCORN, 1, ("/stream",))
    identical(home, name)


def test_a_golden_of_a_request_runs_under_pytest_without_a_server(chat: Home):
    packing = "--name", "packing", "--dir", "goldens"
    added = chat.playhead("golden", "add", f"chat_service-{PACKING}", *packing)
    assert added.returncode == 0, added.stderr
    (chat.folder / "test_packing.py").write_text(GOLDEN_TEST)
    done = under_pytest(chat)
    assert done.returncode == 0, done.stdout
    with changed(chat, "chat_service.py", '"data: {chunk', '"said: {chunk'):
        done = under_pytest(chat)
    assert done.returncode == 1
    assert "inbound response to POST /stream" in done.stdout


@pytest.mark.acceptance
def test_goldens_of_requests_in_threads_run_under_pytest_without_a_server(
    tmp_path: Path, provider: Provider
):
    home = home_with(tmp_path, provider, "shop_service.py")
    paths = "/chat", "/stream"
    with RecordedService(home, *WSGI) as service:

        def ask(path: str) -> httpx.Response:
            return service.client.post(path, json={"text": "What do I pack?"})

        at_once([functools.partial(ask, path) for path in (*paths, *paths)])
    names = {home.run(run["name"]).requests[0].key: run["name"] for run in home.runs()}
    for name in names.values():
        words = "--name", name, "--dir", "goldens"
        assert home.playhead("golden", "add", name, *words).returncode == 0
    (home.folder / "test_packing.py").write_text(GOLDENS_TEST)
    done = under_pytest(home)
    assert done.returncode == 0, done.stdout
    program = home.folder / "shop_service.py"
    text = program.read_text()
    changes = {'f"data: {choices': 'f"said: {choices', '"answer": answer(question)': '"said": 1'}
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    program.write_text(text)
    done = under_pytest(home)
    assert done.returncode == 1 and "2 failed" in done.stdout
    assert "inbound response to POST /stream" in done.stdout
    assert "inbound response to POST /chat" in done.stdout


def test_ls_has_a_line_for_each_request_and_none_for_the_process(chat: Home):
    runs = chat.runs("-n", "99")
    assert {run["name"] for run in runs} == {f"chat_service-{n}" for n in range(1, BROKEN + 1)}
    assert all(run["missing"] == [] for run in runs)
    assert [(run["name"], run["status"], run["steps"]) for run in (runs[0], runs[-1])] == [
        (f"chat_service-{BROKEN}", "failure", 0),
        ("chat_service-1", "success", 2),
    ]
    assert {run["status"] for run in runs[1:]} == {"success"}
    every = chat.runs("--all", "-n", "99")
    assert {run["mode"] for run in every} == {"record", "service"}
    process = next(run["name"] for run in every if run["mode"] == "service")
    refused = chat.playhead("replay", process)
    assert refused.returncode == 2
    assert "each of them is a run of its own" in refused.stderr
    report = identical(chat, f"chat_service-{BROKEN}")
    assert report["outputs"]["inbound response"]["tape"].startswith("500")


def test_a_changed_service_answers_otherwise_and_the_report_says_so(chat: Home):
    name = f"chat_service-{UPLOAD}"
    identical(chat, name)
    with changed(chat, "chat_service.py", '"size": size', '"size": size + 1'):
        status, report = chat.report(name)
    assert status == 1
    first = report["first_divergence"]
    assert (first["kind"], first["what"]) == ("inbound", "inbound response to POST /upload")
    assert (json.loads(first["tape"] or "0"), json.loads(first["now"] or "0")) == (30, 31)


@pytest.mark.acceptance
def test_requests_of_one_process_come_together_again_in_another_store(
    tmp_path: Path, provider: Provider
):
    home = home_with(tmp_path, provider, "chat_service.py")
    served_at_once(home, ASGI, 2, ("/chat",))
    there = Home(tmp_path / "there", provider.environment)
    there.folder = home.folder
    for run in home.runs():
        for form in ("tape", "otlp"):
            file = f"{run['name']}.{form}.jsonl" if form == "otlp" else f"{run['name']}.tape"
            assert home.playhead("export", run["name"], "--format", form, "-o", file).returncode == 0
            assert there.playhead("import", file).returncode == 0
        # A run that comes back to its store is read once.
        assert home.playhead("import", f"{run['name']}.tape").returncode == 0
    assert sorted((run["name"], run["missing"]) for run in there.runs()) == [
        ("chat_service-1", []),
        ("chat_service-2", []),
    ]
    assert identical(there, "chat_service-2", "--trust")["asked"] == 2
    assert identical(home, "chat_service-1")["asked"] == 2


def test_a_request_is_forked_behind_what_is_on_its_tape(shop: Home):
    origin = shop.runs()[0]
    done = shop.playhead("fork", f"{origin['name']}:2", "--edit", "request.model=other")
    assert done.returncode == 0, done.stderr
    assert "step 1 replayed, 1 response from the recording" in done.stderr
    fork = shop.run("last")
    assert fork.origin.startswith(origin["trace_id"])
    asked = [json.loads(exchange.request) for exchange in fork.exchanges]
    assert [one["model"] for one in asked] == ["gpt-5.5", "other"]
    assert "Order 1?" in asked[0]["messages"][0]["content"]
    assert identical(shop, "last")["asked"] == 2
