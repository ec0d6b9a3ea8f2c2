"""The example agents, unmodified, against the demo's provider."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from playhead_cli.demo import answers
from playhead_cli.demo.provider import Provider

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def provider():
    with Provider(pace_s=0) as provider:
        yield provider


@pytest.fixture
def run(provider, monkeypatch, capsys):
    """Runs an agent in this process, which has the SDKs; what it printed."""

    def run(script, *arguments):
        for name, value in provider.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        runpy.run_path(str(EXAMPLES / script), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_weather_agent_retries_and_calls_two_tools(run, provider):
    out = run("weather_agent.py")
    assert out == ("For Oslo (-4 °C, snow) pack a warm coat. For Rome (17 °C, clear) pack sunglasses.\n")
    assert provider.requests == 5  # 429, its retry, two tools, the streamed answer


def test_weather_agent_takes_the_question(run):
    out = run("weather_agent.py", "And", "for", "Lima?")
    assert out == "For Lima (22 °C, mist) pack a light jacket.\n"


def test_planning_agent_needs_no_recording(run):
    assert run("planning_agent.py", "tent", "lamp") == "tent: order; lamp: ask the supplier\n"


def test_research_agent_gets_three_different_drafts(run, provider):
    *drafts, essence = run("research_agent.py").splitlines()
    assert sorted(line.partition(": ")[2] for line in drafts) == sorted(answers.DRAFTS)
    assert essence == "A flight recorder turns an accident into evidence."
    assert provider.requests == 4


@pytest.mark.parametrize(
    ("order", "verdict"),
    [
        ("81", "Order 81: the tea kettle arrived broken. Refund 49.00 EUR.\n"),
        ("82", "Order 82: nothing is wrong with it. No refund.\n"),
    ],
)
def test_refund_agent_decides(run, provider, order, verdict):
    assert run("refund_agent.py", order) == verdict
    assert provider.requests == 3


def test_unknown_paths_are_404(provider):
    assert httpx2.post(f"{provider.url}/v1/nothing", json={}, timeout=60).json()["error"]["type"] == (
        "invalid_request_error"
    )
    assert httpx2.get(f"{provider.url}/weather?city=Atlantis", timeout=60).status_code == 404


def test_the_provider_runs_alone():
    with subprocess.Popen(
        [sys.executable, "-m", "playhead_cli.demo"], stdout=subprocess.PIPE, text=True
    ) as process:
        lines = [process.stdout.readline().removeprefix("export ").strip() for _ in range(5)]
        variables = dict(line.split("=", 1) for line in lines)
        got = httpx2.get(f"{variables['TOOLS_URL']}/orders?order=82", timeout=60)
        process.terminate()
        assert process.wait(60) == 0
    assert json.loads(got.content) == answers.ORDERS["82"]


def test_examples_travel_with_the_package():
    packaged = Path(answers.__file__).parent / "agents"
    assert {path.name for path in packaged.glob("*.py")} == {path.name for path in EXAMPLES.glob("*.py")}
