"""Checks attributes against the message schemas of the GenAI conventions."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator

from playhead_semconv import attributes

SCHEMAS = {
    attributes.GEN_AI_INPUT_MESSAGES: "input_messages",
    attributes.GEN_AI_OUTPUT_MESSAGES: "output_messages",
    attributes.GEN_AI_SYSTEM_INSTRUCTIONS: "system_instructions",
    attributes.GEN_AI_TOOL_DEFINITIONS: "tool_definitions",
}


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
