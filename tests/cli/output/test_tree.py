"""A run: what its tools were called with, what was said, what came in, and why it failed."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.answers.spoken import QUESTION, answer, request
from support.starting.cli import CommandLine, store_run
from support.tapes.handmade import HandMade

from playhead_cli.output.styles import StyledLine
from playhead_cli.output.tree import tree_lines
from playhead_core.facts import Content, ErrorRecord, ExchangeId
from playhead_replay import Run
from playhead_semconv import attributes as a
from playhead_semconv import events as e


def shown(made: HandMade, width: int | None = None) -> list[str]:
    run = Run.of_tapes([made.tape()], [span.otlp for span in made.spans], "refund-1")
    return [line.plain for line in tree_lines(run, width=width)]


def test_tools_are_named_with_what_they_are_called_with():
    made = HandMade().start()
    made.tool("search", '{"q": "order 81"}')
    made.tool("refund", '{"order": "81", "cents": 4900}')
    made.tool("shell", "ls -l")
    lines = [line[11:] for line in shown(made.exit(0))[2:]]
    assert lines == [
        'execute_tool search  "order 81"  200ms',
        'execute_tool refund  order="81", cents=4900  200ms',
        "execute_tool shell   ls -l  200ms",
    ]


def test_steps_with_other_arguments_are_not_folded():
    made = HandMade().start()
    for number in range(9):
        made.tool("search", json.dumps({"q": f"order {number}"}))
    assert len(shown(made.exit(0))) == 2 + 9
    same = HandMade().start()
    for _ in range(9):
        same.tool("search", '{"q": "order"}')
    assert shown(same)[3] == "⋮ 2–8 same ×7 (--all)"


def test_calls_are_folded_only_if_question_and_answer_are_equal():
    made = HandMade().start()
    for number in range(9):
        made.chat(request({"role": "user", "content": f"question {number}"}), (answer(content="yes"),))
    assert len(shown(made.exit())) == 3 + 9
    made = HandMade().start()
    for number in range(9):
        made.chat(
            request({"role": "user", "content": "the same"}), (answer(content=f"answer {number}"),)
        )
    assert len(shown(made.exit())) == 3 + 9
    made = HandMade().start()
    for _ in range(9):
        made.chat(request({"role": "user", "content": "the same"}), (answer(content="yes"),))
    lines = shown(made)
    assert lines[3] == "↻ loop ×9  chat gpt-4o at 1–9, the same results"
    assert lines[5] == "⋮ 2–8 same ×7 (--all)"


def test_rounds_of_a_growing_conversation_are_folded_by_what_they_add():
    made, history = HandMade().start(), [{"role": "user", "content": "order 81?"}]
    for number in range(8):
        call = {"id": f"c{number}", "type": "function"}
        call["function"] = {"name": "search", "arguments": '{"q": "81"}'}
        made.chat(request(*history), (answer(tool_calls=[call]),))
        made.tool("search", '{"q": "81"}')
        history += [{"role": "assistant", "tool_calls": [call]}]
        history += [{"role": "tool", "tool_call_id": f"c{number}", "content": "nothing"}]
    lines = shown(made)
    assert [line for line in lines if "same" in line] == [
        "↻ loop ×8  search at 1.1–15.1, the same results",
        "⋮ 4–15 same ×6 (--all)",
    ]


def test_long_runs_of_different_calls_are_folded_with_what_differs():
    made = HandMade().start()
    for number in range(40):
        made.tool("search", json.dumps({"query": f"order {number}", "limit": 5}))
    lines = shown(made.exit())[2:]
    assert lines[1] == "⋮ 2–39 38 × execute_tool search, differs: query (--all)"
    assert [line.split()[0] for line in (lines[0], lines[2])] == ["1", "40"]


def test_calls_whose_content_is_not_recorded_are_not_called_the_same():
    made = HandMade().start()
    for _ in range(30):
        made.finish(made.begin("chat gpt-4o", kind=3, **{a.GEN_AI_OPERATION_NAME: "chat"}))
    assert shown(made.exit())[3] == "⋮ 2–29 28 chats, content not recorded (--all)"


def test_calls_that_differ_in_an_image_alone_are_not_the_same():
    made = HandMade().start()
    for number in range(9):
        image = {"type": "image_url", "image_url": {"url": f"https://shop/{number}.png"}}
        said = [{"type": "text", "text": "What is this?"}, image]
        made.chat(request({"role": "user", "content": said}), (answer(content="a kettle"),))
    assert not [line for line in shown(made.exit()) if "⋮" in line]


def _agents(made: HandMade, *, chats: int = 2, agents: int = 7, failing: int = -1) -> None:
    for number in range(agents):
        name = {a.GEN_AI_OPERATION_NAME: "invoke_agent", a.GEN_AI_AGENT_NAME: f"a{number}"}
        agent = made.begin(f"invoke_agent a{number}", **name)
        for _ in range(chats + number % 2):
            operation = {a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_INPUT_MESSAGES: f"[{number}]"}
            chat = made.begin("chat gpt-4o", parent=agent, kind=3, **operation)
            made.wait(0.1)
            made.finish(chat, error="no answer" if number == failing else "")
        made.finish(agent)


def test_steps_of_agents_are_folded_under_the_agents():
    made = HandMade().start()
    _agents(made)
    lines = shown(made.exit())[2:]
    assert lines[3] == "⋮ 3–15 13 chats ▸ 5 agents, differs: agent, messages (--all)"
    assert [line.split()[-2:-1] for line in lines[:1]] == [["invoke_agent"]]
    assert lines[4].split()[-2:] == ["invoke_agent", "a6"]


def test_a_failure_is_never_folded():
    made = HandMade().start()
    for number in range(60):
        made.tool("search", '{"q": "x"}', error="ValueError: no" if number == 30 else "")
    lines = [line for line in shown(made.exit(1)) if "⋮" in line or "✗ 31" in line]
    assert lines[0] == "⋮ 2–30 same ×29 (--all)" and lines[1].startswith("✗ 31")
    made = HandMade().start()
    _agents(made, chats=8, failing=3)
    assert [line for line in shown(made.exit()) if line.startswith("✗")]


def test_a_line_of_what_was_said_is_shortened_to_the_width():
    text = "Order 81 is on its way; it comes on Monday, or on Tuesday if the weather is bad."
    made = HandMade().start()
    made.chat(request(QUESTION), (answer(content=text),))
    call = [{"id": "c", "type": "function", "function": {"name": "search", "arguments": '{"q":"x"}'}}]
    made.chat(request(QUESTION), (answer(tool_calls=[*call, *call]),))
    made.exit()
    wide = shown(made)
    assert wide[2] == "→ Where is order 81? And 82?"
    assert wide[3] == f"  1  +0.0s chat gpt-4o  812→64 tok  200ms  {text}"
    assert wide[4].endswith('  calls search("x"), search("x")')
    narrow = shown(made, 70)
    assert narrow[3].startswith("  1  +0.0s chat gpt-4o  812→64 tok  200ms  Order 81 is on its")
    assert narrow[3].endswith("…") and len(narrow[3]) == 70
    below = shown(made, 45)
    assert below[3:5] == ["  1  +0.0s chat gpt-4o  812→64 tok  200ms", f"            {text}"]


def test_a_call_that_waits_shows_what_it_was_asked():
    made = HandMade().start()
    call = made.begin("chat gpt-4o", kind=3, **{a.GEN_AI_OPERATION_NAME: "chat"})
    attempt = made.begin("POST", parent=call, kind=3, **{a.HTTP_REQUEST_METHOD: "POST"})
    made.exchange(request=request(QUESTION), span=attempt, answered=False)
    assert shown(made)[3] == "… 1  +0.0s chat gpt-4o  sent, not answered  Where is order 81? And 82?"


def test_a_request_shows_the_body_of_its_answer():
    made = HandMade().start()
    url = "https://shop/orders?order=81"
    span = made.begin("GET", kind=3, **{a.HTTP_REQUEST_METHOD: "GET", a.URL_FULL: url})
    made.exchange(f"GET {url}", b"", (b'{"item":"tea kettle"}',), span=span)
    made.finish(span, **{a.HTTP_RESPONSE_STATUS_CODE: 200})
    assert shown(made)[2].endswith('GET /orders?order=81  200 shop  200ms  {"item":"tea kettle"}')
    assert shown(made, 90)[2].endswith('GET /orders?order=81  200  200ms  {"item":"tea kettle"}')


def _attributes(error: ErrorRecord) -> dict[str, str]:
    return {
        a.PLAYHEAD_ERROR_MODULE: error.module,
        a.PLAYHEAD_ERROR_QUALNAME: error.qualname,
        a.PLAYHEAD_ERROR_MESSAGE: error.message,
    }


def served(made: HandMade, status: int, body: bytes, error: ErrorRecord | None = None) -> HandMade:
    """A request to the program, which is the run."""
    id, lane = ExchangeId(7, "inbound", 0), 7
    made.fact(e.PLAYHEAD_LANE, lane, attributes={a.PLAYHEAD_LANE_NAME: "request-1"})
    asked = {a.PLAYHEAD_ASK_KEY: "POST /ask", a.PLAYHEAD_EXCHANGE_DIRECTION: "in"}
    made.fact(e.PLAYHEAD_EXCHANGE_REQUEST, lane, 0xA0, exchange=id, attributes=asked)
    made.fact(e.PLAYHEAD_EXCHANGE_DATA, lane, exchange=id, body=Content.chunk(b'{"text":"81?"}'))
    made.tool("search", '{"q": "order 81"}')
    if status:
        head = {a.HTTP_RESPONSE_STATUS_CODE: status}
        made.fact(e.PLAYHEAD_EXCHANGE_RESPONSE, lane, exchange=id, attributes=head)
        sent: dict[str, Any] = {a.PLAYHEAD_EXCHANGE_DIRECTION: "out"}
        made.fact(e.PLAYHEAD_EXCHANGE_DATA, lane, exchange=id, attributes=sent, body=Content.chunk(body))
    failure = {} if error is None else _attributes(error)
    ended = {a.PLAYHEAD_END_HOW: "complete" if error is None else "error", **failure}
    made.fact(e.PLAYHEAD_EXCHANGE_END, lane, exchange=id, attributes=ended)
    return made


def test_a_run_that_is_a_request_shows_its_route_and_answer():
    lines = shown(served(HandMade().start(), 200, b'{"answer":"Monday"}'))
    assert lines[2:4] == ["  POST /ask → 200", '→ {"text":"81?"}']
    assert lines[-1] == '← {"answer":"Monday"}'


def test_a_failed_request_says_its_route_status_body_and_exception():
    error = ErrorRecord("builtins", "ValueError", "no order")
    lines = shown(served(HandMade().start(), 500, b"Internal Server Error", error))
    assert lines[2] == "  POST /ask → 500"
    assert lines[-2:] == ["✗ POST /ask → 500  Internal Server Error", "  ValueError: no order"]
    unanswered = shown(served(HandMade().start(), 0, b"", error))
    assert unanswered[-1] == "✗ POST /ask → error: ValueError: no order"


@pytest.mark.parametrize(
    ("code", "error", "said"),
    [
        (1, ErrorRecord("builtins", "ValueError", "no order"), "✗ ValueError: no order (exit status 1)"),
        (3, ErrorRecord("builtins", "SystemExit", "3"), "✗ exit status 3"),
    ],
)
def test_a_failed_program_says_its_exception_and_its_status(code: int, error: ErrorRecord, said: str):
    made = HandMade().start(cwd="/home/ada/desk")
    made.say(
        '  File "/home/ada/desk/agent.py", line 3, in main\n    refund(order)\n    ~~~~^^^^\n', "stderr"
    )
    made.exit(code)
    made.facts[-1].attributes.update(_attributes(error))
    assert shown(made)[2:] == [said, '  File "agent.py", line 3, in main', "  refund(order)"]


def test_a_traceback_shows_the_lines_of_the_program():
    made = HandMade().start(cwd="/home/ada/desk")
    frames = ["Traceback (most recent call last):"]
    for path, line, code in [
        ("/home/ada/desk/old.py", 1, "handled()"),
        ("/usr/lib/python3.12/json/decoder.py", 337, "raise error"),
    ]:
        frames += [f'  File "{path}", line {line}, in f', f"    {code}"]
    frames += ["KeyError: 1", "During handling of the above exception, another exception occurred:"]
    frames += ["Traceback (most recent call last):"]
    for path, line, code in [
        ("/home/ada/desk/agent.py", 12, "answer = ask(order)"),
        ("/home/ada/desk/.venv/lib/python3.12/site-packages/openai/_client.py", 90, "self._request()"),
        ("/home/ada/desk/.venv/lib/python3.12/site-packages/httpx/_client.py", 40, "self._send()"),
    ]:
        frames += [f'  File "{path}", line {line}, in f', f"    {code}", "    ^^^^^^"]
    made.say("\n".join([*frames, "openai.APIConnectionError: Connection error."]), "stderr")
    made.exit(1)
    made.facts[-1].attributes.update(_attributes(ErrorRecord("openai", "APIConnectionError", "gone")))
    assert shown(made)[2:] == [
        "✗ APIConnectionError: gone (exit status 1)",
        '  File "agent.py", line 12, in f',
        "  answer = ask(order)",
    ]


def test_traffic_that_nothing_records_is_named_once_a_library():
    made = HandMade().start()
    for library, target, played in (
        ("tornado", "a.example:443", {}),
        ("tornado", "b.example:443", {}),
        ("tornado", "a.example:443", {}),
        ("", "c.example:25", {}),
        ("pymongo", "d.example:1", {a.PLAYHEAD_FIDELITY: "blocked"}),
    ):
        at = {a.PLAYHEAD_EFFECT_KIND: "socket", a.PLAYHEAD_EFFECT_TARGET: target, **played}
        at |= {a.PLAYHEAD_EFFECT_LIBRARY: library} if library else {}
        made.fact(e.PLAYHEAD_EFFECT, attributes=at)
    lines = [line for line in shown(made.exit(0)) if line.startswith("!")]
    assert lines == [
        "! not recorded: traffic of tornado with a.example:443, b.example:443  playhead doctor refund-1",
        "! not recorded: traffic of the program with c.example:25  playhead doctor refund-1",
    ]


def test_the_listing_makes_room_on_a_narrow_terminal(
    playhead: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    from playhead_cli.session.session import Session

    made = HandMade().start(**{a.PLAYHEAD_RUN_AGENT: "an agent with a long name"})
    made.chat()
    made.tool("search", "{}", error="builtins.ValueError: no order")
    store_run(playhead.data_dir, made.exit(1))
    assert playhead("ls").lines[0].split() == "NAME STATUS AGE STEPS TOKENS COST ERROR".split()
    monkeypatch.setattr(Session, "width", 80)
    assert playhead("ls").lines[0].split() == "NAME STATUS AGE STEPS COST ERROR".split()
    monkeypatch.setattr(Session, "width", 65)
    assert playhead("ls").lines[0].split() == "NAME STATUS AGE ERROR".split()


def test_a_line_is_the_same_text_with_and_without_its_styles():
    line = StyledLine([("\a✗ ", "red"), ("1\r", ""), ("a\tb", "dim")])
    line.append(" end\b")
    assert line.plain == line.__rich__().plain == "✗ 1a\tb end"
    assert [(span.start, span.end, span.style) for span in line.__rich__().spans] == [
        (0, 2, "red"),
        (3, 6, "dim"),
    ]
