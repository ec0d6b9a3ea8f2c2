"""A run of spans gets the tape of its semantic replay, from which it is forked and compared."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from replay.semantic.test_from_spans import OURS, PROGRAM, SYSTEM, USER, run_of

from playhead_core.errors import UsageError
from playhead_replay import Environment, ReplayConfiguration
from playhead_replay.diff.rundiff import diff
from playhead_replay.forks.fork import ForkPoint, fork_of
from playhead_replay.forks.resume import GoingOn
from playhead_replay.run.command import Command
from playhead_replay.semantic import command_of, rebuilt_for_fork, rebuilt_for_golden

LACKING = {name: value for name, value in OURS[1].items() if name != "gen_ai.output.messages"}
LONG = json.dumps([{"type": "text", "content": "Be long."}])
OTHER_HOST = "import httpx\nhttpx.get('http://127.0.0.1:9/other')\n"
GOING_ON = GoingOn(lambda exchange: "resend")


def started(folder: Path, program: str) -> tuple[Command, ReplayConfiguration]:
    (folder / "agent.py").write_text(program)
    environ = {name: one for name, one in os.environ.items() if not name.startswith("OPENAI_")}
    around = Environment(python=sys.executable, folder=str(folder), environ=environ)
    return command_of("agent.py", str(folder)), ReplayConfiguration(around)


def test_a_fork_begins_at_a_step_whose_answer_is_unknown(tmp_path: Path):
    """Only its request is needed, which the program makes."""
    run = run_of(OURS[0], LACKING)
    at = run.steps[1]
    made, report = rebuilt_for_fork(run, *started(tmp_path, PROGRAM), at)
    assert report.not_rebuilt == ["step 2 chat: its spans have no answer"]
    [first], [second] = map(made.exchanges_of, made.steps)
    assert first.end is not None
    assert second.end is None
    assert json.loads(second.request)["messages"][-1]["content"] == "rain"
    fork = fork_of(made, ForkPoint(at), [], GOING_ON)
    assert fork.plan.unknown == {str(second.exchange.id): "resend"}
    assert fork.plan.origin == f"{run.trace_id}-{run.roots[0].span_id}:2"


def test_no_fork_begins_behind_an_answer_that_is_unknown(tmp_path: Path):
    unsaid = {name: one for name, one in OURS[0].items() if name != "gen_ai.output.messages"}
    run = run_of(unsaid, OURS[1])
    with pytest.raises(UsageError, match="does not get to step 2") as raised:
        rebuilt_for_fork(run, *started(tmp_path, PROGRAM), run.steps[1])
    assert "cause: the span of this call has no answer" in str(raised.value)


def test_a_fork_of_a_changed_program_ends_where_it_differs(tmp_path: Path):
    program = PROGRAM.replace('"content": "rain"', '"content": "snow"')
    made, _ = rebuilt_for_fork(run_of(*OURS), *started(tmp_path, program), None)
    assert [len(made.exchanges_of(step)) for step in made.steps] == [1, 0]


def test_a_request_that_no_span_answers_is_not_made(tmp_path: Path):
    """It would be made for real while the fork is still answered."""
    run = run_of(*OURS)
    words = started(tmp_path, OTHER_HOST + PROGRAM)
    with pytest.raises(UsageError, match="does not get to step 1") as raised:
        rebuilt_for_fork(run, *words, run.steps[0])
    assert "only model calls and tools are answered from spans" in str(raised.value)
    with pytest.raises(UsageError, match="no golden can be made") as raised:
        rebuilt_for_golden(run, *words)
    assert "only model calls and tools are answered from spans" in str(raised.value)


def test_a_golden_is_not_made_of_other_messages(tmp_path: Path):
    words = started(tmp_path, PROGRAM.replace("in Oslo", "in Bergen"))
    with pytest.raises(UsageError, match="no golden can be made") as raised:
        rebuilt_for_golden(run_of(*OURS), *words)
    assert "matched by order only, although the messages differ" in str(raised.value)


def with_user(text: str) -> dict[str, Any]:
    return {**OURS[0], "gen_ai.input.messages": OURS[0]["gen_ai.input.messages"].replace(USER, text)}


@pytest.mark.parametrize("other", [OURS[0], with_user("Weather in Rome?")], ids=["same", "other"])
def test_runs_of_spans_are_compared_by_their_messages(other: dict[str, Any]):
    found = diff(run_of(OURS[0]), run_of(other))
    if other is OURS[0]:
        assert found.same == [1]
        return
    [difference] = found.differences
    assert difference.path == "request.messages[1].content[0]"
    assert (difference.left_value, difference.right_value) == (json.dumps(USER), '"Weather in Rome?"')


def test_a_run_of_spans_is_compared_with_one_that_has_a_tape(tmp_path: Path):
    run = run_of(*OURS)
    made, _ = rebuilt_for_golden(run, *started(tmp_path, PROGRAM))
    found = diff(run, made)
    assert (found.same, found.differences) == ([1, 2], [])
    other, _ = rebuilt_for_golden(
        run_of(*({**one, "gen_ai.system_instructions": LONG} for one in OURS)),
        *started(tmp_path, PROGRAM.replace(SYSTEM, "Be long.")),
    )
    [first, *_] = diff(run, other).differences
    assert (first.path, first.left) == ("request.messages[0].content[0]", 1)
