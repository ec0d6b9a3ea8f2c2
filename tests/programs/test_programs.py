"""Programs that were not written for this project: recorded, and replayed with nobody to answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from programs.improviser import Improviser, value
from programs.obtained import ARCHIVES, PROGRAMS, PYTHON, Program
from support.servers.scripted import ScriptedServer
from support.starting.home import Home

ASSURANCES = {
    "EXAMPLES_INTERACTIVE_MODE": "auto",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",  # else it would send its own traces to another host
}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, server: ScriptedServer) -> Home:
    assert ARCHIVES.exists(), "make .venv-programs/ready"
    home = Home(
        tmp_path,
        {
            "OPENAI_BASE_URL": server.openai_url,
            "OPENAI_API_KEY": "sk-test-0123456789",
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "sk-ant-test-0123456789",
        },
    )
    home.environ.update(ASSURANCES)
    home.bare.update(ASSURANCES)
    return home


def examples_importable(home: Home, program: Program, file: Path) -> None:
    """The examples of openai-agents import each other from the top of their archive."""
    if program.package == "openai_agents":
        top = next(str(one.parent) for one in file.parents if one.name == "examples")
        home.environ["PYTHONPATH"] = home.bare["PYTHONPATH"] = top


@pytest.mark.acceptance
@pytest.mark.parametrize("level", ["strict", "causal"])
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_a_program_replays_identical(
    home: Home, server: ScriptedServer, program: Program, level: str, tmp_path: Path
):
    Improviser(server)
    file = program.unpacked(tmp_path / "archive")
    examples_importable(home, program, file)
    done = home.playhead("record", "--level", level, "--python", PYTHON, file)
    assert done.returncode == 0, done.stderr
    asked = len(server.requests)
    assert asked > 0
    server.close()

    [run] = home.runs()
    status, report = home.report(run["name"], "--python", PYTHON)
    assert report["divergences"] == []
    assert (status, report["verdict"], report["level"]) == (0, "identical", level)
    assert report["fidelity"]["exact"] == report["asked"] == asked
    assert all(output["identical"] for output in report["outputs"].values())


def test_the_programs_are_of_five_packages():
    assert len(PROGRAMS) >= 10
    assert len({program.package for program in PROGRAMS}) == 5


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 3},
        {"anyOf": [{"$ref": "#/$defs/Seat"}, {"type": "null"}], "$defs": {"Seat": {"const": "A"}}},
        {"type": "integer", "minimum": 1, "maximum": 3},
        {"type": ["number", "null"]},
        {"type": "boolean"},
    ],
    ids=lambda schema: json.dumps(schema)[:40],
)
def test_an_improvised_value_fits_its_schema(schema: dict[str, object]):
    for number in (1, 7):
        jsonschema.validate(value(schema, number), schema)
