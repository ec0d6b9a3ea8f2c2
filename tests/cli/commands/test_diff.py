import json
import re
from pathlib import Path

import pytest
from support.answers.spoken import QUESTION, answer, request
from support.starting.cli import CommandLine, store_run
from support.tapes.handmade import HandMade


def made(trace: int, question: str, *searches: str) -> HandMade:
    made = HandMade(bytes([trace] * 16), bytes([trace] * 16))
    made.wait(trace).start()
    asked = {"model": "gpt-4o", "messages": [{"role": "user", "content": question}]}
    made.chat(json.dumps(asked).encode())
    for search in searches:
        made.tool("search", json.dumps({"q": search}))
    return made.say("done\n").exit(0)


@pytest.fixture
def stored(playhead: CommandLine) -> CommandLine:
    for number, run in enumerate(
        [("Order 81?", "a", "b"), ("Order <82>?", "a"), ("Order 81?", "a", "b")]
    ):
        store_run(playhead.data_dir, made(number + 1, *run))
    return playhead


def test_diff_names_the_first_difference_and_both_sides(stored: CommandLine):
    done = stored("diff", "refund-1", "refund-2")
    assert done.status == 1
    assert done.lines == [
        "- refund-1  + refund-2",
        "same 2; first difference 1 request.messages[0].content",
        "1 chat",
        "  request.messages[0].content",
        '  - "Order 81?"',
        '  + "Order <82>?"',
        "3→– execute_tool search",
        "  removed",
        '  - {"q": "b"}',
        "search ×2 → ×1  steps 3 → 2  time 600ms → 400ms",
    ]


def test_diff_of_equal_runs_says_so(stored: CommandLine):
    done = stored("diff", "refund-1", "refund-3")
    assert (done.status, done.lines[1]) == (0, "nothing differs in 3 steps")


def test_diff_as_json(stored: CommandLine):
    found = json.loads(stored("diff", "refund-1", "refund-2", "--json").out)
    assert found["first_difference"]["path"] == "request.messages[0].content"
    assert (found["same_steps"], found["tools"]) == ([2], {"search": {"left": 2, "right": 1}})
    assert found["steps"] == [
        {"left": 1, "right": 1},
        {"left": 2, "right": 2},
        {"left": 3, "right": None},
    ]


def test_diff_as_a_page_escapes_what_runs_say(stored: CommandLine, tmp_path: Path):
    page = tmp_path / "diff.html"
    assert stored("diff", "refund-1", "refund-2", "--html", str(page)).status == 1
    text = page.read_text()
    assert "&lt;82&gt;" in text and "<82>" not in text
    assert re.findall(r'<tr id="step-([\d-]+)">', text) == ["1-1", "2-2", "3-"]
    assert not re.search(r'(src|href)="(?!#)', text)


def test_diff_of_what_is_not_there(stored: CommandLine):
    done = stored("diff", "refund-1", "nothing-7")
    assert done.status == 2
    assert done.err == 'error[run-unknown]: no run is called "nothing-7"\nhint: did you mean refund-3?\n'


def test_variability_shows_paths_and_forks(stored: CommandLine):
    done = stored("variability", "--agent", "refund")
    assert done.status == 0
    assert done.lines[:7] == [
        "3 runs (3 success), 2 paths",
        "path 1  2 runs: refund-1, refund-3",
        "  chat · execute_tool search ×2",
        "path 2  1 run: refund-2",
        "  chat · execute_tool search",
        "they part at step 3",
        "  execute_tool search  ×2: refund-1, refund-3",
    ]
    assert json.loads(stored("variability", "refund-1", "refund-2", "--json").out)["distinct_paths"] == 2
    assert stored("variability", "refund-1").status == 2


def test_equal_steps_are_folded_as_in_show(playhead: CommandLine):
    for trace, loops in ((1, 9), (2, 1)):
        run = HandMade(bytes([trace] * 16), bytes([trace] * 16))
        run.wait(trace).start()
        for _ in range(loops):
            run.chat(b'{"model":"gpt-4o"}')
            run.tool("search", '{"q":"order 83"}')
        store_run(playhead.data_dir, run.exit(0))
    folded = playhead("diff", "refund-1", "refund-2").lines
    assert folded[2:9] == [
        "3→– chat",
        "  removed",
        '  - {"model":"gpt-4o"}',
        "4→– execute_tool search",
        "  removed",
        '  - {"q":"order 83"}',
        "⋮ 5–18→– same ×7 (--all)",
    ]
    assert "17→– chat" in playhead("diff", "refund-1", "refund-2", "--all").lines


def test_what_a_model_answers_otherwise_is_said_in_words(playhead: CommandLine):
    call = [{"id": "c", "type": "function", "function": {"name": "search", "arguments": '{"q":"x"}'}}]
    for trace, said in ((1, answer(tool_calls=call)), (2, answer(content="Nothing."))):
        run = HandMade(bytes([trace] * 16), bytes([trace] * 16))
        run.wait(trace).start().chat(request(QUESTION), (said,))
        store_run(playhead.data_dir, run.exit(0))
    lines = playhead("diff", "refund-1", "refund-2").lines
    assert lines[2:6] == ["1 chat", "  response", '  - calls search("x")', "  + Nothing."]
