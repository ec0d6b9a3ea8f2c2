"""The registry, and what is generated from it."""

import importlib
import importlib.util
import pkgutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import opentelemetry.semconv._incubating.attributes as incubating
import opentelemetry.semconv.attributes as stable
import pytest
import yaml
from opentelemetry.semconv.schemas import Schemas

from playhead_semconv import attributes, events, values

ROOM = Path(__file__).parents[2] / "semconv"
FILES = sorted((ROOM / "playhead_semconv" / "registry").glob("*.yaml"))
TYPES = {"string", "int", "double", "boolean", "any", "string[]", "int[]"}
PYTHON = {
    "string": str,
    "int": int,
    "double": float,
    "boolean": bool,
    "any": str,
    "string[]": list,
    "int[]": list,
}
STABILITY = {"development", "stable"}


def groups() -> Iterator[dict[str, Any]]:
    for path in FILES:
        yield from yaml.safe_load(path.read_text("utf-8"))["groups"]


ATTRIBUTES = [a for group in groups() for a in group.get("attributes", [])]
EVENTS = [group for group in groups() if group["type"] == "event"]


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOM / "generate.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_files_are_the_three_registries():
    assert [path.name for path in FILES] == ["gen_ai.yaml", "opentelemetry.yaml", "playhead.yaml"]


@pytest.mark.parametrize("module", ["attributes", "events", "metadata", "values"])
def test_generated_files_are_current(generate: ModuleType, module: str):
    assert (ROOM / "playhead_semconv" / f"{module}.py").read_text("utf-8") == generate.render()[module]


@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=lambda a: a["id"])
def test_every_attribute_is_described(attribute: dict[str, Any]):
    assert attribute["brief"].endswith((".", "…"))
    assert attribute["stability"] in STABILITY
    assert attribute["examples"]
    kind = attribute["type"]
    if isinstance(kind, dict):
        known = [member["value"] for member in kind["members"]]
        assert all({"id", "value", "brief", "stability"} == set(member) for member in kind["members"])
        assert len(known) == len(set(known))
        assert set(attribute["examples"]) <= set(known)
    else:
        assert kind in TYPES
        assert {type(example) for example in attribute["examples"]} == {PYTHON[kind]}


def test_every_group_and_event_is_described():
    for group in groups():
        assert set(group) <= {"id", "type", "name", "brief", "note", "stability", "attributes"}
        assert group["brief"].endswith((".", "…"))
        assert group["type"] in {"attribute_group", "event"}
    for event in EVENTS:
        assert event["id"] == f"event.{event['name']}"
        assert event["stability"] in STABILITY


def test_no_name_is_defined_twice():
    for names in (
        [a["id"] for a in ATTRIBUTES],
        [e["name"] for e in EVENTS],
        [g["id"] for g in groups()],
        [a["id"].upper().replace(".", "_") for a in ATTRIBUTES],
    ):
        assert [name for name, count in Counter(names).items() if count > 1] == []


def test_constants_hold_the_registered_names():
    assert {v for k, v in vars(attributes).items() if k.isupper()} == {a["id"] for a in ATTRIBUTES}
    assert {v for k, v in vars(events).items() if k.isupper()} == {e["name"] for e in EVENTS}
    assert attributes.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS == "gen_ai.usage.cache_read.input_tokens"
    assert events.GEN_AI_EVALUATION_RESULT == "gen_ai.evaluation.result"
    assert values.GenAiOperationName.EXECUTE_TOOL == "execute_tool"
    assert values.GenAiProviderName.AWS_BEDROCK == "aws.bedrock"


def test_what_the_pinned_conventions_lack_is_said():
    noted = {a["id"] for a in ATTRIBUTES if a.get("note", "").startswith("Not in the pinned registry")}
    assert {name for name in noted if name.endswith("_ref")} == {
        "gen_ai.input.messages_ref",
        "gen_ai.output.messages_ref",
        "gen_ai.system_instructions_ref",
        "gen_ai.tool.definitions_ref",
    }
    assert "gen_ai.system" in noted
    head = FILES[0].read_text("utf-8").partition("groups:")[0]
    assert "semantic-conventions-genai v0.1.0" in head and "semantic-conventions v1.45.0" in head


def released() -> set[str]:
    """Names of attributes in the release of the general conventions that is installed."""
    found: set[str] = set()
    for package in (stable, incubating):
        for module in pkgutil.iter_modules(package.__path__):
            names = vars(importlib.import_module(f"{package.__name__}.{module.name}"))
            found |= {one for name, one in names.items() if name.isupper() and isinstance(one, str)}
    return found


NEWER = {
    "gen_ai.conversation.compacted",
    *(
        f"gen_ai.memory.{name}"
        for name in ("query.text", "record.count", "record.id", "records", "store.id")
    ),
    "gen_ai.prompt.version",
    "gen_ai.request.previous_response.id",
    "gen_ai.request.reasoning.level",
    "gen_ai.retrieval.top_k",
    "gen_ai.usage.cache_write.input_tokens",
    *(
        f"gen_ai.usage.{kind}.{tokens}"
        for kind in ("text", "image", "audio")
        for tokens in ("input_tokens", "output_tokens", "cache_read.input_tokens")
    ),
}
"""What v0.1.0 of the GenAI conventions defines, and no release of the general ones does."""


def test_the_pinned_conventions_are_those_that_are_followed():
    general, genai = (FILES[1].read_text("utf-8"), FILES[0].read_text("utf-8"))
    latest = list(Schemas)[-1].value.rpartition("/")[2]
    assert f"(release {latest})" in general.partition("groups:")[0]
    have = released()
    for text, newer in ((general, set[str]()), (genai, NEWER)):
        ours = [one for group in yaml.safe_load(text)["groups"] for one in group.get("attributes", [])]
        defined = {
            one["id"] for one in ours if not one.get("note", "").startswith("Not in the pinned registry")
        }
        assert defined - have == newer
