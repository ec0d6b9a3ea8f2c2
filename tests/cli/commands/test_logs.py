"""Log records and events of stock senders: joined to their spans, shown, searched, redacted, moved."""

import json
from pathlib import Path

import httpx
import pytest
from support.outside.log_sender import send
from support.starting.cli import CommandLine

from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver

JAVASCRIPT = Path(__file__).parents[2] / "support" / "outside" / "javascript_sender.json"


@pytest.fixture
def sent(playhead: CommandLine) -> CommandLine:
    with Receiver(playhead.data_dir, Configuration(Addresses(0, 0, None))) as receiver:
        send(receiver.http_endpoint)
        assert receiver.intake.counted.logs_stored == 8
        while receiver.store.index():
            pass
    return playhead


def test_events_become_the_messages_of_their_span(sent: CommandLine):
    first = sent("show", "sender-1:1").out
    assert "zebra question only in the log" in first
    assert "zebra answer only in the log" in first
    second = json.loads(sent("show", "sender-1:2", "--json").out)
    assert second["system_instructions"] == [{"type": "text", "content": "be brief"}]
    assert second["input_messages"] == [
        {"role": "user", "parts": [{"type": "text", "content": "quagga question"}]}
    ]
    (answer,) = second["output_messages"]
    assert answer["parts"] == [
        {"type": "tool_call", "id": "c1", "name": "search", "arguments": {"q": "quagga"}}
    ]
    third = json.loads(sent("show", "sender-1:3", "--json").out)
    assert [message["role"] for message in third["input_messages"]] == ["user", "assistant", "tool"]
    assert [message["parts"][0]["type"] for message in third["input_messages"]] == [
        "text",
        "tool_call",
        "tool_call_response",
    ]
    assert third["output_messages"][0]["parts"] == [{"type": "text", "content": "okapi answer"}]


def test_log_records_are_shown_at_their_step(sent: CommandLine):
    lines = sent("show", "sender-1:1").lines
    logs = lines[lines.index("Logs") + 1 :][:1]
    assert "warning app: cache miss for wombat 81 logger: app.cache" in " ".join(logs[0].split())
    assert "decision which tool → api" in lines[lines.index("Reports") + 1]
    assert not any("evaluation" in line for line in logs)
    assert not any("operation.details" in line for line in lines)
    step = json.loads(sent("show", "sender-1:1", "--json").out)
    assert [one["event"] for one in step["logs"]] == [
        "gen_ai.client.inference.operation.details",
        None,
        "playhead.decision",
        "gen_ai.evaluation.result",
    ]
    assert "Logs" not in sent("show", "sender-1:3").lines


def test_log_records_are_listed(sent: CommandLine):
    assert len(sent("logs", "sender-1").lines) == 8
    assert sent("show", "sender-1", "--logs").lines == sent("logs", "sender-1").lines
    warnings = [json.loads(line) for line in sent("logs", "--level", "warning", "--json").lines]
    assert [(one["level_name"], one["step"], one["body"]) for one in warnings] == [
        ("warning", 1, "cache miss for wombat 81"),
        ("error", None, "done"),
    ]
    assert len(sent("logs", "sender-1:2").lines) == 3
    assert len(sent("logs", "sender-1", "--event", "gen_ai.evaluation.result").lines) == 1


def test_log_records_are_found_by_their_words(sent: CommandLine):
    assert sent("search", "wombat").lines == ["sender-1:1  log  cache miss for wombat 81 app.cache"]
    assert "sender-1:2" in sent("search", "quagga question").out
    assert "sender-1:1" in sent("search", "zebra").out


def test_log_records_go_with_a_run_to_another_store(sent: CommandLine, tmp_path: Path):
    before = [json.loads(line) for line in sent("logs", "sender-1", "--json").lines]
    for name in ("run.tape", "run.tape.gz", "run.jsonl"):
        path = tmp_path / name
        assert sent("export", "sender-1", "-o", str(path)).status == 0
        if "tape" in name:
            assert sent("logs", str(path)).lines == sent("logs", "sender-1").lines
            assert "zebra question" in sent("show", f"{path}:1").out
            assert "relevance 0.9" in sent("show", f"{path}:1").out
    for number, name in enumerate(("run.tape.gz", "run.jsonl"), 1):
        assert sent("delete", "--yes", f"sender-{number}").status == 0
        assert sent("import", str(tmp_path / name)).status == 0
        after = [json.loads(line) for line in sent("logs", f"sender-{number + 1}", "--json").lines]
        assert [{**one, "run": "sender-1"} for one in after] == before


