"""HTTP traffic whose export was stripped to its spans answers the same requests from the spans alone."""

from pathlib import Path

from support.answers.cassettes import Interaction, own, recorded

from playhead_genai.providers import WireResponse, derive
from playhead_genai.rebuilding import FORMS, rebuilt
from playhead_genai.rebuilding.calls import asked_in
from playhead_genai.rebuilding.matching import RecordedCalls
from playhead_receiver.archive.run_files import Material
from playhead_receiver.importers.formats import requests_of_converted
from playhead_receiver.importers.http_traffic import HttpRequest, add_traffic
from playhead_receiver.importers.spans import Converted
from playhead_receiver.ingest.export import REQUESTS, Intake
from playhead_receiver.ingest.otlp_json import binary_of_json
from playhead_receiver.maintenance.unnamed_calls import UnnamedCalls
from playhead_receiver.storage import open_store
from playhead_replay import Run
from playhead_replay.semantic.calls_of_run import CallOfRun, calls_of
from playhead_semconv import attributes as a

START_NS = 1_700_000_000_000_000_000


def key(one: Interaction) -> str:
    return f"{one.method} {one.url}"


def answerable(one: Interaction) -> bool:
    """Whether it can be rebuilt: no vectors, no stream of Bedrock's InvokeModel, not an empty answer."""
    asked = asked_in(key(one), one.body)
    if (
        asked is None
        or asked[0] not in FORMS
        or asked[1].embeds
        or one.status != 200
        or "/invoke-with" in one.url
    ):
        return False
    answer = WireResponse(200, one.headers, [one.data], True)
    return a.GEN_AI_OUTPUT_MESSAGES in derive(asked[0], one.body, answer, url=one.url).attributes


KNOWN = [one for one in [*own(), *recorded()] if answerable(one)]


def stripped(tmp_path: Path, interactions: list[Interaction]) -> list[CallOfRun]:
    """The calls of the run after its export went to another store without its tape."""
    converted = Converted("vcr")
    requests = [
        HttpRequest(
            method=one.method,
            url=one.url,
            body=one.body,
            status=one.status,
            response_headers=one.headers,
            data=one.data,
            started_ns=START_NS + number,
            ended_ns=START_NS + number,
        )
        for number, one in enumerate(interactions)
    ]
    add_traffic(requests, converted, "talk")
    (trace_id,) = converted.trace_ids
    first, second = open_store(tmp_path / "one"), open_store(tmp_path / "two")
    try:
        for signal, body in requests_of_converted(converted):
            Intake(first).export(signal.value, body)
        UnnamedCalls(first).derive_run(bytes.fromhex(trace_id))
        for line in Material.of_store(first, trace_id).lines():
            if line.startswith(b'{"resourceSpans"'):
                Intake(second).export("traces", binary_of_json(line, REQUESTS["traces"]))
        run = Run.load(second, trace_id)
        assert not any(map(len, run.tapes))
        return calls_of(run)
    finally:
        first.close()
        second.close()


def test_every_answer_is_found_and_says_the_same(tmp_path: Path):
    calls = stripped(tmp_path, KNOWN)
    lacking = [f"{one.name}: {one.why_not}" for one in calls if one.why_not]
    assert lacking == []
    recorded_calls = RecordedCalls([(one.call.asked, False) for one in calls])
    differ: list[str] = []
    for one in KNOWN:
        asked = asked_in(key(one), one.body)
        assert asked is not None
        wire, request = asked
        found = recorded_calls.take(request)
        assert found is not None, one.name
        number, way = found
        response, made = rebuilt(wire, calls[number].call.answer, one.body, one.url)
        before = derive(wire, one.body, WireResponse(200, one.headers, [one.data], True), url=one.url)
        after = derive(wire, one.body, response, url=one.url)
        if after.attributes != before.attributes or made.left_out or way != "messages, model and tools":
            names = [
                name
                for name in before.attributes
                if after.attributes.get(name) != before.attributes[name]
            ]
            differ.append(f"{one.provider} {one.name}: {way} {names} {made.left_out}")
    assert differ == []
