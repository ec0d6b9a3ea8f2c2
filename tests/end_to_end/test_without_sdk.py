"""A program that calls models with nothing but an HTTP client: its bytes say what it did."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.answers.client_forms import FORMS
from support.servers.scripted import ScriptedServer, json_reply, openai_error
from support.starting.home import Home

PROGRAM = """
import sys, urllib.request, json
import httpx

url, ask = sys.argv[1], {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}
said = httpx.post(f"{url}/v1/chat/completions", json=ask, timeout=60).json()
print(said["choices"][0]["message"]["content"])
ask_stream = {**ask, "stream": True}
with httpx.stream("POST", f"{url}/v1/chat/completions", json=ask_stream, timeout=60) as answer:
    print(sum(1 for _ in answer.iter_lines()) > 3)
body = json.dumps({"model": "claude-sonnet-5", "max_tokens": 64, "messages": ask["messages"]}).encode()
request = urllib.request.Request(f"{url}/v1/messages", body, {"content-type": "application/json"})
print(json.load(urllib.request.urlopen(request))["content"][0]["text"])
print(httpx.post(f"{url}/survey/responses", json={"answers": []}, timeout=60).status_code)
"""


SENT_AGAIN = """
import sys, boto3, httpx
from botocore.config import Config

url, ask = sys.argv[1], {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}
while httpx.post(f"{url}/v1/chat/completions", json=ask, timeout=60).status_code != 200:
    pass
bedrock = boto3.client(
    "bedrock-runtime",
    "eu-west-1",
    endpoint_url=url,
    aws_access_key_id="a",
    aws_secret_access_key="b",
    config=Config(retries={"mode": "standard", "max_attempts": 2}),
)
said = bedrock.converse(modelId="amazon.nova", messages=[{"role": "user", "content": [{"text": "Hi"}]}])
print(said["output"]["message"]["content"][0]["text"])
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path, {})


@pytest.fixture
def provider() -> Iterator[ScriptedServer]:
    named = {form.name: form for form in FORMS if not form.asynchronous}
    asked = ["chat create", "chat create stream", "messages create", "chat create"]
    with ScriptedServer() as server:
        server.script([named[name].reply() for name in asked])
        yield server


def test_requests_to_models_are_calls_with_their_tokens(home: Home, provider: ScriptedServer):
    script = home.folder / "agent.py"
    script.write_text(PROGRAM)
    done = home.playhead("record", script, provider.url)
    assert (done.returncode, done.stdout) == (0, "Hi there\nTrue\nHi there\n200\n"), done.stderr
    again = home.playhead("rederive", "--json")
    assert json.loads(again.stdout) == {"schema_version": 1, "runs": 1, "calls": 3}
    (run,) = home.runs()
    assert run["steps"] == 4
    assert run["input_tokens"] > 0 and run["output_tokens"] > 0 and run["cost_usd"] > 0
    assert run["providers"] == []  # whoever answers on loopback is not known
    assert len(run["models"]) == 2
    tree = home.playhead("show", "last").stdout
    assert (tree.count("chat gpt-4o"), tree.count("chat claude-sonnet-5")) == (2, 1), tree
    first = home.playhead("show", "last:1").stdout
    assert "Hello" in first and "Hi there" in first, first
    status, report = home.report("last")
    assert (status, report["verdict"]) == (0, "identical")
    assert home.playhead("verify").returncode == 0


def test_attempts_of_a_call_are_one_step(home: Home):
    script = home.folder / "agent.py"
    script.write_text(SENT_AGAIN)
    good = next(form for form in FORMS if form.name == "chat create").reply()
    answer = {"message": {"role": "assistant", "content": [{"text": "Hello"}]}}
    said = {"output": answer, "stopReason": "end_turn", "usage": {"inputTokens": 3, "outputTokens": 2}}
    with ScriptedServer() as server:
        busy = json_reply({"message": "Too many"}, 503)
        server.script([openai_error(429), openai_error(429), good, busy, json_reply(said)])
        done = home.playhead("record", script, server.url)
    assert (done.returncode, done.stdout) == (0, "Hello\n"), done.stderr
    home.playhead("rederive")
    (run,) = home.runs()
    assert (run["steps"], run["errors"]) == (2, 0)
    shown = json.loads(home.playhead("show", "last", "--json").stdout)
    assert [step["attempts"] for step in shown["steps"]] == [3, 2]
    assert [step["retries"] for step in shown["steps"]] == [2, 1]
    status, report = home.report("last")
    assert (status, report["verdict"]) == (0, "identical")
