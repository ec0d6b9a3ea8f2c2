"""Every Collector configuration: well-formed, wired, bounded in bytes, and true to the wire contract."""

import re
from pathlib import Path

import pytest
import yaml
from support.outside.ottl import OttlSpan, transformed

from playhead_semconv import attributes

CONFIGS = sorted((Path(__file__).parents[2] / "collector-config").glob("*.yaml"))
MIB = 1 << 20
LARGEST_EVENT, LARGEST_REQUEST = 2 * MIB, 4 * MIB

QUEUE = {"storage": 0, "sizer": 0, "queue_size": 0, "block_on_overflow": 0, "batch": {}}
QUEUE["batch"] = dict.fromkeys(("sizer", "flush_timeout", "min_size", "max_size"))
RETRY = dict.fromkeys(("enabled", "max_elapsed_time"))
# Component type → the keys that we use of it, as its documentation spells them (0.159).
KEYS = {
    "file_storage": {
        "directory": 0,
        "create_directory": 0,
        "timeout": 0,
        "fsync": 0,
        "compaction": dict.fromkeys(("on_start", "on_rebound", "directory")),
    },
    "health_check": {"endpoint": 0},
    "otlp": {
        "protocols": {
            "grpc": dict.fromkeys(("endpoint", "max_recv_msg_size_mib")),
            "http": dict.fromkeys(("endpoint", "max_request_body_size")),
        }
    },
    "memory_limiter": dict.fromkeys(("check_interval", "limit_percentage", "spike_limit_percentage")),
    "tail_sampling": dict.fromkeys(("decision_wait", "num_traces", "decision_cache", "policies")),
    "transform": dict.fromkeys(("error_mode", "trace_statements")),
    "forward": {},
    "otlp_http": {"endpoint": 0, "compression": 0, "retry_on_failure": RETRY, "sending_queue": QUEUE},
    "otlp_grpc": {"endpoint": 0, "tls": {"insecure": 0}, "sending_queue": QUEUE},
}
# Old names that newer Collectors warn about, and the batch processor, which loses data on a crash.
RETIRED = {"otlphttp", "spanmetrics", "batch", "logging"}
KINDS = ("receivers", "processors", "exporters", "connectors", "extensions")
MUTATING = {"transform", "redaction", "attributes", "filter", "tail_sampling"}


@pytest.fixture(params=CONFIGS, ids=lambda path: path.stem)
def config(request):
    return yaml.safe_load(request.param.read_text("utf-8"))


def kind_of(component):
    return component.split("/")[0]


def pipelines(config):
    return config["service"]["pipelines"]


def playhead_exporters(config):
    return {name: body for name, body in config["exporters"].items() if name.endswith("/playhead")}


def unknown_keys(body, known, path):
    for key, value in (body or {}).items():
        if key not in known:
            yield f"{path}.{key}"
        elif isinstance(value, dict) and known[key]:
            yield from unknown_keys(value, known[key], f"{path}.{key}")


def test_there_are_configurations():
    assert [path.stem for path in CONFIGS] == ["record-and-jaeger"]


def test_keys_are_known(config):
    assert set(config) == {*KINDS, "service"}
    wrong = [
        line
        for kind in KINDS
        for name, body in config[kind].items()
        for line in unknown_keys(body, KEYS[kind_of(name)], name)
    ]
    assert wrong == []


def test_no_retired_component(config):
    assert not {kind_of(name) for kind in KINDS for name in config[kind]} & RETIRED


def test_what_is_used_is_defined_and_what_is_defined_is_used(config):
    used = {kind: set() for kind in KINDS}
    used["extensions"] |= set(config["service"]["extensions"])
    for pipeline in pipelines(config).values():
        for kind in ("receivers", "processors", "exporters"):
            for name in pipeline[kind]:
                used["connectors" if name in config["connectors"] else kind].add(name)
    for body in config["exporters"].values():
        storage = body["sending_queue"].get("storage")
        assert storage is None or storage in config["service"]["extensions"]
    assert used == {kind: set(config[kind]) for kind in KINDS}


def test_connectors_have_both_ends(config):
    for name in config["connectors"]:
        assert any(name in pipeline["receivers"] for pipeline in pipelines(config).values())
        assert any(name in pipeline["exporters"] for pipeline in pipelines(config).values())


def test_memory_limiter_comes_first_where_data_enters(config):
    for pipeline in pipelines(config).values():
        if "otlp" in pipeline["receivers"]:
            assert pipeline["processors"][0] == "memory_limiter"


def test_receivers_take_the_largest_request(config):
    protocols = config["receivers"]["otlp"]["protocols"]
    assert protocols["grpc"]["max_recv_msg_size_mib"] * MIB >= LARGEST_REQUEST
    assert protocols["http"]["max_request_body_size"] >= LARGEST_REQUEST


def test_queues_are_bounded_in_bytes(config):
    for body in config["exporters"].values():
        queue = body["sending_queue"]
        assert queue["sizer"] == queue["batch"]["sizer"] == "bytes"
        assert LARGEST_EVENT <= queue["batch"]["max_size"] <= LARGEST_REQUEST
        assert queue["batch"]["min_size"] <= queue["batch"]["max_size"] <= queue["queue_size"]