def test_log_records_are_redacted(sent: CommandLine, tmp_path: Path):
    (tmp_path / "values").write_text("wombat 81\n")
    redacted = sent("redact", "sender-1", "--values", str(tmp_path / "values"))
    assert (redacted.status, redacted.err.count("sender-2")) == (0, 1)
    lines = sent("logs", "sender-2").lines
    assert len(lines) == 8
    assert not any("wombat" in line for line in lines)
    assert sent("search", "wombat").status == 1


def test_the_api_lists_them_page_by_page(playhead: CommandLine):
    with Receiver(playhead.data_dir, Configuration(Addresses(0, 0, 0))) as receiver:
        trace_id = send(receiver.http_endpoint)
        client = httpx.Client(base_url=receiver.query_endpoint)
        path = f"/v1/runs/{trace_id}/logs"
        bodies: list[object] = []
        after = ""
        while after is not None:
            page = client.get(path, params={"limit": 3, "after": after}).json()
            bodies += [one["body"] for one in page["logs"]]
            after = page["next"]
        assert len(bodies) == 8
        (warning, error) = client.get(path, params={"level": "warning"}).json()["logs"]
        assert (warning["level_name"], error["body"]) == ("warning", "done")
        assert client.get(path, params={"q": "level:warning wombat"}).json()["logs"] == [warning]
        (score,) = client.get(f"/v1/runs/{trace_id}/scores").json()["scores"]
        assert (score["name"], score["value"], score["step"]) == ("relevance", 0.9, 1)
        span = warning["span_id"]
        own = client.get(path, params={"span": span}).json()["logs"]
        assert [one["event"] for one in own][2:] == ["playhead.decision", "gen_ai.evaluation.result"]
        messages = client.get(f"/v1/spans/{trace_id}/{span}/messages").json()
        assert messages["input_messages"][0]["parts"][0]["content"] == "zebra question only in the log"


def test_evaluations_become_scores(sent: CommandLine):
    lines = sent("show", "sender-1:1").lines
    assert lines[lines.index("Scores") + 1].split() == ["relevance", "0.9"]
    assert "relevance 0.9 step 1" in " ".join(sent("show", "sender-1").out.split())
    (score,) = json.loads(sent("show", "sender-1", "--json").out)["scores"]
    assert (score["name"], score["value"], score["step"], score["label"]) == ("relevance", 0.9, 1, None)
    assert json.loads(sent("show", "sender-1:1", "--json").out)["scores"] == [score]
    assert json.loads(sent("show", "sender-1:2", "--json").out)["scores"] == []


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("score.relevance>=0.5", True),
        ("score.relevance:0.9", True),
        ("score.relevance>0.9", False),
        ("score.accuracy>=0", False),
        ("level:error", True),
        ("level>=warning", True),
        ("level<debug", False),
        ("level:fatal", False),
        ("level:warning score.relevance<1", True),
    ],
)
def test_runs_are_found_by_scores_and_levels(sent: CommandLine, query: str, found: bool):
    assert ("sender-1" in sent("ls", query).out) == found


def test_log_records_are_selected_by_level_and_words(sent: CommandLine):
    assert len(sent("logs", "level>=warning").lines) == 2
    assert len(sent("logs", "sender-1", "level:warning", "cache miss").lines) == 1
    assert len(sent("logs", "sender-1", "level:error", "cache miss").lines) == 0
    assert "log records has a level" in sent("logs", "sender-1", "tokens>=1").err


def test_a_javascript_sender_reads_the_same(playhead: CommandLine):
    """What the SDK 3.1 and the OTLP exporters 0.301 for JavaScript send, as JSON, for one call."""
    requests = json.loads(JAVASCRIPT.read_text("utf-8"))
    with Receiver(playhead.data_dir, Configuration(Addresses(0, 0, None))) as receiver:
        for path in ("/v1/logs", "/v1/traces"):
            assert httpx.post(f"{receiver.http_endpoint}{path}", json=requests[path]).json() == {}
        assert receiver.intake.counted.logs_stored == 3
        while receiver.store.index():
            pass
    step = json.loads(playhead("show", "js-sender-1:1", "--json").out)
    for messages, said in (("input_messages", "question"), ("output_messages", "answer")):
        (message,) = step[messages]
        assert message["parts"] == [{"type": "text", "content": f"zebra {said}"}]
    (score,) = step["scores"]
    assert (score["name"], score["value"], score["label"]) == ("relevance", 1.0, "pass")
    lines = playhead("show", "js-sender-1:1").lines
    assert "warning app: cache miss for wombat" in " ".join(lines[lines.index("Logs") + 1].split())
    assert len(playhead("logs", "js-sender-1", "level>=warning").lines) == 1
    assert "js-sender-1" in playhead("ls", "score.relevance:pass").out
