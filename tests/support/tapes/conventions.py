"""Checks attributes against the registry and the message schemas of the GenAI conventions."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from playhead_semconv import attributes

SCHEMAS = {
    attributes.GEN_AI_INPUT_MESSAGES: "input_messages",
    attributes.GEN_AI_OUTPUT_MESSAGES: "output_messages",
    attributes.GEN_AI_SYSTEM_INSTRUCTIONS: "system_instructions",
    attributes.GEN_AI_TOOL_DEFINITIONS: "tool_definitions",
    attributes.GEN_AI_RETRIEVAL_DOCUMENTS: "retrieval_documents",
    attributes.GEN_AI_MEMORY_RECORDS: "memory_records",
}

TYPES = {"string": str, "int": int, "double": float, "boolean": bool, "any": object, "string[]": list}


@cache
def released() -> dict[str, Any]:
    """Return the attributes of the release that is followed: their types by name."""
    text = files("playhead_semconv").joinpath("registry", "gen_ai.yaml").read_text("utf-8")
    return {
        one["id"]: one["type"]
        for group in yaml.safe_load(text)["groups"]
        for one in group.get("attributes", [])
        if not one.get("note", "").startswith("Not in the pinned registry")
    }


def check_registered(found: Mapping[str, Any]) -> int:
    """Check that the GenAI attributes of a span are released, and of the released type; their number."""
    ours = {name: value for name, value in found.items() if name.startswith(("gen_ai.", "mcp."))}
    for name, value in ours.items():
        kind = released()[name.removesuffix("_ref") if name.endswith("_ref") else name]
        if isinstance(kind, dict):
            assert isinstance(value, str), name
        elif not name.endswith("_ref"):
            assert isinstance(value, TYPES[kind]), (name, value)
            assert not isinstance(value, bool) or kind in ("boolean", "any"), (name, value)
    return len(ours)


@cache
def validator(attribute: str) -> Draft202012Validator:
    text = files("playhead_semconv").joinpath("schemas", f"{SCHEMAS[attribute]}.json").read_text("utf-8")
    return Draft202012Validator(json.loads(text))


def check_content(found: Mapping[str, Any]) -> int:
    """Validate the content attributes of a span, JSON text or structured. Returns their number."""
    count = 0
    for name in SCHEMAS:
        if name in found:
            value = found[name]
            validator(name).validate(json.loads(value) if isinstance(value, str | bytes) else value)
            count += 1
    return count
