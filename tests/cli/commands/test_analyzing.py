"""`playhead flow`, `conform`, `workflow`, `summary`, `diagram` and `agents`, and their routes."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from support.servers.scripted import ScriptedServer, json_reply, openai_chat
from support.starting.cli import CommandLine, store_run
from support.tapes.handmade import HandMade

from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver

HOSTILE = "delete\x1b[2J_all"


@pytest.fixture
def six(playhead: CommandLine) -> CommandLine:
    """Six runs of an agent: four good ones, one in a loop, one that deletes and fails."""
    tools = [["search", "refund"]] * 4 + [["search"] * 20, ["search", HOSTILE]]
    for number, names in enumerate(tools, 1):
        made = HandMade(bytes([number]) * 16, bytes([number]) * 16)
        made.start(**{"playhead.run.agent": "refund"})
        for name in names:
            made.chat(name="chat gpt-4o")
            made.tool(name, "{}", error="ValueError: gone" if name == HOSTILE else "")
        store_run(playhead.data_dir, made.exit(1 if HOSTILE in names else 0))
    return playhead


def test_a_flow_is_shown_and_the_api_says_the_same(six: CommandLine):
    shown = six("flow", "agent:refund")
    assert shown.lines[0] == "6 runs, 1 failed, 60 steps, 3 distinct ways"
    assert any("chat → search → chat → refund" in line and "67 %" in line for line in shown.lines)
    assert any("(chat → search) ×20" in line for line in shown.lines)
    assert any("chat after search: " in line for line in shown.lines)
    assert "\x1b" not in shown.out and "delete\\u001b[2J_all" in shown.out
    printed = json.loads(six("flow", "agent:refund", "--json").out)
    ports = Configuration(Addresses(http_port=0, grpc_port=None, query_port=0))
    with Receiver(six.data_dir, ports) as receiver:
        with httpx.Client(base_url=receiver.query_endpoint, timeout=60) as api:
            assert api.get("/v1/flow", params={"query": "agent:refund"}).json() == printed
            assert api.get("/v1/flow", params={"query": "agnt:x"}).status_code == 422
            for words, route in (
                ("agents", "agents"),
                ("summary", "steps/summary"),
                ("diagram --format states", "diagram?format=states"),
                ("diagram --format messages", "diagram?format=messages"),
            ):
                shown = six(*words.split(), "refund-5", "--json").out
                assert api.get(f"/v1/runs/refund-5/{route}").json() == json.loads(shown)
            assert api.get("/v1/runs/refund-5/diagram?format=x").status_code == 422
    for form, begin in (("mermaid", "flowchart"), ("dot", "digraph"), ("xes", "<?xml"), ("ocel", "{")):
        assert six("flow", "--format", form).out.startswith(begin)
    assert six("flow", "agent:nobody").status == 2


def test_a_discovered_workflow_tells_good_runs_from_bad_ones(six: CommandLine, tmp_path: Path):
    file = tmp_path / "refund.toml"
    good = six("workflow", "discover", "agent:refund", "steps<10", "-o", str(file))
    assert good.status == 0 and "of 4 good runs" in good.err
    bad = six("conform", "agent:refund", "--workflow", str(file))
    assert bad.status == 1
    assert bad.lines[0].startswith("no  4 of 6 runs conform to refund")
    assert any("rule: never delete" in line for line in bad.lines)
    assert six("conform", "agent:refund", "steps<5", "status:success", "-w", str(file)).status == 0
    aligned = six("conform", "agent:refund", "steps>10", "-w", str(file), "--alignment")
    assert any(line.startswith("  +") and line.endswith("search") for line in aligned.lines)
    ports = Configuration(Addresses(http_port=0, grpc_port=None, query_port=0))
    with Receiver(six.data_dir, ports) as receiver, httpx.Client(timeout=60) as api:
        url, wanted = f"{receiver.query_endpoint}/v1/conform", {"file": file.read_text()}
        printed = json.loads(six("conform", "agent:refund", "-w", str(file), "--json").out)
        questions = {"query": "agent:refund", "alignment": True}
        assert api.post(url, json=wanted, params=questions).json() == printed
        brief = api.post(url, json=wanted).json()
        assert brief["results"] == [{**one, "alignment": []} for one in printed["results"]]
    file.write_text(file.read_text().replace("[bounds]", "[bounds]\ncost_usd = 1"))
    wrong = six("conform", "-w", str(file))
    assert wrong.status == 2 and "not a TOML file" in wrong.err
    assert "code-generation" in six("conform", "-w", "nothing").err


def test_a_summary_opens_and_a_diagram_is_drawn(six: CommandLine):
    shown = six("summary", "refund-5")
    assert [line.split()[0] for line in shown.lines[1:]] == ["1–40"]
    assert "(chat → search) ×20" in shown.lines[1]
    opened = six("summary", "refund-5:1-40", "--lines", "40")
    assert len(opened.lines) == 41
    assert "4  delete\\u001b[2J_all" in six("summary", "refund-6").out
    assert six("summary", "refund-5:nonsense").status == 2
    assert six("diagram", "refund-5").lines[4] == "    loop 20 times"
    assert six("diagram", "refund-5", "--format", "dot").out.startswith("digraph")


def test_a_configured_model_describes_the_lines_of_a_summary(
    six: CommandLine, monkeypatch: pytest.MonkeyPatch
):
    assert "PLAYHEAD_SUMMARY_MODEL" in six("summary", "refund-6", "--words").err
    said = "It searched and then\x1b[2J failed at step 4. " * 3
    with ScriptedServer() as provider:
        provider.script(
            [json_reply(openai_chat.completion(said)), json_reply(openai_chat.completion("Failed."))]
        )
        monkeypatch.setenv("PLAYHEAD_SUMMARY_MODEL", "gpt-4o")
        monkeypatch.setenv("PLAYHEAD_SUMMARY_MODEL_URL", provider.openai_url)
        monkeypatch.setenv("PLAYHEAD_SUMMARY_MODEL_KEY", "key-of-the-model")
        computed = six("summary", "refund-6").lines
        shown = six("summary", "refund-6", "--words")
        assert shown.lines[: len(computed)] == computed
        assert shown.lines[len(computed)] == "  Written by gpt-4o, not checked:"
        told = " ".join(line.strip() for line in shown.lines[len(computed) + 1 :])
        assert told.startswith("It searched and then\\u001b[2J failed at step 4. It searched")
        assert max(map(len, shown.lines[len(computed) :])) <= 90
        printed = json.loads(six("summary", "refund-6", "--words", "--json").out)
        assert printed["words"] == {"model": "gpt-4o", "text": "Failed."}
        asked = provider.requests[0]
        assert asked.headers["authorization"] == "Bearer key-of-the-model"
        task, lines = asked.json["messages"]
        assert task["role"] == "system" and lines["content"].splitlines()[0].startswith("refund-6")
        assert "ValueError" not in lines["content"]  # the text of an error
        provider.script([json_reply({"error": {"message": "no such model \x1b[2J"}}, status=404)])
        refused = six("summary", "refund-6", "--words")
        assert refused.status == 1 and "404" in refused.err and "\x1b" not in refused.err
    monkeypatch.setenv("PLAYHEAD_SUMMARY_MODEL_URL", "http://127.0.0.1:9")
    assert "does not answer" in six("summary", "refund-6", "--words").err
    assert json.loads(six("summary", "refund-6", "--json").out)["words"] is None


def test_agents_that_asked_others_are_shown_with_the_bottleneck(playhead: CommandLine):
    made = HandMade()
    made.start(**{"playhead.run.agent": "refund"})
    named = {"gen_ai__operation__name": "invoke_agent"}
    boss = made.begin("invoke_agent boss", gen_ai__agent__name="boss", **named)
    for error in ("", "gone \x1b[2J"):
        worker = made.begin("invoke_agent", parent=boss, gen_ai__agent__name=HOSTILE, **named)
        made.wait(2).finish(worker, error=error)
    made.finish(boss)
    store_run(playhead.data_dir, made.exit())
    shown = playhead("agents")
    assert shown.lines[0].endswith("3 agents, 3 requests")
    assert [line.split() for line in shown.lines[1:5]] == [
        ["FROM", "TO", "BY", "REQUESTS", "WAITED", "OWN", "FAILED", "UNANSWERED", "FIRST"],
        ["boss", "delete\\u001b[2J_all", "call", "2", "4.0s", "4.0s", "1", shown.lines[2].split()[-1]],
        ["refund", "boss", "call", "1", "4.0s", shown.lines[3].split()[-1]],
        ["bottleneck:", "boss", "→", "delete\\u001b[2J_all,", "4.0s", "of", "its", "own"],
    ]
    assert "\x1b" not in shown.out and "gone" in shown.lines[5]
    for form, begin in (("mermaid", "flowchart LR"), ("dot", "digraph"), ("sequence", "sequenceD")):
        assert playhead("agents", "--format", form).out.startswith(begin)
    of_query = json.loads(playhead("agents", "--query", "agent:refund", "--json").out)
    assert of_query == json.loads(playhead("agents", "refund-1", "--json").out)
    assert playhead("agents", "--query", "agnt:x").status == 2
