"""An export of each tool becomes the same run: two model calls around a tool that failed."""

import json
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from support.outside import exports

from playhead_core.errors import CorruptTape, PlayheadError, TooLarge, UsageError
from playhead_core.otlp import unpack
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_genai.messages import ToolCall, plain
from playhead_receiver.importers import documents
from playhead_receiver.importers.cassettes import cassette_of
from playhead_receiver.importers.formats import NAMES, incoming
from playhead_receiver.ingest.export import REQUESTS, Intake
from playhead_receiver.ingest.otlp_json import binary_of_json
from playhead_receiver.storage import open_store
from playhead_replay import Run
from playhead_replay.semantic.calls_of_run import calls_of


def framed(document: Any) -> bytes:
    one = binary_of_json(json.dumps(document).encode(), REQUESTS["traces"])
    return len(one).to_bytes(4, "big") + one


def dumped(document: Any) -> bytes:
    return json.dumps(document).encode()


def lines(document: Any) -> bytes:
    return b"".join(dumped(one) + b"\n" for one in document)


ID_ONLY = "observations of which the file has only the id"
OTLP = exports.otlp(exports.jaeger())
FILES: dict[str, tuple[str, bytes, dict[str, int]]] = {
    "langfuse": ("langfuse", dumped(exports.langfuse()), {ID_ONLY: 1}),
    "langfuse observations": ("langfuse", dumped({"data": exports.langfuse()["observations"][:-1]}), {}),
    "langsmith": ("langsmith", lines(exports.langsmith()), {"objects that are no runs": 1}),
    "phoenix": ("phoenix", dumped(exports.phoenix()), {"objects that are no spans": 1}),
    "phoenix data frame": ("phoenix", dumped(exports.phoenix_frame()), {}),
    "mlflow": ("mlflow", dumped([exports.mlflow()]), {}),
    "jaeger": ("jaeger", json.dumps(exports.jaeger(), indent=1).encode(), {}),
    "otlp document": ("otlp", json.dumps(OTLP, indent=1).encode(), {}),
    "otlp protobuf": ("otlp", binary_of_json(dumped(OTLP), REQUESTS["traces"]), {}),
    "otlp framed": ("otlp", framed(OTLP) + framed(OTLP), {}),
}  # fmt: skip


def stored(tmp_path: Path, path: Path) -> tuple[str, dict[str, int], list[Run], bool]:
    """Import twice; returns the runs, and whether the second time changed the store."""
    store = open_store(tmp_path / "data")
    try:
        for time in range(2):
            before = store.position()
            form, found = incoming(path)
            intake = Intake(store)
            for signal, body in found.requests():
                assert intake.export(signal.value, body).rejected == 0
            if time:
                runs = [Run.load(store, id) for id in sorted(found.trace_ids)]
                return form, dict(found.problems), runs, store.position() != before
    finally:
        store.close()
    raise AssertionError


@pytest.mark.parametrize("name", FILES)
def test_an_export_becomes_the_run(name: str, tmp_path: Path):
    form, data, problems = FILES[name]
    path = tmp_path / "export"
    path.write_bytes(data)
    found, left, runs, changed = stored(tmp_path, path)
    assert (found, left, changed) == (form, problems, False)
    (run,) = runs
    assert [span.name for span in run.spans if not span.parent_id] == ["trip"]
    assert run.trace_id == exports.TRACE
    first, second = calls_of(run)
    asked = [["Be brief."], ["Weather in Oslo?"]]
    texts = [[said for _, said in json.loads(one.call.asked.messages)] for one in (first, second)]
    assert texts[0] == asked
    assert texts[1][:2] == asked
    assert "rain" in json.dumps(texts[1][3])
    assert [one.call.asked.model for one in (first, second)] == [exports.MODEL] * 2
    called = first.call.answer.messages[0].parts[0]
    assert isinstance(called, ToolCall)
    assert (called.name, called.arguments) == ("weather", {"city": "Oslo"})
    assert plain(second.call.answer.messages[0])["parts"] == [{"type": "text", "content": "It rains."}]
    counts = [one.step.span.attributes for one in (first, second)]
    totals = [run_tokens(one) for one in counts]
    assert totals == [(20, 3)] * 2
    (tool,) = (one.span for one in run.steps if one.span.name.endswith("weather"))
    assert (tool.operation, tool.failed, tool.status_message) == ("execute_tool", True, "wet")
    assert first.step.span.started_ns == exports.ns(1)


def run_tokens(attributes: Any) -> tuple[int, int]:
    return attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]


def test_stored_completions_are_runs(tmp_path: Path):
    path = tmp_path / "completions.json"
    path.write_bytes(dumped(exports.openai()))
    form, problems, runs, changed = stored(tmp_path, path)
    assert (form, problems, changed, len(runs)) == ("openai", {}, False, 2)
    for run in runs:
        (call,) = calls_of(run)
        assert "Weather in Oslo?" in call.call.asked.messages
        assert call.call.asked.tools == "weather"
        assert run_tokens(call.step.span.attributes) == (20, 3)
        assert not call.why_not


