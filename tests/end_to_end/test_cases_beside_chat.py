"""A program that makes a call beside chat, each case once: stored exactly, replayed with no provider."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.answers.beside_rows import ROWS
from support.answers.beside_table import ANSWERED, WHOLE, Row, sent
from support.answers.sdk_expected import OF_THE_TAPE, read
from support.answers.sdk_table import APART, surroundings
from support.sdks import program
from support.servers.scripted import Reply, ScriptedServer
from support.starting.home import Home

from playhead_genai.messages import to_json
from playhead_replay import Run
from playhead_replay.run.steps import Step
from playhead_semconv import attributes as a

ONE = ("edited_images", "strict")
"""What every run of the suite has; the others are for acceptance."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("name", "level"),
    [
        pytest.param(
            name, level, marks=[] if (name, level) == (ONE, "strict") else pytest.mark.acceptance
        )
        for name in ROWS
        for level in ("exchanges", "strict")
    ],
)
def test_a_recorded_call_replays(tmp_path: Path, name: str, level: str):
    row = ROWS[name]
    home = Home(tmp_path, {})
    for environ in (home.environ, home.bare):
        environ.update(surroundings(tmp_path))
    answers = {case: row.replies(case) for case in row.cases}
    with ScriptedServer() as server:
        held = answers["cancelled answer"][0].before
        assert held is not None
        server.on("/reached", lambda _: held.wait_reached() or Reply())
        for one in answers.values():
            server.script([*([] if row.lead is None else [row.lead(server.url)]), *one])
        words = (Path(program.__file__), server.url, APART, f"beside:{name}", *row.cases)
        done = home.playhead("record", "--level", level, *words)
    assert done.returncode == 0, done.stderr
    assert [line.partition(": ")[0] for line in done.stdout.splitlines()] == row.cases
    home.playhead("rederive")
    run = home.run("last")
    steps = [one for one in run.steps if one.span.attributes.get(a.PLAYHEAD_WIRE) == row.wire]
    asked = iter([one for one in server.requests if one.path != "/reached"])
    for step, (case, replied) in zip(steps, answers.items(), strict=True):
        if row.lead is not None:
            next(asked)
        assert said(run, step, row, case) == as_json(row.expected(case, server.port)), case
        told_as_it_was(run, step, [next(asked).body for _ in replied], replied, case)
    status, report = home.report("last")
    assert report["divergences"] == []
    verdict = "volatile" if row.form and level == "exchanges" else "identical"
    assert (status, report["verdict"], report["level"]) == (0, verdict, level)


def said(run: Run, step: Step, row: Row, case: str) -> Any:
    """What the stored span of a call says, but for its place on the tape and the time it took."""
    messages = run.messages(step)
    derived = {a.GEN_AI_INPUT_MESSAGES: messages.input, a.GEN_AI_OUTPUT_MESSAGES: messages.output}
    left = read(step.span.attributes | {name: to_json(one) for name, one in derived.items() if one})
    assert step.span.failed is (a.ERROR_TYPE in left), case
    for name in OF_THE_TAPE:
        left.pop(name, None)
    if row.streamed(case) and case in ANSWERED:
        assert 0 < left.pop(a.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK), case
    if case == "malformed":  # whether the SDK has read the rest
        assert left.pop(a.PLAYHEAD_END_HOW, "abandoned") == "abandoned"
    return as_json(left)


def as_json(attributes: dict[str, Any]) -> Any:
    return json.loads(json.dumps(attributes))


def told_as_it_was(run: Run, step: Step, asked: list[bytes], answers: list[Reply], case: str) -> None:
    """Every byte of requests and answers is stored; of an answer that broke off, its beginning.

    An SDK that asks again need not have read why.
    """
    exchanges = run.exchanges_of(step)
    assert [one.request for one in exchanges] == asked, case
    for exchange, reply in zip(exchanges, answers, strict=True):
        got = b"".join(chunk.data for chunk in exchange.chunks)
        if case in (*WHOLE, "refused", "failed", "malformed answer") and reply is answers[-1]:
            assert got == sent(reply), case
        else:
            assert sent(reply).startswith(got), case
