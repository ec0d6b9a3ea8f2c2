"""One step: the conversation first, the wire on demand."""

import gzip
import json
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.answers.spoken import CALL, QUESTION, RESULT, answer, request
from support.starting.cli import CommandLine, store_run
from support.tapes.handmade import HandMade, span_id

from playhead_core.facts import Content, ExchangeId
from playhead_core.otlp import set_attributes
from playhead_receiver.storage import StoredSpan
from playhead_semconv import attributes as a
from playhead_semconv import events as e


def steps(playhead: CommandLine, made: HandMade) -> CommandLine:
    store_run(playhead.data_dir, made.exit(0))
    return playhead


def test_a_call_shows_what_is_new_and_folds_the_rest(playhead: CommandLine):
    made = HandMade().start()
    made.chat(request(QUESTION), (answer(tool_calls=CALL["tool_calls"]),))
    made.chat(request(QUESTION, CALL, RESULT), (answer(content="It comes."),))
    shown = steps(playhead, made)("show", ":2").lines
    assert shown[:-1] == [
        "refund-1:2 chat gpt-4o",
        "",
        "⋮ 2 earlier messages: 1 user, 1 assistant (--all)",
        "",
        "→ tool",
        '  search(q="order 81")',
        '  {"found": ["Order 81 is on its way."]}',
        "",
        "← assistant",
        "  It comes.",
        "",
    ]
    assert shown[-1].startswith("812→64 tok, $0.0027, 200ms, 0.2s after the start, at ")
    first = playhead("show", ":1").lines
    assert first[1:7] == [
        "",
        "→ user",
        "  Where is order 81?",
        "  And 82?",
        "",
        "← assistant",
    ]
    assert first[7] == '  calls search(q="order 81")'
    whole = playhead("show", ":2", "--all").lines
    assert whole.index("  Where is order 81?") < whole.index("→ tool")
    assert not any("earlier" in line for line in whole)


def test_nothing_of_the_wire_is_shown_unless_it_is_asked_for(playhead: CommandLine):
    made = HandMade().start()
    made.chat(
        request(QUESTION),
        (answer(content="It comes.")[:9], answer(content="It comes.")[9:]),
        **{a.PLAYHEAD_HTTP_HEADERS: ["x-asked", "1"]},
    )
    shown = steps(playhead, made)("show", ":1").out
    for part in ("x-asked", "content-type", "POST", '"messages"', "gen_ai", "chunks", "playhead."):
        assert part not in shown
    wire = playhead("show", ":1", "--wire").lines
    assert "main#0 POST http://provider/v1/chat/completions" in wire
    assert f"  {request(QUESTION).decode()}" in wire, "verbatim"
    assert wire[wire.index("  x-asked: 1") :][0]
    assert "200 after 100ms" in wire and "  content-type: application/json" in wire
    begin = wire.index(f"2 chunks, {len(answer(content='It comes.'))} B")
    assert [line.split()[0] for line in wire[begin + 1 : begin + 3]] == ["+0.200s", "+0.300s"]
    assert any(line.startswith("  gen_ai.operation.name: chat") for line in wire)


def test_reasoning_is_folded(playhead: CommandLine):
    thought = "The customer wants money back. " * 5
    said = [
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": thought},
                {"type": "text", "content": "Look at the order first."},
            ],
        }
    ]
    made = HandMade().start()
    call = made.begin("chat m", kind=3, **{a.GEN_AI_OPERATION_NAME: "chat"})
    made.finish(call, **{a.GEN_AI_OUTPUT_MESSAGES: json.dumps(said)})
    lines = steps(playhead, made)("show", ":1").lines
    [fold] = [line for line in lines if "reasoning" in line]
    assert fold.startswith("  ⋮ reasoning, 155 characters: The customer wants money back.")
    assert fold.endswith("… (--all)") and len(fold) < 120
    assert f"  {thought.strip()}" in [line.rstrip() for line in playhead("show", ":1", "--all").lines]


def retried(made: HandMade, *statuses: int) -> HandMade:
    """One call whose attempts are answered with ``statuses``."""
    call = made.begin("chat gpt-4o", kind=3, **{a.GEN_AI_OPERATION_NAME: "chat"})
    for number, status in enumerate(statuses):
        at = {a.HTTP_REQUEST_METHOD: "POST", a.HTTP_REQUEST_RESEND_COUNT: number}
        attempt = made.begin("POST", parent=call, kind=3, **at, **{a.HTTP_RESPONSE_STATUS_CODE: status})
        said = answer(content="It comes.") if status == 200 else b'{"error":"too many requests"}'
        made.exchange(
            request=request(QUESTION),
            chunks=(said,),
            status=status,
            span=attempt,
            **{a.PLAYHEAD_HTTP_HEADERS: ["x-retry", str(number)]},
        )
        made.finish(attempt, error="" if status == 200 else str(status))
    made.finish(call)
    return made


