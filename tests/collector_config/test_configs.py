"""Every Collector configuration: well-formed, wired, bounded in bytes, and true to the wire contract.

`make neighbours` runs the same files in a real Collector.
"""

import re
from pathlib import Path

import pytest
import yaml
from support.outside.ottl import OttlSpan, transformed

from playhead_semconv import attributes

FOLDER = Path(__file__).parents[2] / "collector-config"
SCENARIOS = {
    "sidecar": ("sidecar",),
    "gateway": ("gateway",),
    "tokens": ("gateway", "tokens"),
    "backends": ("gateway", "backends"),
    "tail-sampling": ("gateway", "backends", "tail-sampling"),
    "redaction": ("gateway", "backends", "redaction"),
}
"""Each file with those that it needs, in the order in which the Collector merges them."""
WITH_BACKENDS = ("backends", "tail-sampling", "redaction")
TRIMMED = ("backends", "tail-sampling")
MODULES = {"otlp_grpc": "otlp", "file_storage": "filestorage"}
"""Modules that are not named like their component."""
MIB = 1 << 20
LARGEST_EVENT, LARGEST_REQUEST = 2 * MIB, 4 * MIB

QUEUE = {"storage": 0, "sizer": 0, "queue_size": 0, "block_on_overflow": 0, "batch": {}}
QUEUE["batch"] = dict.fromkeys(("sizer", "flush_timeout", "min_size", "max_size"))
AUTH = {"authenticator": 0}
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
    "bearertokenauth": {"token": 0},
    "otlp": {
        "protocols": {
            "grpc": {"endpoint": 0, "max_recv_msg_size_mib": 0, "auth": AUTH},
            "http": {"endpoint": 0, "max_request_body_size": 0, "auth": AUTH},
        }
    },
    "memory_limiter": dict.fromkeys(
        ("check_interval", "limit_percentage", "spike_limit_percentage", "limit_mib", "spike_limit_mib")
    ),
    "batch": {"timeout": 0},
    "redaction": dict.fromkeys(("allow_all_keys", "blocked_key_patterns", "blocked_values", "summary")),
    "tail_sampling": dict.fromkeys(("decision_wait", "num_traces", "decision_cache", "policies")),
    "transform": dict.fromkeys(("error_mode", "trace_statements")),
    "otlp_http": {
        "endpoint": 0,
        "compression": 0,
        "headers": 0,
        "auth": AUTH,
        "retry_on_failure": RETRY,
        "sending_queue": QUEUE,
    },
    "otlp_grpc": {"endpoint": 0, "tls": {"insecure": 0}, "sending_queue": QUEUE},
}
# Old names that newer Collectors warn about.
RETIRED = {"otlphttp", "spanmetrics", "logging"}
KINDS = ("receivers", "processors", "exporters", "extensions")
# `batch` loses data on a crash, and forgets what an exporter refuses.
MUTATING = {"transform", "redaction", "attributes", "filter", "tail_sampling", "batch"}


def merged(below, above):
    """Two configurations as the Collector merges them: lists are replaced."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    both = below.keys() & above.keys()
    return {**below, **above, **{key: merged(below[key], above[key]) for key in both}}


def scenario(name):
    whole = {}
    for file in SCENARIOS[name]:
        whole = merged(whole, yaml.safe_load((FOLDER / f"{file}.yaml").read_text("utf-8")))
    return whole


@pytest.fixture(params=SCENARIOS)
def config(request):
    return scenario(request.param)


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


def test_every_file_belongs_to_a_scenario():
    files = {path.stem for path in FOLDER.glob("*.yaml")} - {"builder"}
    assert {name for files in SCENARIOS.values() for name in files} == files


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


def used_in(config):
    used = {kind: set() for kind in KINDS}
    used["extensions"] |= set(config["service"]["extensions"])
    for pipeline in pipelines(config).values():
        for kind in ("receivers", "processors", "exporters"):
            used[kind] |= set(pipeline[kind])
    return used


def test_what_is_used_is_defined(config):
    for kind, names in used_in(config).items():
        assert names <= set(config[kind])
    for body in config["exporters"].values():
        storage = body["sending_queue"].get("storage")
        assert storage is None or storage in config["service"]["extensions"]


def test_what_is_defined_is_used_and_built():
    every = [scenario(name) for name in SCENARIOS]
    modules = {
        kind: {entry["gomod"].split()[0].rpartition("/")[2] for entry in entries}
        for kind, entries in yaml.safe_load((FOLDER / "builder.yaml").read_text("utf-8")).items()
        if kind in KINDS
    }
    for kind in KINDS:
        used = set[str]().union(*(used_in(config)[kind] for config in every))
        assert used == set[str]().union(*(config[kind] for config in every))
        built = {MODULES.get(kind_of(name), kind_of(name).replace("_", "")) for name in used}
        assert {module.removesuffix(kind[:-1]) for module in modules[kind]} == built


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


@pytest.mark.parametrize("name", WITH_BACKENDS)
def test_no_backend_holds_the_agents_back(name):
    """A full queue of an exporter makes the receiver refuse, but for a batch processor in between."""
    pipeline = pipelines(scenario(name))["traces/backends"]
    assert pipeline["processors"][-1] == "batch/backends"
    assert pipeline["exporters"] and not playhead_exporters(scenario(name)).keys() & {
        *pipeline["exporters"]
    }


def test_the_copy_is_sampled():
    config = scenario("tail-sampling")
    sampling = config["processors"]["tail_sampling"]
    failed, *rest = sampling["policies"]
    assert failed["status_code"] == {"status_codes": ["ERROR"]}
    for policy in (failed, *rest):
        assert set(policy) == {"name", "type", policy["type"]}
    assert all(size > 0 for size in sampling["decision_cache"].values())


def test_the_trimmed_copy_leads_to_the_payload():
    config = scenario("backends")
    *_, link = config["processors"]["transform/trim"]["trace_statements"][0]["statements"]
    assert link.startswith(f'set(span.attributes["{attributes.PLAYHEAD_URL}"], Concat(')
    assert link.count("(") == link.count(")")
    assert "/v1/spans" in link


@pytest.mark.parametrize("name", TRIMMED)
def test_payloads_are_deleted_before_other_backends(name):
    config = scenario(name)
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
def test_every_span_is_trimmed(span):
    statements = scenario("backends")["processors"]["transform/trim"]["trace_statements"]
    trimmed = transformed(statements, span)
    assert SECRET not in repr(trimmed)
    assert trimmed.attributes == {
        "gen_ai.request.model": "gpt-5.5",
        "long": "x" * 2000,
        attributes.PLAYHEAD_URL: f"http://127.0.0.1:4319/v1/spans/{'1' * 32}/{'2' * 16}",
    }
    assert trimmed.events == [{"exception.type": "E", "long": "x" * 2000}] * len(span.events)


def test_a_list_that_names_spans_and_events_skips_spans_without_events():
    """What the evaluator knows of the Collector, in which the groups are not merely style."""
    groups = scenario("backends")["processors"]["transform/trim"]["trace_statements"]
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
