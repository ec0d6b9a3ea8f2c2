"""Answers of models that are not what was asked for: arguments of calls, structured outputs."""

from __future__ import annotations

import json
from typing import Any, cast

from playhead_core.errors import TapeError
from playhead_genai.messages import Text
from playhead_genai.readable_text import named_arguments
from playhead_replay.failures.schemas import problem_with
from playhead_replay.run.run import Run
from playhead_replay.run.steps import Step
from playhead_replay.timeline.tool_calls import ToolCallStep
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOutputType


def argument_problem(call: ToolCallStep) -> str:
    """Return what is wrong with the arguments of a call."""
    if not call.is_offered:
        return f"{call.name} is not among the tools that the request offers"
    arguments = call.arguments
    if isinstance(arguments, str):
        if not arguments.strip() or call.schema is None:
            return ""
        named = named_arguments(arguments)
        if named is None:
            return f"the arguments are not a JSON object: {arguments}"
        arguments = named
    if call.schema is None or arguments is None:
        return ""
    problem = problem_with(call.schema, arguments)
    return f"the arguments do not fit the schema of {call.name}: {problem}" if problem else ""


def output_problem(run: Run, step: Step) -> str:
    """Return in what a structured output does not fit the schema that the request asks for."""
    if step.span.attributes.get(a.GEN_AI_OUTPUT_TYPE) != GenAiOutputType.JSON:
        return ""
    said = text_of_answer(run, step)
    if not said:
        return ""
    try:
        value = json.loads(said)
    except (ValueError, RecursionError) as problem:
        return f"the output is not JSON: {problem}"
    exchanges = run.exchanges_of(step)
    try:
        schema = _output_schema(exchanges[-1].request) if exchanges else None
    except TapeError:
        schema = None
    problem = "" if schema is None else problem_with(schema, value)
    return f"the output does not fit its schema: {problem}" if problem else ""


def text_of_answer(run: Run, step: Step) -> str:
    """Return the text of an answer that is nothing but text; empty if it is more, such as a call."""
    parts = [part for message in run.messages(step).output for part in message.parts]
    if any(not isinstance(part, Text) for part in parts):
        return ""
    return "".join(part.content for part in parts if isinstance(part, Text))


def _output_schema(request: bytes) -> Any:
    """Return the JSON schema that a request asks its output to fit; None if it has none."""
    try:
        body = json.loads(request)
    except (ValueError, RecursionError):
        return None
    places = (
        ("response_format", "json_schema", "schema"),
        ("text", "format", "schema"),
        ("output_config", "format", "schema"),
        ("output_format", "schema"),
        ("generationConfig", "responseJsonSchema"),
        ("format",),
    )
    for place in places:
        value: Any = body
        for name in place:
            value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
        if isinstance(value, dict):
            return cast("Any", value)
    return None
