"""Services that call each other: one trace, one run, one tree; each is replayed from its own tape."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.starting.home import Home
from support.starting.running import AGENTS
from support.starting.services import RecordedService, home_with

from playhead_cli.demo.provider import Provider
from playhead_replay.run.spans import Span

FRONT = ("-m", "uvicorn", "front_service:app", "--port", "0")
BACK = ("-m", "uvicorn", "back_service:app", "--port", "0")

CALLER = """
import os
import httpx
answer = httpx.post(f"{os.environ['BACK_URL']}/check", json={"number": 3})
print(sorted(answer.request.headers), answer.json())
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A service that was called by another one and by a program, all recorded."""
    with Provider(pace_s=0.002) as provider:
        home = home_with(tmp_path_factory.mktemp("called"), provider, "back_service.py")
        shutil.copy(AGENTS / "front_service.py", home.folder)
        (home.folder / "caller.py").write_text(CALLER)
        with RecordedService(home, *BACK) as back:
            home.environ["BACK_URL"] = back.url
            with RecordedService(home, *FRONT) as front:
                assert len(front.client.post("/order/7").json()["checks"]) == 2
            assert home.playhead("record", "caller.py").returncode == 0
            assert back.client.post("/check", json={"number": 5}).status_code == 200
        yield home


def tree(spans: list[Span]) -> list[tuple[str, list]]:
    """Names of the requests among these spans, with those below them."""
    found: list[tuple[str, list]] = []
    for span in spans:
        below = tree(span.children)
        is_request = "url.path" in span.attributes and "playhead.exchange.id" in span.attributes
        found += [(span.name, below)] if is_request else below
    return found


def test_a_request_and_those_that_it_causes_are_one_run(home: Home):
    runs = [(run["agent"], run["status"], run["missing"]) for run in home.runs()]
    assert runs == [(agent, "success", []) for agent in ("back_service", "caller", "front_service")]
    assert tree(home.run("front_service-1").roots) == [
        ("POST /order/7", [("POST /check", []), ("POST /check", [])])
    ]
    assert tree(home.run("caller-1").roots) == [("POST /check", [])]


def test_show_prints_one_tree_with_the_steps_of_both_services(home: Home):
    done = home.playhead("show", "front_service-1")
    lines = done.stdout.splitlines()
    assert lines[1].strip() == "-m uvicorn front_service:app --port 0"
    assert lines[2].strip() == "POST /order/7 → 200"
    steps = [line.split()[2] for line in lines if line[:3].strip().isdigit()]
    assert steps == ["chat", "POST", "chat", "POST", "chat"]
    [answer] = [line for line in lines if line.startswith("←")]
    assert '"plan"' in answer
    indents = [line.index("chat") - line.index("+") for line in lines if " chat " in line]
    assert indents[1] == indents[2] > indents[0]


def test_a_replay_executes_each_service_from_its_own_tape(home: Home):
    status, report = home.report("front_service-1")
    assert (status, report["verdict"], report["divergences"]) == (0, "identical", [])
    assert report["fidelity"]["exact"] == report["asked"] == 5
    assert [(one["name"], one["verdict"], one["asked"]) for one in report["processes"]] == [
        ("-m uvicorn front_service:app", "identical", 3),
        ("-m uvicorn back_service:app", "identical", 2),
    ]
    status, report = home.report("caller-1")
    assert (status, report["verdict"]) == (0, "identical")
    assert [one["name"] for one in report["processes"]] == ["caller.py", "-m uvicorn back_service:app"]


def test_the_program_does_not_see_the_header(home: Home):
    for name in ("front_service-1", "caller-1"):
        assert b"traceparent" not in home.run(name).outputs.stdout.data


def test_a_changed_service_is_found_in_the_run_of_its_caller(home: Home):
    program = home.folder / "back_service.py"
    source = program.read_text()
    program.write_text(source.replace("Check {", "Prove {"))
    try:
        status, report = home.report("front_service-1")
    finally:
        program.write_text(source)
    assert status != 0
    assert {one["process"] for one in report["divergences"]} == {"-m uvicorn back_service:app"}
    assert report["processes"][0]["verdict"] == "identical"


def test_a_service_whose_code_is_elsewhere_is_not_replayed(home: Home, tmp_path: Path):
    program = home.folder / "back_service.py"
    program.rename(tmp_path / program.name)
    try:
        status, report = home.report("front_service-1")
    finally:
        (tmp_path / program.name).rename(program)
    assert (status, report["verdict"]) == (0, "identical")
    front, back = report["processes"]
    assert (front["verdict"], back["verdict"]) == ("identical", "not replayed")
    assert back["detail"] == f"its application is not here: back_service in {home.folder}"


def test_a_fork_of_the_caller_calls_the_service_again(home: Home):
    """Only the recorded request of the caller is executed again; the service is not running now."""
    done = home.playhead("fork", "front_service-1:1", "--edit", "request.model=other")
    assert "POST /order/7: 500" in done.stderr
    assert "httpx.ConnectError" in done.stdout + done.stderr


def test_an_exported_run_has_both_services(home: Home):
    exported = home.playhead("export", "front_service-1", "--format", "tape", "-o", "both.tape")
    assert exported.returncode == 0 and "2 processes, 5 steps" in exported.stderr
    status, report = home.report("both.tape", "--trust")
    assert (status, len(report["processes"])) == (0, 2)
