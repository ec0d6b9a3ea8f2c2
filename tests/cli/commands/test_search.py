"""`playhead search`: steps by name, text as people read it, each text of a run once."""

import json

import pytest
from support.answers.spoken import CALL, QUESTION, RESULT, answer, request, talk
from support.outside.terminal import terminal
from support.starting.cli import CommandLine, refund, store_run
from support.tapes.handmade import HandMade

from playhead_cli.app import run
from playhead_semconv import attributes as a


@pytest.fixture
def desk(playhead: CommandLine) -> CommandLine:
    """A run that searches, and says the same in every request that follows."""
    made = HandMade().start(**{a.PLAYHEAD_RUN_BOUNDARIES: ["order hashes of asyncio", "clocks"] * 40})
    talk(made, request(QUESTION), answer(tool_calls=CALL["tool_calls"]))
    made.tool("search", '{"q": "order 81"}')
    talk(made, request(QUESTION, CALL, RESULT), answer(content='It says: "order 81"\nis on its way.'))
    talk(made, request(QUESTION, CALL, RESULT), answer(content="As I said."))
    made.say("order 81 is settled\n")
    store_run(playhead.data_dir, made.exit(0))
    return playhead


def test_search_names_steps_and_who_speaks(desk: CommandLine):
    done = desk("search", '"order 81"')
    assert done.lines == [
        "refund-1:1  user          Where is order 81? And 82?",
        'refund-1:1  calls search  "order 81"',
        'refund-1:3  search        {"found": ["Order 81 is on its way."]}',
        'refund-1:3  assistant     It says: "order 81" is on its way.',
        "refund-1    stdout        order 81 is settled",
    ]
    assert done.err == "playhead: 5 matches in 1 run\n"
    assert done.status == 0


def test_each_text_of_a_run_is_found_once_and_in_every_run(desk: CommandLine):
    """Histories repeat it, attributes and facts hold it; internal facts are no texts."""
    assert sum("Where is order 81?" in line for line in desk("search", "order").lines) == 1
    assert not any("hashes" in line for line in desk("search", "order").lines)
    assert desk("search", "asyncio").status == 1
    again = HandMade(b"i" * 16, b"t" * 16).start()
    talk(again, request(QUESTION), answer(content="Monday."))
    store_run(desk.data_dir, again.exit(0))
    found = desk("search", "Where")
    assert [line.split()[0] for line in found.lines] == ["refund-1:1", "refund-2:1"]
    assert found.err == "playhead: 2 matches in 2 runs\n"


def test_the_number_of_a_step_is_that_of_show(desk: CommandLine):
    for line in desk("search", "order").lines[:-1]:
        place, who = line.split()[:2]
        step = desk("show", place, "--all").lines
        assert step[0].startswith(f"{place} ")
        assert any(who in one for one in step), (who, step)


def test_no_more_is_shown_than_asked_for_and_that_is_said(desk: CommandLine):
    done = desk("search", "order", "-n", "2")
    assert len(done.lines) == 2
    assert done.err == "playhead: 2 matches in 1 run; more with -n 10\n"


def test_search_as_json_is_one_object_a_line(desk: CommandLine):
    assert len(desk("search", "--json", "order", "-n", "2").lines) == 2
    done = desk("search", "--json", "81", "order", "-n", "1")
    [hit] = map(json.loads, done.lines)
    assert (hit["run"], hit["step"], hit["who"], done.err) == ("refund-1", 1, "user", "")
    shown = [hit["excerpt"][begin:end] for begin, end in hit["highlights"]]
    assert shown == ["order", "81"]
    assert hit["excerpt"] == "Where is order 81? And 82?"


def test_words_that_stand_in_different_texts_of_a_step_are_found_there(desk: CommandLine):
    lines = desk("search", "settled").lines
    assert lines == ["refund-1  stdout  order 81 is settled"]
    assert {line.split()[0] for line in desk("search", "found", "Where").lines} == {"refund-1:3"}


def test_what_was_found_stands_out_and_fields_narrow_the_runs(playhead: CommandLine, refund_1: str):
    done = playhead("search", '"order 81"', "agent:refund")
    assert done.status == 0 and all("order 81" in line for line in done.lines)
    assert "\x1b[1;7morder 81\x1b[0m" in playhead("search", "--color", "always", '"ORDER 81"').out


def test_a_narrow_terminal_shows_the_match(desk: CommandLine, monkeypatch: pytest.MonkeyPatch):
    made = HandMade(b"i" * 16, b"t" * 16).start()
    long = {"role": "user", "content": "It is a long way to Tipperary, where kettles are made."}
    talk(made, request(long), answer(content="So it is."))
    store_run(desk.data_dir, made.exit(0))
    desk("search", "kettles")
    with terminal(monkeypatch, 50, colour=False) as shown:
        run(["search", "kettles", "--data-dir", str(desk.data_dir), "--no-config"])
    assert "kettles" in shown.text.splitlines()[0]


def test_search_of_what_nobody_said_finds_nothing(playhead: CommandLine, refund_1: str):
    for words in (("umbrella",), ("order", "agent:other"), ("order", "until:2020-01-01")):
        done = playhead("search", *words)
        assert (done.status, done.out) == (1, "")
        assert done.err == "playhead: no run contains that\n"
    assert playhead("search", "agent:refund").err.splitlines()[0] == (
        "error[usage]: no word to search for"
    )


def test_replays_are_searched_when_they_are_asked_for(playhead: CommandLine, refund_1: str):
    again = refund(b"t" * 16, b"i" * 16, **{a.PLAYHEAD_RUN_MODE: "replay"})
    store_run(playhead.data_dir, again)
    assert {line.split(":")[0] for line in playhead("search", "order").lines} == {"refund-1"}
    both = {line.split(":")[0] for line in playhead("search", "order", "mode:all").lines}
    assert both == {"refund-1", "refund-2"}