def test_equal_attempts_are_shown_once_with_their_number(playhead: CommandLine):
    shown = steps(playhead, retried(HandMade().start(), 429, 429, 429, 200))
    lines = shown("show", ":1").lines
    assert [line for line in lines if line.startswith("↻")] == [
        '↻ 429 ×3  {"error":"too many requests"}'
    ]
    assert lines.index('↻ 429 ×3  {"error":"too many requests"}') < lines.index("← assistant")
    wire = shown("show", ":1", "--wire").lines
    heads = [line for line in wire if " POST " in line]
    assert heads == [
        "main#0, main#1, main#2 POST http://provider/v1/chat/completions ×3",
        "main#3 POST http://provider/v1/chat/completions",
    ]
    assert sum("too many requests" in line for line in wire) == 1
    assert sum(request(QUESTION).decode() in line for line in wire) == 1
    tree = [line.split("  ")[-2:] for line in shown("show").lines if "↻ POST" in line]
    assert [" ".join(words[:1]).strip() for words in tree] == ["↻ POST 429 ×3", "↻ POST 200"]


def test_attempts_that_differ_are_not_put_together(playhead: CommandLine):
    shown = steps(playhead, retried(HandMade().start(), 429, 500, 429))
    lines = [line for line in shown("show", ":1").lines if line.startswith("↻")]
    assert [line.split()[1] for line in lines] == ["429", "500"]
    assert sum(" POST " in line for line in shown("show", ":1", "--wire").lines) == 3


def plain_request(
    made: HandMade, method: str, url: str, body: bytes, said: bytes, **more: Any
) -> HandMade:
    at = {a.HTTP_REQUEST_METHOD: method, a.URL_FULL: url}
    span = made.begin(method, kind=3, **at)
    made.exchange(f"{method} {url}", body, (said,), span=span, **more)
    made.finish(span, **{a.HTTP_RESPONSE_STATUS_CODE: more.get("status", 200)})
    return made


def test_a_plain_request_shows_method_url_status_and_the_decoded_body(playhead: CommandLine):
    url = "https://shop/orders?order=81"
    said = gzip.compress('{"item": "Teekanne für zwei"}'.encode())
    headers = ("content-type", "application/json", "content-encoding", "gzip", "x-secretly", "1")
    made = plain_request(HandMade().start(), "GET", url, b"", said, headers=headers)
    shown = steps(playhead, made)("show", ":1").lines
    assert shown[:-1] == [
        "refund-1:1 GET /orders?order=81",
        "",
        f"→ GET {url}",
        "",
        "← 200",
        '  {"item": "Teekanne für zwei"}',
        "",
    ]
    assert "  x-secretly: 1" in playhead("show", ":1", "--wire").lines


def test_a_form_is_shown_a_field_a_line_and_an_error_with_its_body(playhead: CommandLine):
    form = {a.PLAYHEAD_HTTP_HEADERS: ["content-type", "application/x-www-form-urlencoded"]}
    made = plain_request(
        HandMade().start(),
        "POST",
        "https://shop/refunds",
        b"order=81&note=broken+%C3%A9",
        b"no such order",
        status=404,
        headers=("content-type", "text/plain"),
        **form,
    )
    lines = steps(playhead, made)("show", ":1").lines
    assert lines[2:8] == [
        "→ POST https://shop/refunds",
        "  order=81",
        "  note=broken é",
        "",
        "← 404",
        "  no such order",
    ]


def test_long_bodies_are_cut_unless_all_is_asked_for(playhead: CommandLine):
    said = json.dumps({f"field{number}": "x" * 10 for number in range(100)}).encode()
    made = plain_request(HandMade().start(), "GET", "https://shop/all", b"", said)
    lines = steps(playhead, made)("show", ":1").lines
    assert "  ⋮ 62 more lines (--all)" in lines
    assert len(playhead("show", ":1", "--all").lines) > 100