def test_playhead_loses_nothing(config):
    (exporter,) = playhead_exporters(config).values()
    assert exporter["retry_on_failure"] == {"enabled": True, "max_elapsed_time": 0}
    assert exporter["sending_queue"]["storage"] == "file_storage/queue"
    assert exporter["sending_queue"]["block_on_overflow"] is True


def test_playhead_gets_everything_untouched(config):
    (playhead,) = playhead_exporters(config)
    signals = set()
    for name, pipeline in pipelines(config).items():
        if playhead in pipeline["exporters"]:
            assert not {kind_of(one) for one in pipeline["processors"]} & MUTATING
            assert pipeline["receivers"] == ["otlp"]
            signals.add(kind_of(name))
    assert signals == {"traces", "logs"}


def test_the_tape_goes_to_playhead_only(config):
    for name, pipeline in pipelines(config).items():
        if kind_of(name) == "logs":
            assert pipeline["exporters"] == list(playhead_exporters(config))


def test_only_the_trimmed_copy_is_sampled(config):
    for name, pipeline in pipelines(config).items():
        kinds = [kind_of(one) for one in pipeline["processors"]]
        assert ("tail_sampling" in kinds) == (name == "traces/trimmed")
    sampling = config["processors"]["tail_sampling"]
    failed, *rest = sampling["policies"]
    assert failed["status_code"] == {"status_codes": ["ERROR"]}
    for policy in (failed, *rest):
        assert set(policy) == {"name", "type", policy["type"]}
    assert all(size > 0 for size in sampling["decision_cache"].values())


def test_the_trimmed_copy_leads_to_the_payload(config):
    *_, link = config["processors"]["transform/trim"]["trace_statements"][0]["statements"]
    assert link.startswith(f'set(span.attributes["{attributes.PLAYHEAD_URL}"], Concat(')
    assert link.count("(") == link.count(")")
    assert "/v1/spans" in link


def test_payloads_are_deleted_before_other_backends(config):
    patterns = [
        re.compile(found.replace("\\\\", "\\"))
        for group in config["processors"]["transform/trim"]["trace_statements"]
        for statement in group["statements"]
        for found in re.findall(r'delete_matching_keys\(span\.attributes, "(.*)"\)', statement)
    ]
    deleted = (
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.system_instructions",
        "gen_ai.tool.definitions",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
    )
    kept = (
        "gen_ai.usage.input_tokens",
        "gen_ai.request.model",
        "gen_ai.tool.name",
        "gen_ai.operation.name",
        attributes.PLAYHEAD_RUN_ID,
        attributes.PLAYHEAD_EXCHANGE_ID,
    )
    for name in deleted:
        assert any(pattern.search(name) for pattern in patterns), name
    for name in kept:
        assert not any(pattern.search(name) for pattern in patterns), name
    for pipeline in pipelines(config).values():
        if not set(pipeline["exporters"]) & {*playhead_exporters(config)}:
            assert "transform/trim" in pipeline["processors"]


SECRET = "what a customer wrote"


def spans_with_payloads():
    """A chat span, without events and with one of an older instrumentation."""
    payload = {
        attributes.GEN_AI_INPUT_MESSAGES: SECRET,
        attributes.GEN_AI_OUTPUT_MESSAGES: SECRET,
        attributes.GEN_AI_SYSTEM_INSTRUCTIONS: SECRET,
        attributes.GEN_AI_TOOL_CALL_ARGUMENTS: SECRET,
        "llm.input_messages.0.message.content": SECRET,
        "input.value": SECRET,
        "gen_ai.request.model": "gpt-5.5",
        "long": "x" * 5000,
    }
    yield OttlSpan(payload)
    yield OttlSpan(payload, [{"gen_ai.prompt": SECRET, "exception.type": "E", "long": "x" * 5000}])


@pytest.mark.parametrize("span", list(spans_with_payloads()), ids=["without an event", "with an event"])
def test_every_span_is_trimmed(config, span):
    statements = config["processors"]["transform/trim"]["trace_statements"]
    trimmed = transformed(statements, span)
    assert SECRET not in repr(trimmed)
    assert trimmed.attributes == {
        "gen_ai.request.model": "gpt-5.5",
        "long": "x" * 2000,
        attributes.PLAYHEAD_URL: f"http://127.0.0.1:4319/v1/spans/{'1' * 32}/{'2' * 16}",
    }
    assert trimmed.events == [{"exception.type": "E", "long": "x" * 2000}] * len(span.events)


def test_a_list_that_names_spans_and_events_skips_spans_without_events(config):
    """What the evaluator knows of the Collector, in which the groups are not merely style."""
    groups = config["processors"]["transform/trim"]["trace_statements"]
    flat = [statement for group in groups for statement in group["statements"]]
    alone, with_event = (transformed(flat, span) for span in spans_with_payloads())
    assert SECRET in repr(alone)
    assert SECRET not in repr(with_event)


def test_no_list_of_statements_mixes_contexts(config):
    for name, body in config["processors"].items():
        for key in body or {}:
            if kind_of(name) == "transform" and key.endswith("_statements"):
                for group in body[key]:
                    assert set(group) == {"context", "statements"}, name
                    named = re.findall(
                        r"\b(resource|scope|span|spanevent|log|metric|datapoint)\.", repr(group)
                    )
                    assert set(named) == {group["context"]}, name
