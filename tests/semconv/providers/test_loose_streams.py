"""Servers that are only nearly compatible: indexes, halves of characters, usage, encodings."""

import gzip
import zlib
from typing import Any

import pytest
from support.answers.wires import DONE, content, derived, dump, sse, stream, whole

from playhead_genai.providers import WireResponse, derive, recognised

ASKED = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


def chunk(delta: dict[str, Any], reason: str | None = None, **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "x", "model": "m", "choices": [choice], **fields}


def call(name: str | None = None, arguments: str | None = None, **fields: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    given = {key: value for key, value in function.items() if value is not None}
    return chunk({"tool_calls": [{**fields, "function": given}]})


def calls(wire: str, *events: Any) -> list[tuple[Any, Any, Any]]:
    found = derived(wire, ASKED, stream(*sse(*events)))
    (message,) = content(found, "output.messages")
    parts = [part for part in message["parts"] if part["type"] == "tool_call"]
    return [(part.get("id"), part["name"], part["arguments"]) for part in parts]


READ, TIME = ("c1", "read_file", {"path": "a.md"}), ("c2", "get_time", {})
PIECES = ('{"path":', ' "a.md"}')


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (
            [
                call("read_file", "", id="c1"),
                *[call(None, piece) for piece in PIECES],
                call("get_time", "{}", id="c2"),
            ],
            [READ, TIME],
        ),
        (
            [
                call("read_file", '{"path": "a.md"}', index=0, id="c1"),
                call("get_time", "{}", index=0, id="c2"),
            ],
            [READ, TIME],
        ),
        (
            [
                call("read_file", "", index=0, id="c1"),
                *[call("read_file", piece, index=0, id="c1") for piece in PIECES],
            ],
            [READ],
        ),
        (
            [
                call("read_file", "", index=None, id="c1"),
                call("read_file", PIECES[0], index=None, id=""),
                call("read_file", PIECES[1], index=None, id=""),
                call("get_time", "{}", index=None, id="c2"),
            ],
            [READ, TIME],
        ),
        (
            [call("get_time", "{}"), call("get_time", "{}"), call("read_file", '{"path": "a.md"}')],
            [(None, "get_time", {}), (None, "get_time", {}), (None, *READ[1:])],
        ),
        (
            [
                call("read_file", "", index=1, id="c1"),
                call("get_time", "{}", index=0, id="c2"),
                *[call(None, piece, index=1) for piece in PIECES],
            ],
            [TIME, READ],
        ),
    ],
    ids=["no index", "same index", "name again", "null index", "no id", "out of order"],
)
def test_tool_calls_are_told_apart(events: list[Any], expected: list[Any]):
    assert calls("openai.chat", *events, chunk({}, "tool_calls")) == expected


@pytest.mark.parametrize("index", [{}, {"index": 0}], ids=["no index", "same index"])
def test_blocks_of_anthropic_are_told_apart(index: dict[str, int]):
    def block(id: str, name: str, written: str) -> list[dict[str, Any]]:
        begun = {"type": "tool_use", "id": id, "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": written}
        return [
            {"type": "content_block_start", **index, "content_block": begun},
            {"type": "content_block_delta", **index, "delta": delta},
            {"type": "content_block_stop", **index},
        ]

    begin = {"type": "message_start", "message": {"role": "assistant", "content": []}}
    events = [begin, *block("c1", "read_file", '{"path": "a.md"}'), *block("c2", "get_time", "")]
    assert calls("anthropic.messages", *events, {"type": "message_stop"}) == [READ, TIME]


@pytest.mark.parametrize("index", [{}, {"output_index": 0}], ids=["no index", "same index"])
def test_items_of_responses_are_told_apart(index: dict[str, int]):
    def item(id: str, name: str, written: str) -> list[dict[str, Any]]:
        begun = {"type": "function_call", "id": f"i{id}", "call_id": id, "name": name, "arguments": ""}
        delta = {"type": "response.function_call_arguments.delta", "item_id": f"i{id}", "delta": written}
        return [{"type": "response.output_item.added", **index, "item": begun}, {**index, **delta}]

    events = [*item("c1", "read_file", '{"path": "a.md"}'), *item("c2", "get_time", "{}")]
    assert calls("openai.responses", *events) == [READ, TIME]


@pytest.mark.parametrize("index", [{}, {"index": 0}], ids=["no index", "same index"])
def test_tool_calls_of_cohere_are_told_apart(index: dict[str, int]):
    def tool(id: str, name: str, written: str) -> list[dict[str, Any]]:
        begun = {"id": id, "type": "function", "function": {"name": name, "arguments": ""}}
        delta = {"function": {"arguments": written}}
        return [
            {"type": "tool-call-start", **index, "delta": {"message": {"tool_calls": begun}}},
            {"type": "tool-call-delta", **index, "delta": {"message": {"tool_calls": delta}}},
            {"type": "tool-call-end", **index},
        ]

    events = [*tool("c1", "read_file", '{"path": "a.md"}'), *tool("c2", "get_time", "{}")]
    assert calls("cohere.chat", *events, {"type": "message-end", "delta": {}}) == [READ, TIME]


def text_of(wire: str, *pieces: bytes) -> Any:
    found = derive(wire, dump(ASKED), stream(*[b"data: %s\n\n" % piece for piece in pieces], DONE))
    (message,) = content(found, "output.messages")
    return message["parts"][0]["content"]


