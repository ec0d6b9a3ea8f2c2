"""What ``--json`` prints, held against the schemas of `docs/schemas`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from playhead_cli.app import COMMANDS, GROUPS
from playhead_cli.json_output.commands import OF_COMMANDS

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
ON_STDERR = ("record", "fork", "resume")
"""Commands that leave stdout to the agent."""
BEGIN = '{"schema_version"'


def closed(schema: Any) -> Any:
    """The same schema, but that an object has no fields that it does not name."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(one) for name, one in schema.items()}
    return {**made, "additionalProperties": False} if "properties" in made else made


@cache
def alternatives(name: str) -> Mapping[str, Draft202012Validator]:
    """A validator for each kind of object that a command prints, by the name of the kind."""
    schema = json.loads((SCHEMAS / f"{name}.json").read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    parts = closed(schema["$defs"])
    refs = [one["$ref"] for one in schema.get("anyOf", [schema])]
    return {ref.rpartition("/")[2]: Draft202012Validator({"$ref": ref, "$defs": parts}) for ref in refs}


def kind_of(name: str, printed: Any) -> str:
    """Which kind of object of a command this is. `AssertionError` where it is none."""
    problems: list[str] = []
    for kind, validator in alternatives(name).items():
        problem = best_match(validator.iter_errors(printed))
        if problem is None:
            return kind
        problems.append(f"{kind}{problem.json_path[1:]}: {problem.message[:300]}")
    raise AssertionError(f"{name}.json does not describe what was printed: {'; '.join(problems)}")


def command_of(words: Sequence[str]) -> str:
    """``golden-add`` of ``playhead golden add …``; empty where no command with a schema is meant."""
    named = COMMANDS.keys() - GROUPS.keys()
    at = next((number for number, word in enumerate(words) if word in named), len(words))
    for count in (2, 1):
        command = " ".join(words[at : at + count])
        if command in OF_COMMANDS:
            return command.replace(" ", "-")
    return ""


def kinds_of(words: Sequence[str], out: str, err: str) -> Iterator[tuple[str, str]]:
    """Schema and kind of each object that ``playhead WORDS`` printed. `AssertionError`."""
    name = command_of(words)
    if "--json" not in words or "--raw" in words or "--help" in words:
        return
    for line in err.splitlines():
        if line.startswith(BEGIN):
            printed = json.loads(line)
            schema = "error" if "error" in printed else name
            yield schema, kind_of(schema, printed)
    for line in out.splitlines() if name not in ON_STDERR else ():
        yield name, kind_of(name, json.loads(line))
