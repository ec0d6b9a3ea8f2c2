"""Consumers of queues: each call of what is marked with `playhead.run` is a run, and called again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.starting.home import Home
from support.starting.services import under_pytest

from playhead_cli.demo.provider import Provider

SCRIPT = "queue_consumer.py"
AGENT = Path(__file__).parent / "agents" / SCRIPT
GOLDEN_TEST = """
def test_refund(tape):
    run = tape.replay("refund")
    run.assert_steps(at_most=1, at_least=1)
    run.assert_status("success")
"""


@pytest.fixture(scope="module")
def consumed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home in which the consumer has worked off its queues."""
    folder = tmp_path_factory.mktemp("consumer")
    with Provider(pace_s=0.002) as provider:
        home = Home(folder, provider.environment)
        home.folder = folder / "work"
        home.folder.mkdir()
        shutil.copy(AGENT, home.folder)
        done = home.playhead("record", SCRIPT, "3")
        assert done.returncode == 0, done.stderr
        yield home


def response(home: Home, name: str) -> dict[str, object]:
    """What a run gave then and gives now, which is the same."""
    status, report = home.report(name)
    assert report["divergences"] == []
    assert (status, report["verdict"]) == (0, "identical")
    assert report["fidelity"]["exact"] == report["asked"]
    return report["outputs"]["inbound response"]


def test_each_message_is_a_run(consumed):
    runs = [(run["name"], run["status"], run["steps"]) for run in consumed.runs()]
    assert sorted(runs) == [
        *((f"refund-{number}", "success", 1) for number in (1, 2, 3)),
        ("refund-4", "failure", 0),
        ("tidy-1", "success", 1),
        ("triage-1", "success", 2),
        ("triage-2", "success", 2),
    ]
    assert [run["name"] for run in consumed.runs("--all") if run["mode"] == "service"] == [
        "queue_consumer-1"
    ]
    request = consumed.run("refund-1").requests[0]
    assert (request.key, request.application) == ("refund", "__main__:refund")


@pytest.mark.parametrize("name", ["refund-2", "refund-4", "triage-1"])
def test_a_message_alone_is_replayed(consumed, name):
    gave = response(consumed, name)
    failed = name == "refund-4"
    assert str(gave["tape"]).startswith("error: ValueError: no order 99" if failed else "complete")


def test_a_block_is_a_run_that_nobody_can_call(consumed):
    refused = consumed.playhead("replay", "tidy-1")
    assert refused.returncode == 2
    assert "tidy is not a function that can be called again" in refused.stderr
    assert "@playhead.run" in refused.stderr
    run = consumed.run("tidy-1").requests[0]
    assert len(json.loads(run.pieces[0])) > 0


def test_a_message_is_forked(consumed):
    done = consumed.playhead("fork", "refund-1:1", "--edit", "request.model=gpt-4.1")
    assert done.returncode == 0, done.stderr
    assert "refund-5 success, 1 steps" in done.stderr
    fork = consumed.run("refund-5")
    assert fork.origin.startswith(consumed.run("refund-1").trace_id)
    assert json.loads(fork.exchanges[0].request)["model"] == "gpt-4.1"


def test_a_golden_of_a_message_calls_the_function_of_today(consumed):
    folder = consumed.folder
    added = consumed.playhead("golden", "add", "refund-1", "--name", "refund", "--dir", "goldens")
    assert added.returncode == 0, added.stderr
    (folder / "test_refund.py").write_text(GOLDEN_TEST)

    done = under_pytest(consumed, "test_refund.py")
    assert done.returncode == 0, done.stdout
    program = folder / SCRIPT
    recorded = program.read_text()
    program.write_text(recorded.replace('{"answer": answer', '{"said": answer'))
    done = under_pytest(consumed, "test_refund.py")
    program.write_text(recorded)
    assert done.returncode == 1
    assert "inbound response to refund" in done.stdout
