"""Programs in other languages, with OpenTelemetry's own SDKs: acknowledged is stored.

What they sent reads the same. Each sends fifty runs, and two checkpoints by both ways in: ``PUT``, and
log records in parts.
"""

import base64
import hashlib
import json
import re
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import msgspec
import pytest
from end_to_end.test_report_round_trips import WANTED
from neighbours.programs import LANGUAGES, PROGRAMS
from support.outside.interop import bare_environment, stored_spans
from support.starting.home import Home

from playhead_checkpoint import Lineage, RemoteCheckpoints
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver

BUILT = [name for name in LANGUAGES if PROGRAMS[name].path.exists()]
RUNS, SPANS, EVENTS = 50, 4, 2
STATE = {
    "step": 1,
    "messages": [{"content": "<ø> & ☃\n" * 20_000}],
    "ratio": 0.5,
    "done": False,
    "none": None,
}
"""What each sender writes in its own language, next to 300,000 random bytes."""
SHOWN = """\
shop-50 success, 3 steps, TIME, 55→27 tok, $0.0011, gpt-5.5
→ Where is order 7? ☃
  1  TIME chat gpt-5.5            15→18 tok  TIME  calls get_order(7)
  2  TIME execute_tool get_order  7  TIME  {"state":"sent"}
  3  TIME chat gpt-5.5            40→9 tok  TIME  Sent.
"""
CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "gpt-5.5",
    "gen_ai.request.temperature": 0.5,
}
ASKED = '[{"role":"user","parts":[{"type":"text","content":"Where is order 7? ☃"}]}]'
CALLED = (
    '[{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"get_order",'
    '"arguments":{"id":7}}],"finish_reason":"tool_calls"}]'
)
SENT: list[tuple[str, int, dict[str, Any], list[Any]]] = [
    (
        "invoke_agent shop",
        1,
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop"},
        [],
    ),
    (
        "chat gpt-5.5",
        3,
        {
            **CHAT,
            "gen_ai.response.finish_reasons": ["tool_calls"],
            "gen_ai.usage.input_tokens": 15,
            "gen_ai.usage.output_tokens": 18,
            "gen_ai.input.messages": ASKED,
            "gen_ai.output.messages": CALLED,
        },
        [],
    ),
    (
        "execute_tool get_order",
        1,
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_order",
            "gen_ai.tool.call.id": "call_1",
            "gen_ai.tool.call.arguments": '{"id":7}',
            "gen_ai.tool.call.result": '{"state":"sent"}',
        },
        [("retried", {"attempt": 2, "late": {"bool": True}})],
    ),
    (
        "chat gpt-5.5",
        3,
        {
            **CHAT,
            "gen_ai.response.finish_reasons": ["stop"],
            "gen_ai.usage.input_tokens": 40,
            "gen_ai.usage.output_tokens": 9,
        },
        [],
    ),
]
"""Name, kind, attributes and events of the spans of each run, in order of their start."""


@contextmanager
def receiver(folder: Path) -> Generator[tuple[Receiver, httpx.Client]]:
    with (
        Receiver(folder / "data", Configuration(Addresses(0, 0, query_port=0))) as running,
        httpx.Client(base_url=f"{running.query_endpoint}/v1", timeout=60) as api,
    ):
        yield running, api


def send(language: str, transport: str, running: Receiver, folder: Path) -> tuple[str, str]:
    """Run a sender to its end. Returns ids of the last trace and of its root."""
    grpc = f"http://{running.grpc_endpoint}"
    endpoint = grpc if transport == "grpc" else running.http_endpoint
    words = [*PROGRAMS[language].words, transport, endpoint, running.query_endpoint, str(folder)]
    done = subprocess.run(words, env=bare_environment(), capture_output=True, text=True, timeout=150)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    trace_id, span_id = done.stdout.split()
    return trace_id, span_id


def plain(span: dict[str, Any]) -> tuple[str, int, dict[str, Any], list[Any]]:
    events = [(name, attributes) for name, _, attributes in span["events"]]
    return span["name"], span["kind"], span["attributes"], events