def test_a_cassette_in_json_is_the_same_as_in_yaml(tmp_path: Path):
    request = {"method": "POST", "uri": "http://h/v1", "body": "{}", "headers": {"A": ["b"]}}
    response = {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": "ø"}}
    document = {"version": 1, "interactions": [{"request": request, "response": response}]}
    for name, data in (("a.json", dumped(document)), ("a.yaml", yaml.safe_dump(document).encode())):
        (tmp_path / name).write_bytes(data)
    found = [incoming(tmp_path / name) for name in ("a.json", "a.yaml")]
    requests = [list(one.requests()) for _, one in found]
    assert requests[0] == requests[1]
    assert [form for form, _ in found] == ["vcr", "vcr"]
    facts = list(unpack(ExportLogsServiceRequest.FromString(requests[0][0][1]).resource_logs[0]))
    written, count = cassette_of(Run.of_tape(MemoryTape(facts)).exchanges, as_json=True)
    response["headers"] = {"content-length": ["2"]}
    assert (json.loads(written), count) == (document, 1)


def deep(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


REFUSED: dict[str, tuple[bytes, type[PlayheadError], str]] = {
    "text": (b"hello\n", UsageError, "none of the known formats"),
    "another object": (b'{"a": 1}', UsageError, "none of the known formats"),
    "deep JSON": (b'{"data": ' + deep(200_000) + b"}", CorruptTape, "too deeply"),
    "deep YAML": (b"interactions: " + deep(500), CorruptTape, "too deeply"),
    "a tag that calls": (
        b"interactions: !!python/object/apply:os.system ['touch made']\n",
        CorruptTape,
        "neither JSON nor plain YAML",
    ),
    "cut JSON": (b'{"log": {"entries": [', CorruptTape, "damaged"),
    "no YAML": (b"\x00\x01\x02 {", CorruptTape, "neither JSON nor plain YAML"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_file_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    data, error, said = REFUSED[name]
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(error, match=said):
        incoming(path)
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_a_file_with_too_many_parts_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(documents, "MOST_PARTS", 10)
    path = tmp_path / "file"
    path.write_bytes(dumped([{"run_type": "llm"} for _ in range(20)]))
    with pytest.raises(TooLarge, match="more than 10 objects"):
        incoming(path)


def test_aliases_of_aliases_cost_nothing(tmp_path: Path):
    """Ten levels of ten aliases are 10^10 texts if anything expands them."""
    levels = ["x0: &x0 [a, a, a, a, a, a, a, a, a, a]"]
    levels += [f"x{at}: &x{at} [{', '.join([f'*x{at - 1}'] * 10)}]" for at in range(1, 10)]
    request = "{method: GET, uri: 'http://h/', headers: {A: *x9}, body: *x9}"
    response = "{status: {code: 200, message: *x9}, headers: {}, body: {string: ok}}"
    text = "\n".join([*levels, f"interactions: [{{request: {request}, response: {response}}}]"])
    path = tmp_path / "bomb.yaml"
    path.write_text(text)
    form, found = incoming(path)
    assert (form, found.spans) == ("vcr", 0)
    assert found.problems == {
        "interactions whose request or response is no text": 1,
        "files without requests": 1,
    }


BROKEN: list[Any] = [None, 1, "text", [], [[1]], {"a": {"b": []}}]


@pytest.mark.parametrize("form", [one for one in NAMES if one not in ("tape", "otlp")])
def test_nothing_in_place_of_a_field_raises(form: str, tmp_path: Path):
    """A value of another type is left out or kept as text; only what has no id or time is dropped."""
    made: dict[str, Callable[[], Any]] = {
        "langfuse": exports.langfuse,
        "langsmith": exports.langsmith,
        "phoenix": exports.phoenix,
        "mlflow": exports.mlflow,
        "jaeger": exports.jaeger,
        "openai": exports.openai,
        "har": lambda: {"log": {"entries": [{"request": {"method": "GET", "url": "http://h/"}}]}},
        "vcr": lambda: {"interactions": [{"request": {"uri": "http://h/"}, "response": {"status": {}}}]},
    }
    path = tmp_path / "file"
    for document in mutated(made[form]()):
        path.write_bytes(dumped(document))
        _, found = incoming(path, form)
        assert sum(len(body) for _, body in found.requests()) >= 0


def mutated(document: Any) -> list[Any]:
    """The document with the values of one name at a time replaced, for each name by two others."""
    text, names = json.dumps(document), set[str]()

    def visit(node: Any) -> None:
        for name, value in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(name, str):
                names.add(name)
            if isinstance(value, dict | list):
                visit(value)

    def replaced(node: Any, name: str, by: Any) -> Any:
        if isinstance(node, dict):
            return {key: by if key == name else replaced(one, name, by) for key, one in node.items()}
        return [replaced(one, name, by) for one in node] if isinstance(node, list) else node

    visit(document)
    values = cycle(BROKEN)
    return [replaced(json.loads(text), name, next(values)) for name in sorted(names) * 2]