@pytest.mark.parametrize(
    ("wire", "piece"),
    [
        ("openai.chat", b'{"choices":[{"index":0,"delta":{"role":"assistant","content":"%s"}}]}'),
        ("openai.completions", b'{"choices":[{"index":0,"text":"%s"}]}'),
        (
            "anthropic.messages",
            b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}',
        ),
        (
            "openai.responses",
            b'{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"%s"}',
        ),
        ("gemini.generate_content", b'{"candidates":[{"content":{"parts":[{"text":"%s"}]}}]}'),
        (
            "cohere.chat",
            b'{"type":"content-delta","index":0,"delta":{"message":{"content":{"type":"text","text":"%s"}}}}',
        ),
    ],
)
def test_halves_of_a_character_are_joined_across_events(wire: str, piece: bytes):
    pieces = [piece % text for text in (rb"party \ud83c", rb"\udf89 time \ud83d", rb" end")]
    assert text_of(wire, *pieces) == "party \U0001f389 time \ufffd end"


def test_a_lone_half_becomes_the_replacement_character():
    body = rb'{"model":"m","messages":[{"role":"user","content":"half \ud83d end"}]}'
    assert content(derive("openai.chat", body, whole({})), "input.messages")[0]["parts"] == [
        {"type": "text", "content": "half \ufffd end"}
    ]


@pytest.mark.parametrize("last", [{"prompt_tokens": 0, "completion_tokens": 0}, None, {}])
def test_an_empty_usage_does_not_replace_the_usage_before_it(last: Any):
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}
    events = [chunk({"content": "Hi"}), chunk({}, "stop", usage=usage), chunk({}, usage=last)]
    found = derived("openai.chat", ASKED, stream(*sse(*events), DONE)).attributes
    assert found["gen_ai.usage.input_tokens"] == 7
    assert found["gen_ai.usage.output_tokens"] == 3
    assert found["gen_ai.usage.cache_read.input_tokens"] == 2


def test_zeros_of_anthropic_do_not_replace_the_usage_before_them():
    usage = {"input_tokens": 7, "output_tokens": 1, "cache_read_input_tokens": 5}
    late = {"input_tokens": 0, "output_tokens": 3, "cache_read_input_tokens": 0}
    events = [
        {"type": "message_start", "message": {"role": "assistant", "content": [], "usage": usage}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": late},
        {"type": "message_stop"},
    ]
    found = derived("anthropic.messages", ASKED, stream(*sse(*events))).attributes
    assert found["gen_ai.usage.cache_read.input_tokens"] == 5
    assert found["gen_ai.usage.output_tokens"] == 3


LINES = [("content-type", "application/x-ndjson")]


def test_zeros_of_ollama_do_not_replace_the_counts_before_them():
    last = {"done": True, "prompt_eval_count": 0, "eval_count": 0}
    lines = [{"message": {"content": "Hi"}, "prompt_eval_count": 5, "eval_count": 7}, last]
    answer = WireResponse(200, LINES, [dump(line) + b"\n" for line in lines], True)
    at = derived("ollama.chat", ASKED, answer).attributes
    assert (at["gen_ai.usage.input_tokens"], at["gen_ai.usage.output_tokens"]) == (5, 7)


def test_tool_calls_of_ollama_are_told_apart():
    def line(name: str) -> bytes:
        call = {"index": 0, "function": {"name": name, "arguments": {"of": name}}}
        return dump({"message": {"content": "", "tool_calls": [call]}}) + b"\n"

    answer = WireResponse(200, LINES, [line("a"), line("b"), b'{"done":true}\n'], True)
    (message,) = content(derived("ollama.chat", ASKED, answer), "output.messages")
    assert [(part["name"], part["arguments"]) for part in message["parts"]] == [
        ("a", {"of": "a"}),
        ("b", {"of": "b"}),
    ]


METRICS = "amazon-bedrock-invocationMetrics"


@pytest.mark.parametrize(
    "counts",
    [
        [{"inputTextTokenCount": 5, "totalOutputTextTokenCount": 7}] * 2,
        [{"prompt_token_count": 5, "generation_token_count": 7}] * 2,
        [{METRICS: {"inputTokenCount": 5, "outputTokenCount": 7}}] * 2,
        [{"prompt_token_count": 5}, {"generation_token_count": 7}],
    ],
    ids=["titan", "llama", "metrics", "one after the other"],
)
def test_zeros_of_a_text_model_of_bedrock_do_not_replace_the_counts_before_them(counts: Any):
    first, second = counts
    last = {name: {of: 0 for of in v} if isinstance(v, dict) else 0 for name, v in first.items()}
    events = [{"generation": "Hi", **first}, second, {"stop_reason": "stop", **last}]
    found = derived("bedrock.prompt", {"prompt": "Hi"}, stream(*sse(*events))).attributes
    assert (found["gen_ai.usage.input_tokens"], found["gen_ai.usage.output_tokens"]) == (5, 7)


BOM = b"\xef\xbb\xbf"


def test_a_byte_order_mark_is_skipped():
    answer = whole({})
    answer.chunks = [BOM + dump({"id": "x", "choices": []})]
    found = derive("openai.chat", BOM + dump(ASKED), answer)
    assert found.problem == ""
    assert found.request_model == "m"
    assert found.attributes["gen_ai.response.id"] == "x"
    url = "https://api.openai.com/v1/chat/completions"
    assert recognised("POST", url, BOM + dump(ASKED)) == "openai.chat"
    (line,) = sse(chunk({"content": "Hi"}))
    assert derived("openai.chat", ASKED, stream(BOM + line)).problem == "the stream ended early"


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, raw_deflate])
def test_a_compressed_request_is_read(pack: Any):
    body = pack(dump({**ASKED, "messages": [{"role": "user", "content": "Hi " * 50}]}))
    assert recognised("POST", "https://api.openai.com/v1/chat/completions", body) == "openai.chat"
    found = derive("openai.chat", body, whole({}))
    assert (found.request_model, found.problem) == ("m", "")
    assert content(found, "input.messages")[0]["parts"][0]["content"] == "Hi " * 50
