"""What a fork of a service says of its end is what happened: status, exit, answer, what went live."""

from __future__ import annotations

import json

import pytest
from support.observed.asking import ASKING
from support.servers.scripted import Request, ScriptedServer, json_reply, openai_chat
from support.starting.home import Home
from support.starting.services import RecordedService

SERVICE = f"""
from flask import Flask
{ASKING}
app = Flask(__name__)


@app.get("/ask")
def ask():
    text = asked("hi", model="good")
    if text == "broken":
        return "it is broken", 500
    if text == "missing":
        return "no such order", 404
    if text == "raise":
        raise ValueError("no answer")
    return text


if __name__ == "__main__":
    app.run(port=0)
"""


def answer(request: Request):
    return json_reply(openai_chat.completion(request.json["model"]))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    with ScriptedServer() as provider:
        provider.on("/v1/chat/completions", answer, repeat=True)
        variables = {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "k"}
        home = Home(tmp_path_factory.mktemp("service"), variables)
        (home.folder / "service.py").write_text(SERVICE)
        with RecordedService(home, "service.py") as service:
            assert service.client.get("/ask").text == "good"
        yield home


def forked(home: Home, *words: str):
    [origin] = [run["name"] for run in home.runs() if not run["origin"] and run["steps"]]
    done = home.playhead("fork", f"{origin}:1", *words)
    return done, home.runs()[0]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (
            "request.model=broken",
            ["live from step 1", "GET /ask: 500, 12 bytes in 1 piece", "  it is broken"],
        ),
        (
            "response.choices[0].message.content=raise",
            ["no live requests: the recording answered everything", "GET /ask: 500"],
        ),
    ],
)
def test_one_that_ends_in_500_is_a_failure_and_shows_its_answer(home, edit, said):
    done, made = forked(home, "--edit", edit)
    assert made["status"] == "failure"
    assert done.returncode == 1, done.stderr
    for line in said:
        assert line in done.stderr
    assert f"{made['name']} failure, 1 steps" in done.stderr
    shown = home.playhead("show", made["name"]).stdout
    assert "GET /ask → 500" in shown


@pytest.mark.parametrize(
    ("model", "text"), [("good", "200"), pytest.param("missing", "404", marks=pytest.mark.acceptance)]
)
def test_one_that_answers_is_a_success_and_shows_its_answer(home, model, text):
    done, made = forked(home, "--edit", f"request.model={model}")
    assert (done.returncode, made["status"]) == (0, "success"), done.stderr
    assert f"GET /ask: {text}, " in done.stderr
    report = json.loads(home.playhead("replay", made["name"], "--json").stdout)
    assert report["verdict"] == "identical"


def test_one_that_is_refused_says_that_nothing_went_live(home):
    done, made = forked(home, "--offline")
    assert done.returncode == 3
    assert made["status"] == "failure"
    assert "no response came from the recording\n" in done.stderr
    assert "playhead: no live requests\n" in done.stderr
    assert "refused: " in done.stderr
