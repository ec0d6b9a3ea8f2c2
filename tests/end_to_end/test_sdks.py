"""A program that asks through an SDK, each case once: stored exactly, replayed with no provider."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.answers.sdk_expected import expected, settled, whole
from support.answers.sdk_table import APART, SDKS, Sdk, replies, surroundings
from support.sdks import program
from support.servers.scripted import Reply, ScriptedServer
from support.starting.home import Home

from playhead_genai.messages import to_json
from playhead_replay import Run
from playhead_replay.run.steps import Step
from playhead_semconv import attributes as a

PROGRAM = Path(program.__file__)
ONE = "ollama"
"""The SDK that every run of the suite has; the others are for acceptance."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("level", ["exchanges", "strict"])
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[] if one == ONE else [pytest.mark.acceptance]) for one in SDKS]
)
def test_a_recorded_program_replays_identical(tmp_path: Path, name: str, level: str):
    sdk = SDKS[name]
    home = Home(tmp_path, {})
    for environ in (home.environ, home.bare):
        environ.update(surroundings(tmp_path))
    answers = {case: replies(sdk, case) for case in sdk.cases}
    with ScriptedServer() as server:
        for one in answers.values():
            server.script(one)
        done = home.playhead(
            "record", "--level", level, PROGRAM, server.url, APART, sdk.adapter, *sdk.cases
        )
    assert done.returncode == 0, done.stderr
    assert [line.partition(": ")[0] for line in done.stdout.splitlines()] == sdk.cases
    home.playhead("rederive")
    (run,) = home.runs()
    assert (run["steps"], run["models"]) == (len(sdk.cases), ["m-1"])
    recorded, asked = home.run("last"), iter(server.requests)
    for step, (case, replied) in zip(recorded.steps, answers.items(), strict=True):
        assert said(recorded, step, sdk, case) == as_json(expected(sdk, case, server.port)), case
        told_as_it_was(recorded, step, [next(asked).body for _ in replied], replied, sdk, case)
    status, report = home.report("last")
    assert report["divergences"] == []
    assert (status, report["verdict"], report["level"]) == (0, "identical", level)


def said(run: Run, step: Step, sdk: Sdk, case: str) -> Any:
    """What the stored span of a call says, with what its messages are derived to."""
    span, messages = step.span, run.messages(step)
    content = {
        a.GEN_AI_INPUT_MESSAGES: messages.input,
        a.GEN_AI_OUTPUT_MESSAGES: messages.output,
        a.GEN_AI_TOOL_DEFINITIONS: messages.tools,
    }
    derived = {name: to_json(value) for name, value in content.items() if value}
    took_s = ((span.ended_ns or 0) - span.started_ns) / 1e9
    left = settled(span.attributes | derived, sdk, case, took_s)
    assert span.failed is (a.ERROR_TYPE in span.attributes), case
    return as_json(left)


def as_json(attributes: dict[str, Any]) -> Any:
    return json.loads(json.dumps(attributes))


def told_as_it_was(
    run: Run, step: Step, asked: list[bytes], answers: list[Reply], sdk: Sdk, case: str
) -> None:
    """Every byte of requests and answers is stored."""
    exchanges = run.exchanges_of(step)
    assert [one.request for one in exchanges] == asked, case
    for exchange, reply in zip(exchanges, answers, strict=True):
        whole(b"".join(chunk.data for chunk in exchange.chunks), reply, sdk, case)
