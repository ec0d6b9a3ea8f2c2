"""The demo as a user runs it: a clean home, one command, and its three next commands."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from support.servers import ports
from support.starting import warm
from support.starting.inner_pytest import ONLY_OURS

from playhead_cli.demo.tour import Trap

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


def playhead(home, *arguments, **environ):
    variables = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **environ}
    return warm.playhead(*arguments, environ=variables, cwd=ROOT, timeout_s=500)


@pytest.fixture(scope="module")
def demo(home):
    return playhead(home, "demo")


def test_everything_is_identical(demo):
    assert demo.returncode == 0, demo.stdout
    assert demo.stdout.count("\nidentical (exit 0)\n") == 3
    assert "0 connections tried" in demo.stdout


def test_the_agents_answers_are_printed(demo):
    assert "For Oslo (-4 °C, snow) pack a warm coat." in demo.stdout
    assert "A flight recorder turns an accident into evidence." in demo.stdout
    assert "Refund 49.00 EUR." in demo.stdout


def test_the_retry_and_the_parallel_tools_are_shown(demo):
    shown = demo.stdout.partition("$ playhead show")[2].partition("$ playhead replay")[0]
    assert "429" in shown
    assert shown.count("/weather?city=") == 2
    assert shown.count("chat gpt-5.5") == 2


def serves(home, *words):
    """The link that is printed leads to the pages, until ^C."""
    with subprocess.Popen(
        [sys.executable, "-m", "playhead_cli", *words],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"},
        stdout=subprocess.PIPE,
        text=True,
    ) as command:
        try:
            link = command.stdout.readline().strip()
            assert "text/html" in httpx2.get(link, timeout=60).headers["content-type"]
        finally:
            command.send_signal(signal.SIGINT)
        assert command.wait(60) == 0


def test_the_next_commands_work(demo, home):
    following = demo.stdout.partition("next:")[2].split("\n  ")[1:]
    assert len(following) == 4
    for line in following:
        words = line.split()
        assert words[0] in ("playhead", ".venv/bin/playhead")
        if words[1] == "open":
            serves(home, *words[1:])
            continue
        done = playhead(home, *words[1:])
        assert done.returncode == 0, line + done.stdout
        assert done.stdout


def test_a_trap_counts_who_comes():
    with Trap(ports.free()) as trap:
        for _ in range(2):
            with pytest.raises(httpx2.TransportError):
                httpx2.get(f"http://127.0.0.1:{trap.port}", timeout=60)
        assert trap.contacts == 2
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"http://127.0.0.1:{trap.port}", timeout=60)


@pytest.mark.acceptance
def test_time_travel(home):
    done = playhead(home, "demo", "travel")
    assert done.returncode == 0, done.stdout
    assert "For Oslo (24 °C, clear) pack sunglasses." in done.stdout
    assert "For Lima (22 °C, mist) pack a light jacket." in done.stdout
    assert done.stdout.rstrip().count("weather_agent-") >= 3


@pytest.mark.acceptance
def test_the_incident_is_walked_through(home):
    done = playhead(home, "demo", "incident", **ONLY_OURS)
    assert done.returncode == 0, done.stdout
    said = done.stdout
    assert "RuntimeError: no answer after 12 searches" in said
    assert re.search(r"same ×\d+", said)  # the repeated search is folded
    assert "identical (exit 0)" in said
    assert "No mail tells of order 83. I pass this on to a colleague." in said
    assert re.search(r"search ×12 → ×\d", said)
    assert said.count("1 passed") == 1 and said.count("1 failed") == 1
    assert "golden diverged: order-83" in said
    assert "- recorded:" in said and "+ now:" in said
