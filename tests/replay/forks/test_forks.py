"""How edits are written, what they make of requests and answers, and the folder that a fork works in."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.servers.scripted import anthropic_messages, openai_chat, openai_responses, sse
from support.tapes.handmade import HandMade

from playhead_core.errors import UsageError
from playhead_core.facts import Content, Fact
from playhead_core.rerun.edits import applied, between, steps_of
from playhead_core.rerun.plans import Edit, Plan, read_plan, write_plan
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_genai.providers import DIALECTS, SseParser
from playhead_replay import Run
from playhead_replay.forks.answer_streams import streamed
from playhead_replay.forks.edited_answer import edited_answer
from playhead_replay.forks.edited_streams import Stream, edited_in_place
from playhead_replay.forks.edits_in_words import edit_by_hand, parse_edit, patch_file
from playhead_replay.forks.fork import ForkPoint, fork_of
from playhead_replay.forks.resume import GoingOn
from playhead_replay.forks.tools_in_bodies import last_tool_message
from playhead_replay.forks.workspace import FileState, states_at
from playhead_replay.run.exchanges import exchanges_of
from playhead_semconv import attributes as a
from playhead_semconv import events as e

REQUEST = {"model": "m", "messages": [{"role": "user", "content": "a"}], "x.y": {"z": [1, 2]}}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("request.model=n", {**REQUEST, "model": "n"}),
        ("model=n", {**REQUEST, "model": "n"}),
        ("messages[-1].content=b=c", {**REQUEST, "messages": [{"role": "user", "content": "b=c"}]}),
        ('request["x.y"].z[0]={"k": null}', {**REQUEST, "x.y": {"z": [{"k": None}, 2]}}),
        ("+temperature=0.5", {**REQUEST, "temperature": 0.5}),
        ("+messages[0]=7", {**REQUEST, "messages": [7, *REQUEST["messages"]]}),
        ("+messages[-1]=7", {**REQUEST, "messages": [*REQUEST["messages"], 7]}),
        ('model="7"', {**REQUEST, "model": "7"}),
        ("x!", None),
        ("messages[0].role!", {**REQUEST, "messages": [{"content": "a"}]}),
        ("request={}", {}),
    ],
)
def test_an_edit_changes_what_it_names(text: str, wanted: Any):
    root, edit = parse_edit(text)
    assert root == "request"
    if wanted is None:
        with pytest.raises(UsageError, match="x matches nothing"):
            applied(REQUEST, [edit])
        return
    before = json.dumps(REQUEST)
    assert applied(REQUEST, [edit]) == wanted
    assert json.dumps(REQUEST) == before


@pytest.mark.parametrize(
    ("path", "cause", "hint"),
    [
        ("modle", "it has model, messages, x.y", "the nearest path is model"),
        ("messages[3].content", "messages has 1 items", "the nearest path is messages[0]"),
        (
            "messages[0].contnt",
            "messages[0] has role, content",
            "the nearest path is messages[0].content",
        ),
        ("model.name", 'model is "m", which has no parts', "it cannot be edited there"),
    ],
)
def test_an_edit_that_matches_nothing_names_the_nearest(path: str, cause: str, hint: str):
    with pytest.raises(UsageError) as refused:
        applied(REQUEST, [Edit(path, 1)])
    assert refused.value.what == f"{path} matches nothing"
    assert refused.value.cause == cause
    assert refused.value.hint.startswith(hint)


@pytest.mark.parametrize(
    ("document", "text", "wanted"),
    [
        ({"a": '{"total": 490, "unit": "€"}'}, "a.total=49", {"a": '{"total": 49, "unit": "€"}'}),
        ({"a": '{"total":490,"unit":"\\u20ac"}'}, "a.total=49", {"a": '{"total":49,"unit":"\\u20ac"}'}),
        ({"a": '{\n  "total": 490\n}'}, "a.total=49", {"a": '{\n  "total": 49\n}'}),
        ({"a": '[{"b": "[1, 2]"}]'}, "a[0].b[-1]=3", {"a": '[{"b": "[1, 3]"}]'}),
        ({"a": '{"b":1}'}, "+a.c=2", {"a": '{"b":1,"c":2}'}),
        ({"a": '{"b":1,"c":2}'}, "a.b!", {"a": '{"c":2}'}),
        ({"a": '{"b":1}'}, 'a={"b": 2}', {"a": '{"b":2}'}),
        ({"a": '{"b":1}'}, "a=no more", {"a": "no more"}),
        ({"a": "plain"}, 'a={"b": 2}', {"a": {"b": 2}}),
        ('{"b":1}', "b=2", '{"b":2}'),
    ],
)
def test_an_edit_reaches_into_json_within_a_string(document: Any, text: str, wanted: Any):
    assert applied(document, [parse_edit(text)[1]]) == wanted


def test_a_path_into_a_string_that_is_no_json_matches_nothing():
    with pytest.raises(UsageError) as refused:
        applied({"a": "{total: 490"}, [Edit("a.total", 49)])
    assert (refused.value.what, refused.value.cause) == (
        "a.total matches nothing",
        'a is "{total: 490", which has no parts',
    )
    with pytest.raises(UsageError) as refused:
        applied({"a": '{"total": 490}'}, [Edit("a.totl", 49)])
    assert refused.value.hint.startswith("the nearest path is a.total")


@pytest.mark.parametrize("path", ["messages[", "a..b", "[x]", "a]"])
def test_what_is_no_path_is_refused(path: str):
    with pytest.raises(UsageError, match="is no path"):
        steps_of(path)


def test_values_come_from_files(tmp_path: Path):
    text, document = tmp_path / "a.txt", tmp_path / "a.json"
    text.write_text("1\n")
    document.write_text('{"b": 1}')
    assert parse_edit(f"tool_result=@{text}") == ("tool_result", Edit("", "1\n"))
    assert parse_edit(f"response.a=@{document}") == ("response", Edit("a", {"b": 1}))
    with pytest.raises(UsageError, match="cannot be read"):
        parse_edit(f"a=@{tmp_path / 'none'}")


def test_a_patch_file_is_lines_or_a_json_patch(tmp_path: Path):
    lines, patch = tmp_path / "edits", tmp_path / "patch.json"
    lines.write_text("# what\n\nmodel=n\nresponse.id=1\n")
    assert patch_file(lines) == [("request", Edit("model", "n")), ("response", Edit("id", 1))]
    operations = [
        {"op": "replace", "path": "/request/model", "value": "n"},
        {"op": "add", "path": "/request/messages/-", "value": 7},
        {"op": "remove", "path": "/x.y/z/0"},
    ]
    patch.write_text(json.dumps(operations))
    edits = [edit for _, edit in patch_file(patch)]
    wanted = {"model": "n", "messages": [*REQUEST["messages"], 7], "x.y": {"z": [2]}}
    assert applied(REQUEST, edits) == wanted
    patch.write_text('[{"op": "move"}]')
    with pytest.raises(UsageError, match="is not a JSON Patch"):
        patch_file(patch)


def test_what_is_edited_by_hand_becomes_edits(tmp_path: Path):
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i \'s/"m"/"n"/; s/"a"/"b"/\' "$1"\n')
    editor.chmod(0o755)
    found = edit_by_hand(REQUEST, {"EDITOR": str(editor), "PATH": "/usr/bin:/bin"})
    assert found == [Edit("model", "n"), Edit("messages[0].content", "b")]
    with pytest.raises(UsageError, match="nothing was edited"):
        edit_by_hand(REQUEST, {"EDITOR": "true", "PATH": "/usr/bin:/bin"})
    with pytest.raises(UsageError, match="has given up"):
        edit_by_hand(REQUEST, {"EDITOR": "false", "PATH": "/usr/bin:/bin"})


def test_differences_make_the_other_of_the_one():
    other = {
        "model": "n",
        "messages": [{"role": "user", "content": "a"}, 1],
        "new": 0,
        "x.y": {"z": [1, 3]},
    }
    assert applied(REQUEST, between(REQUEST, other)) == other


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        ({"messages": [{"role": "tool", "content": "1"}, {"role": "user"}]}, "messages[0].content"),
        ({"input": [{"type": "function_call_output", "output": "1"}]}, "input[0].output"),
        (
            {"messages": [{"role": "user", "content": [{"type": "tool_result", "content": "1"}]}]},
            "messages[0].content[0].content",
        ),
    ],
)
def test_what_the_last_tool_said_is_found(request_: dict[str, Any], path: str):
    assert last_tool_message(request_) == path


def folded(wire: str, pieces: list[bytes]) -> Any:
    fold, parser = DIALECTS[wire].fold(), SseParser()
    for event in parser.feed(b"".join(pieces)):
        if event.data.strip() == b"[DONE]":
            fold.done()
        else:
            fold.event(event.name, json.loads(event.data))
    assert fold.ended(True)
    return json.loads(json.dumps(fold.body()))


def chat_stream(whole: Any) -> list[bytes]:
    return sse.chat(openai_chat.chunks(whole))


def response_stream(whole: Any) -> list[bytes]:
    return sse.events(openai_responses.events(whole))


def message_stream(whole: Any) -> list[bytes]:
    return sse.events(anthropic_messages.events(whole))


CALL = openai_chat.tool_call("call_1", "look", '{"a": 1}')
CALLING = openai_chat.completion(None, tool_calls=[CALL], finish_reason="tool_calls")
RESPONSE = openai_responses.response([openai_responses.message("Hello, you")])
WHOLES: list[tuple[str, Any, Callable[[Any], list[bytes]]]] = [
    ("openai.chat", openai_chat.completion("Hello, you"), chat_stream),
    ("openai.chat", CALLING, chat_stream),
    ("openai.responses", RESPONSE, response_stream),
    ("anthropic.messages", anthropic_messages.message("Hello, you"), message_stream),
]


@pytest.mark.parametrize(("wire", "whole", "stream"), WHOLES)
def test_a_stream_made_anew_says_the_same(wire: str, whole: Any, stream: Any):
    once = folded(wire, stream(whole))
    again = streamed(wire, once)
    assert again is not None
    assert folded(wire, again) == once


CHAT = [
    '{"id":"c","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}',
    '{"id":"c", "model": "m", "n": 1.0, "choices":[{"index":0,"delta":{"content":"Hel"}}]}',
    '{"id":"c","model":"m","choices":[{"delta":{"content":"lo, "},"index":0}]}',
    '{"id":"c","model":"m","choices":[{"index":1,"delta":{"content":"\\u0048ello, you"}}]}',
    '{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"you","x":1e2}}]}',
    '{"id":"c","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"1",'
    '"type":"function","function":{"name":"pay","arguments":""}}]}}]}',
    '{"id":"c","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,'
    '"function":{"arguments":"{\\"to\\" :"}}]}}]}',
    '{"id":"c","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,'
    '"function":{"arguments":" 7, \\"x\\":1}"}}]}}]}',
    '{"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}',
    '{"id":"c","model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":3}}',
    "[DONE]",
]
MESSAGE = [
    '{"type":"message_start","message":{"id":"m","model":"c","content":[],"usage":{"input_tokens":1}}}',
    '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
    '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi "}}',
    '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"you"}}',
    '{"type":"content_block_stop","index":0}',
    '{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"pay",'
    '"input":{}}}',
    '{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta",'
    '"partial_json":"{\\"a\\" "}}',
    '{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":": 7}"}}',
    '{"type":"content_block_stop","index":1}',
    '{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}',
    '{"type":"message_stop"}',
]


def carriers(text: str) -> set[int]:
    """The events of a response that have a text."""
    return {number for number, one in enumerate(RESPONSES) if text in one}


RESPONSES = [json.dumps(one) for one in openai_responses.events(RESPONSE)]


@pytest.mark.parametrize(
    ("wire", "events", "path", "value", "changed"),
    [
        ("openai.chat", CHAT, "choices[0].message.content", "Hello, they", {4}),
        ("openai.chat", CHAT, "choices[0].message.content", "Bye", {1, 2, 4}),
        ("openai.chat", CHAT, "choices[0].message.content", "", {1, 2, 4}),
        ("openai.chat", CHAT, "choices[1].message.content", "Hello, they", {3}),
        ("openai.chat", CHAT, "choices[0].message.tool_calls[0].function.arguments.to", 8, {7}),
        ("openai.chat", CHAT, "choices[0].message.tool_calls[0].function.name", "look", {5}),
        ("openai.chat", CHAT, "choices[0].finish_reason", "stop", {8}),
        ("openai.chat", CHAT, "usage.prompt_tokens", 4, {9}),
        ("openai.chat", CHAT, "model", "n", set(range(10))),
        ("anthropic.messages", MESSAGE, "content[0].text", "Hi they", {3}),
        ("anthropic.messages", MESSAGE, "content[1].input.a", 8, {7}),
        ("anthropic.messages", MESSAGE, "content[1].name", "look", {5}),
        ("anthropic.messages", MESSAGE, "stop_reason", "end_turn", {9}),
        (
            "openai.responses",
            RESPONSES,
            "output[0].content[0].text",
            "Hello, they",
            carriers("Hello, you") | {5},  # and the delta of its end
        ),
        ("openai.responses", RESPONSES, "model", RESPONSE["model"][::-1], carriers('"model"')),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_events_that_do_not_carry_an_edited_field_keep_their_bytes(
    wire: str, events: list[str], path: str, value: Any, changed: set[int], end: str
):
    sent = [
        f": a comment{end}id: {number}{end}data:{one}{end}{end}" for number, one in enumerate(events)
    ]
    body = "".join(sent).encode()
    old = folded(wire, [body])
    new = applied(old, [Edit(path, value)])
    stream = Stream.of(body[at : at + 50] for at in range(0, len(body), 50))
    edited = edited_in_place(stream, old, new, lambda one: folded(wire, [one]))
    assert edited is not None
    assert folded(wire, edited.chunks()) == new
    after = edited.body.decode().split(f"{end}{end}")
    assert len(after) == len(sent) + 1
    found = {number for number, one in enumerate(sent) if one != f"{after[number]}{end}{end}"}
    assert found == changed


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_an_edited_stream_keeps_its_chunks_as_far_as_it_has_them(encoding: str):
    events = [f"data: {one}\n\n".encode() for one in CHAT]
    body = b"".join(events)
    if encoding == "gzip":
        sent = gzip.compress(body)
        chunks = tuple(sent[at : at + 40] for at in range(0, len(sent), 40))
    else:
        chunks = tuple(body[at : at + 40] for at in range(0, len(body), 40))
    headers = ("content-type", "text/event-stream", "content-encoding", encoding)
    made = HandMade().start()
    made.exchange(chunks=chunks, headers=headers)
    (exchange,) = exchanges_of(made.tape())
    facts = edited_answer(exchange, [Edit("choices[0].message.content", "Hello, they")])
    edited = [one.body.inline for one in facts if one.name == e.PLAYHEAD_EXCHANGE_DATA and one.body]
    assert b"".join(filter(None, edited)) == body.replace(b'"you","x"', b'"they","x"')
    assert len(edited) == len(chunks) or encoding == "gzip"
    response = next(one for one in facts if one.name == e.PLAYHEAD_EXCHANGE_RESPONSE)
    assert "content-encoding" not in response.attributes[a.PLAYHEAD_HTTP_HEADERS]


def test_a_part_that_is_added_makes_the_stream_again():
    body = "".join(f"data: {one}\n\n" for one in CHAT).encode()
    old = folded("openai.chat", [body])
    new = applied(old, [Edit("choices[0].message.refusal", "no", add=True)])
    assert edited_in_place(Stream.of([body]), old, new, lambda one: folded("openai.chat", [one])) is None


def test_a_plan_is_read_as_it_was_written():
    plan = Plan("fork", "a-b", True, {"1/http/0": "skip"}, {"1/http/1": [Edit("a", [None])]}, [7], True)
    assert read_plan(write_plan(plan)) == plan
    with pytest.raises(UsageError, match="cannot be read"):
        read_plan(b"{")


REFUND: dict[str, Any] = {
    "type": "object",
    "properties": {"order": {"type": "integer"}, "amount": {"type": "number", "maximum": 100}},
    "required": ["order"],
    "additionalProperties": False,
}
ARGUMENTS = '{"order": 81, "amount": 490}'
CHAT_TOOLS = [{"type": "function", "function": {"name": "refund", "parameters": REFUND}}]
FLAT_TOOLS = [{"type": "function", "name": "refund", "parameters": REFUND}]
CLAUDE_TOOLS = [{"name": "refund", "input_schema": REFUND}]
CHAT_CALL = openai_chat.tool_call("call_1", "refund", ARGUMENTS)
CALLS: dict[str, tuple[str, Any, Any, Callable[[Any], Any]]] = {
    "chat": (
        "/v1/chat/completions",
        CHAT_TOOLS,
        openai_chat.completion(None, tool_calls=[CHAT_CALL], finish_reason="tool_calls"),
        lambda answer: answer["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"],
    ),
    "responses": (
        "/v1/responses",
        FLAT_TOOLS,
        {"output": [{"type": "function_call", "name": "refund", "arguments": ARGUMENTS}]},
        lambda answer: answer["output"][0]["arguments"],
    ),
    "messages": (
        "/v1/messages",
        CLAUDE_TOOLS,
        {"content": [{"type": "tool_use", "name": "refund", "input": json.loads(ARGUMENTS)}]},
        lambda answer: answer["content"][0]["input"],
    ),
}


def calling(kind: str, tools: Any = None) -> tuple[Run, Callable[[Any], Any]]:
    """A run whose one step was answered with a call of a function."""
    path, declared, answer, arguments = CALLS[kind]
    made = HandMade(bytes(range(16)), bytes(range(16, 32)))
    made.start()
    body = json.dumps({"model": "m", "tools": declared if tools is None else tools}).encode()
    made.chat(body, (json.dumps(answer).encode(),), key=f"POST http://127.0.0.1:9{path}")
    made.exit(0)
    return Run.of_tape(MemoryTape(made.facts), [span.otlp for span in made.spans], "made-1"), arguments


def edited_call(kind: str, text: str, tools: Any = None) -> Any:
    """The arguments of the call in the answer that a fork with this edit plays."""
    run, arguments = calling(kind, tools)
    fork = fork_of(run, ForkPoint(run.steps[0]), [parse_edit(text)], GoingOn(nobody))
    [exchange] = exchanges_of(MemoryTape(list(fork.tape.facts())))
    return arguments(json.loads(exchange.response))


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("chat", '{"order": 81, "amount": 49}'),
        ("responses", '{"order": 81, "amount": 49}'),
        ("messages", {"order": 81, "amount": 49}),
    ],
)
def test_the_call_of_a_function_is_edited_by_one_path_with_every_provider(kind: str, wanted: Any):
    assert edited_call(kind, "function.arguments.amount=49") == wanted


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize(
    ("text", "what", "cause"),
    [
        (
            "function.arguments.amount=49 EUR",
            "refund does not take arguments.amount as edited: '49 EUR' is not of type 'number'",
            'tape: 490; now: "49 EUR"; refund declares {"type": "number", "maximum": 100}',
        ),
        (
            "+function.arguments.note=x",
            "refund does not take arguments as edited: Additional properties are not allowed",
            'tape: {"order": 81, "amount": 490}; now: {"order": 81, "amount": 490, "note": "x"}',
        ),
    ],
)
def test_an_edited_call_has_to_fit_the_tool_that_the_request_declares(
    kind: str, text: str, what: str, cause: str
):
    with pytest.raises(UsageError) as refused:
        edited_call(kind, text)
    assert refused.value.what.startswith(what)
    assert refused.value.cause.startswith(cause)


@pytest.mark.parametrize(
    "schema", [{"type": "nonsense"}, {"$ref": "http://127.0.0.1:9/schema"}, {"$ref": "#/none"}]
)
def test_what_is_no_whole_schema_declares_nothing(schema: Any):
    tools = [{"type": "function", "function": {"name": "refund", "parameters": schema}}]
    assert edited_call("chat", "function.arguments.amount=x", tools) == '{"order": 81, "amount": "x"}'


def test_an_answer_that_calls_nothing_has_no_function_to_edit():
    made = HandMade(bytes(range(16)), bytes(range(16, 32)))
    made.start()
    made.chat(b'{"model":"m"}', (b'{"choices": []}',))
    made.exit(0)
    run = Run.of_tape(MemoryTape(made.facts), [span.otlp for span in made.spans], "made-1")
    with pytest.raises(UsageError, match="the answer calls no function"):
        edit = parse_edit("function.arguments.amount=49")
        fork_of(run, ForkPoint(run.steps[0]), [edit], GoingOn(nobody))


@pytest.mark.parametrize("content", ['{"total": 490}', [{"type": "text", "text": '{"total": 490}'}]])
def test_the_result_of_a_tool_is_edited_inside_of_its_string(content: Any):
    body = {"model": "m", "messages": [{"role": "tool", "tool_call_id": "1", "content": content}]}
    made = HandMade(bytes(range(16)), bytes(range(16, 32)))
    made.start()
    made.chat(json.dumps(body).encode(), (b"{}",))
    made.exit(0)
    run = Run.of_tape(MemoryTape(made.facts), [span.otlp for span in made.spans], "made-1")
    edits = [parse_edit("tool_result.total=49"), parse_edit("+tool_result.unit=EUR")]
    fork = fork_of(run, ForkPoint(run.steps[0]), edits, GoingOn(nobody))
    [of_request] = fork.plan.edits.values()
    assert applied(body, of_request)["messages"][0]["content"] == json.loads(
        json.dumps(content).replace("490", '49, \\"unit\\": \\"EUR\\"')
    )


def nobody(_: object) -> Any:
    raise AssertionError("nothing is open")


def test_a_step_that_asked_nothing_is_no_place_for_a_fork():
    made = HandMade(bytes(range(16)), bytes(range(16, 32)))
    made.start()
    made.tool("search", "{}")
    made.chat(b'{"model":"m"}', (b"{}",))
    made.exit(0)
    run = Run.of_tape(MemoryTape(made.facts), [span.otlp for span in made.spans], "made-1")
    with pytest.raises(UsageError) as refused:
        fork_of(run, ForkPoint(run.steps[0]), (), GoingOn(nobody))
    assert refused.value.what == "step 1 of made-1 has no recorded request: a fork cannot begin there"
    assert refused.value.hint == "the next that did: playhead fork made-1:2"
    with pytest.raises(UsageError, match="a fork edits either a request or a response"):
        edits = [parse_edit("model=n"), parse_edit("response.id=1")]
        fork_of(run, ForkPoint(run.steps[1]), edits, GoingOn(nobody))


def test_the_folder_of_a_fork_is_as_it_was():
    def read(kind: str, data: bytes | None = None, offset: int | None = None) -> Fact:
        named: dict[str, Any] = {a.PLAYHEAD_READ_KIND: kind}
        return fact(e.PLAYHEAD_READ, named, data, offset)

    def did(kind: str, target: str, data: bytes | None = None, offset: int | None = None) -> Fact:
        named: dict[str, Any] = {a.PLAYHEAD_EFFECT_KIND: kind, a.PLAYHEAD_EFFECT_TARGET: target}
        return fact(e.PLAYHEAD_EFFECT, named, data, offset)

    def fact(name: str, named: dict[str, Any], data: bytes | None, offset: int | None) -> Fact:
        at = named if offset is None else {**named, a.PLAYHEAD_FILE_OFFSET: offset}
        return Fact(0, 1, name, attributes=at, body=None if data is None else Content.of(data))

    played = [
        read("file/open ./read.txt", b"read"),
        did("file.write", "./made.txt", b"first"),
        did("file.append", "./grown.txt", b"tail", offset=100),
        did("file.unlink", "./gone.txt"),
        did("file.append", "/elsewhere.txt", b"x"),
    ]
    later = [
        did("file.write", "./made.txt", b"second"),
        read("file/open-append ./log.txt", offset=12),
        read("file/open-append ./new.txt"),
        did("file.mkdir", "./folder"),
    ]
    facts = [
        Fact(one.time_ns, one.lane, one.name, attributes=one.attributes, body=one.body, seq=seq)
        for seq, one in enumerate([*played, *later])
    ]
    states = states_at(MemoryTape(facts), MemoryTape(facts[: len(played)]))
    assert states == {
        "read.txt": FileState(data=b"read"),
        "made.txt": FileState(data=b"first"),
        "grown.txt": FileState(size=104),
        "gone.txt": FileState(there=False),
        "log.txt": FileState(size=12),
        "new.txt": FileState(there=False),
        "folder": FileState(there=False),
    }