@pytest.mark.parametrize("transport", ["grpc", "http"])
@pytest.mark.parametrize("language", BUILT)
def test_another_language_loses_nothing_and_reads_the_same(
    tmp_path: Path, language: str, transport: str
):
    with receiver(tmp_path) as (running, api):
        trace_id, root = send(language, transport, running, tmp_path)
        parts = sum(-(-(tmp_path / kind).stat().st_size // 50_000) for kind in ("json", "bytes"))
        assert running.intake.counted.spans == RUNS * SPANS
        assert running.intake.counted.logs_stored == RUNS * EVENTS + parts
        stored = stored_spans(running.store)
        assert len(stored) == RUNS * SPANS
        by_trace: dict[str, list[dict[str, Any]]] = {}
        for (trace, _), span in stored.items():
            by_trace.setdefault(trace, []).append(span)
        for spans in by_trace.values():
            assert [plain(span) for span in sorted(spans, key=lambda span: span["times"][0])] == SENT
        home = Home(tmp_path, {"PLAYHEAD_DATA_DIR": str(tmp_path / "data")})
        shown = home.playhead("show", trace_id).stdout
        assert re.sub(r"\+?\d+\.\d+s|\d+ms", "TIME", shown) == SHOWN
        answer = home.playhead("show", f"{trace_id}:3").stdout
        assert "Say it in a word." in answer and "Sent." in answer
        check_checkpoints(api, running.query_endpoint, tmp_path, trace_id, root)


@pytest.mark.parametrize("language", [name for name in BUILT if name == "javascript"])
def test_what_a_program_in_another_language_reports_keeps_every_field(tmp_path: Path, language: str):
    (tmp_path / "reports").write_text(json.dumps(WANTED))
    *node, sender = PROGRAMS[language].words
    script = Path(sender).with_name("reports.cjs")
    with receiver(tmp_path) as (running, api):
        words = [*node, script, running.http_endpoint, tmp_path / "reports"]
        done = subprocess.run(words, env=bare_environment(), capture_output=True, text=True, timeout=150)
        assert (done.returncode, done.stderr) == (0, "")
        traces = done.stdout.split()  # as events of spans, as log records, in bodies of log records
        found = [api.get(f"runs/{trace}/reports").json()["reports"] for trace in traces]
    assert [{one["kind"]: one["fields"] for one in reports} for reports in found] == [WANTED] * 3


def check_checkpoints(api: httpx.Client, endpoint: str, folder: Path, run: str, span: str) -> None:
    """Four checkpoints are there, byte by byte; a client in Python has the same and compares them."""
    found = api.get("checkpoints", params={"run": run, "limit": 100}).json()["checkpoints"]
    assert sorted(label for one in found for label in one["labels"]) == ["parts"] * 2 + ["put"] * 2
    assert {one["span"] for one in found} == {span}
    sent = {kind: (folder / kind).read_bytes() for kind in ("json", "bytes")}
    assert msgspec.json.decode(sent["json"]) == STATE
    states: dict[str, bytes] = {
        one["id"]: api.get(f"checkpoints/{one['id']}/state").content for one in found
    }
    assert sorted(states.values()) == sorted([*sent.values()] * 2)
    with RemoteCheckpoints(endpoint) as store:
        same = store.put(STATE, Lineage(bytes.fromhex(run), labels=("python",)))
        later = store.put({**STATE, "step": 2, "note": "ø"}, Lineage(bytes.fromhex(run)))
        whole = store.put(sent["bytes"], Lineage(bytes.fromhex(run)))
        for one in found:
            id, is_json = bytes.fromhex(one["id"]), states[one["id"]] == sent["json"]
            assert one["digest"] == (same if is_json else whole).digest.hex()
            assert store.state(id) == (STATE if is_json else sent["bytes"])
            if is_json:
                assert store.difference(id, same.id) == []
                changes = store.difference(id, later.id)
                assert {(*change.path, change.kind) for change in changes} == {
                    ("step", "changed"),
                    ("note", "added"),
                }
                query = {"since": one["id"]}
                answer = api.get(f"checkpoints/{later.id.hex()}/differences", params=query).json()
                assert answer["count"] == 2


def curl(*words: str | Path) -> bytes:
    words = ("curl", "--silent", "--show-error", "--fail-with-body", *words)
    done = subprocess.run(words, env=bare_environment(), capture_output=True, timeout=60)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def test_curl_sends_checkpoints_by_both_ways(tmp_path: Path):
    run, span = "4f2a1111111111111111111111111111", "00f067aa0ba902b7"
    data = bytes(range(256)) * 1200
    (tmp_path / "json").write_bytes(msgspec.json.encode(STATE))
    (tmp_path / "bytes").write_bytes(data)
    kinds = {"json": "application/json", "bytes": "application/octet-stream"}
    with receiver(tmp_path) as (running, api):
        for number, (kind, media_type) in enumerate(kinds.items(), 1):
            query = urlencode({"run": run, "span": span, "label": "put"})
            url = f"{running.query_endpoint}/v1/checkpoints/{number:032x}/state?{query}"
            put = ("--request", "PUT", "--header", f"content-type: {media_type}")
            stored = json.loads(curl(*put, "--data-binary", f"@{tmp_path / kind}", url))
            assert stored["id"] == f"{number:032x}"
        for number, kind in enumerate(kinds, 11):
            state = (tmp_path / kind).read_bytes()
            request = tmp_path / f"{kind}-parts"
            request.write_text(json.dumps(logs_of(f"{number:032x}", kind, state, run, span)))
            post = ("--header", "content-type: application/json", "--data-binary", f"@{request}")
            assert b"partialSuccess" not in curl(*post, f"{running.http_endpoint}/v1/logs")
        check_checkpoints(api, running.query_endpoint, tmp_path, run, span)


def logs_of(id: str, encoding: str, state: bytes, run: str, span: str) -> dict[str, Any]:
    """A request in OTLP's JSON with a state in parts."""
    pieces = [state[at : at + 100_000] for at in range(0, len(state), 100_000)]
    about = {
        "id": id,
        "encoding": encoding,
        "label": "parts",
        "sha256": hashlib.sha256(state).hexdigest(),
    }
    texts = [
        {"key": f"playhead.checkpoint.{key}", "value": {"stringValue": value}}
        for key, value in about.items()
    ]
    records: list[dict[str, Any]] = []
    for index, piece in enumerate(pieces):
        numbers = {"part.index": index, "part.count": len(pieces)}
        attributes = [
            *texts,
            *(
                {"key": f"playhead.checkpoint.{key}", "value": {"intValue": str(value)}}
                for key, value in numbers.items()
            ),
        ]
        records.append(
            {
                "traceId": run,
                "spanId": span,
                "timeUnixNano": "1790000000000000000",
                "eventName": "playhead.checkpoint.part",
                "body": {"bytesValue": base64.b64encode(piece).decode()},
                "attributes": attributes,
            }
        )
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}