def test_long_arguments_of_a_tool_stand_one_below_the_other(playhead: CommandLine):
    made = HandMade().start()
    made.tool("write_file", json.dumps({"path": "a.py", "text": "import os\nprint(1)\n"}))
    made.tool("search", '{"q": "order 81"}')
    lines = steps(playhead, made)("show", ":1").lines
    assert lines[2:7] == [
        "→ write_file",
        '    path: "a.py"',
        "    text:",
        "      import os",
        "      print(1)",
    ]
    assert playhead("show", ":2").lines[2] == '→ search(q="order 81")'


def test_wire_and_raw_are_of_a_step(playhead: CommandLine):
    refused = steps(playhead, HandMade().start())("show", "refund-1", "--wire")
    assert refused.status == 2
    assert refused.err.splitlines() == [
        "error[usage]: --wire shows the bytes of one step",
        "hint: playhead show refund-1:1 --wire",
    ]


def test_a_connection_shows_what_went_to_and_fro_in_order(playhead: CommandLine):
    made = HandMade().start()
    span = made.begin("GET", kind=3, **{a.HTTP_REQUEST_METHOD: "GET", a.URL_FULL: "ws://shop/talk"})
    id = ExchangeId(1, "websocket", 0)
    asked = {a.PLAYHEAD_ASK_KEY: "ws://shop/talk", a.PLAYHEAD_ASK_EFFECT: "read"}
    made.fact(
        e.PLAYHEAD_EXCHANGE_REQUEST, span=span, exchange=id, attributes=asked, body=Content.chunk(b"")
    )
    out = {a.PLAYHEAD_EXCHANGE_DIRECTION: "out"}
    for way, data in ((out, b'{"order": 81}'), ({}, b"wait"), ({}, b"\xff\x00"), (out, b"bye")):
        made.wait(0.1).fact(
            e.PLAYHEAD_EXCHANGE_DATA, span=span, exchange=id, attributes=way, body=Content.chunk(data)
        )
    made.fact(e.PLAYHEAD_EXCHANGE_END, exchange=id, attributes={a.PLAYHEAD_END_HOW: "complete"})
    made.finish(span)
    lines = steps(playhead, made)("show", ":1").lines
    assert lines[2:7] == [
        "ws://shop/talk",
        '→ {"order": 81}',
        "← wait",
        "← 2 B that are no text: ff 00…",
        "→ bye",
    ]


def test_a_tool_that_asks_others_shows_whom(playhead: CommandLine):
    made = HandMade().start()
    tool = made.begin(
        "execute_tool search",
        **{
            a.GEN_AI_OPERATION_NAME: "execute_tool",
            a.GEN_AI_TOOL_NAME: "search",
            a.GEN_AI_TOOL_CALL_ARGUMENTS: '{"q": "order 81"}',
        },
    )
    http = made.begin("GET", parent=tool, kind=3, **{a.HTTP_REQUEST_METHOD: "GET"})
    made.exchange("GET https://shop/search?q=81", b"", (b"{}",), span=http)
    made.finish(http)
    made.finish(tool, **{a.GEN_AI_TOOL_CALL_RESULT: '{"found": ["a"]}', "desk.queue": "night"})
    assert steps(playhead, made)("show", ":1").lines[2:-1] == [
        '→ search(q="order 81")',
        "  GET https://shop/search?q=81 → 200",
        "",
        "← search",
        '  {"found": ["a"]}',
        "",
        "  desk.queue: night",
        "",
    ]


def test_a_failed_step_shows_its_exception_and_folds_its_traceback(playhead: CommandLine):
    stack = "Traceback (most recent call last):\n  File 'a.py'\nValueError: no order"
    made = HandMade().start()
    tool = made.tool("refund", "{}", error="ValueError: no order")
    envelope = ResourceSpans.FromString(made.spans[-1].otlp)
    event = envelope.scope_spans[0].spans[0].events.add(name="exception")
    said = {
        a.EXCEPTION_TYPE: "ValueError",
        a.EXCEPTION_MESSAGE: "no order",
        a.EXCEPTION_STACKTRACE: stack,
    }
    set_attributes(event.attributes, said)
    made.spans[-1] = StoredSpan(made.trace_id, span_id(tool), envelope.SerializeToString())
    lines = steps(playhead, made)("show", ":1").lines
    assert lines[0] == "refund-1:1 execute_tool refund  ValueError: no order"
    assert lines[4:6] == ["✗ ValueError: no order", "  ⋮ traceback of 3 lines (--all)"]
    assert "  File 'a.py'" in [line[2:] for line in playhead("show", ":1", "--all").lines]
