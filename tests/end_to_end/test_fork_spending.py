"""What a fork spends: the calls that it makes for real, not those that its tape answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.starting.home import Home

from playhead_cli.demo.provider import Provider
from playhead_replay import Run
from playhead_replay.diff import diff
from playhead_replay.run.token_usage import TokenUsage
from playhead_semconv.attributes import GEN_AI_USAGE_INPUT_TOKENS as INPUT
from playhead_semconv.attributes import GEN_AI_USAGE_OUTPUT_TOKENS as OUTPUT

AGENT = """
from openai import OpenAI

for number in range(4):
    asked = [{"role": "user", "content": f"for {number}"}]
    print(OpenAI().chat.completions.create(model="gpt-5.5", messages=asked).choices[0].message.content)
"""


def test_a_fork_counts_what_it_spent_and_not_what_its_tape_answered(tmp_path: Path):
    (tmp_path / "agent.py").write_text(AGENT)
    with Provider(pace_s=0.002) as provider:
        home = Home(tmp_path, provider.environment)
        assert home.playhead("record", "agent.py").returncode == 0
        edit = "messages[-1].content=for 9"
        done = home.playhead("fork", "agent-1:3", "--edit", edit)
        assert done.returncode == 0, done.stderr
    origin, fork = home.run("agent-1"), home.run("last")
    assert (len(origin.steps), len(fork.steps), origin.played_usage) == (4, 4, TokenUsage())

    def told(run: Run, *numbers: int) -> list[int]:
        steps = [run.steps[number - 1].span.attributes for number in numbers]
        return [sum(at[name] for at in steps) for name in (INPUT, OUTPUT)]

    spent, played = told(fork, 3, 4), told(fork, 1, 2)
    assert min(spent) > 0 and played == told(origin, 1, 2)
    assert [fork.usage.input_tokens, fork.usage.output_tokens] == spent
    assert [fork.played_usage.input_tokens, fork.played_usage.output_tokens] == played
    assert 0 < fork.cost.usd < origin.cost.usd
    whole = diff(origin, fork).totals[1]
    assert [whole.input_tokens, whole.output_tokens] == told(fork, 1, 2, 3, 4)
    assert whole.cost.usd > fork.cost.usd
    [listed] = home.runs("-n", "1")
    assert [listed["input_tokens"], listed["output_tokens"]] == spent
    assert listed["cost_usd"] == pytest.approx(float(fork.cost.usd))
    head = home.playhead("show").stdout.splitlines()[0]
    assert f", {spent[0]}→{spent[1]} tok, $" in head
    assert f", {played[0]}→{played[1]} tok from the tape" in head
