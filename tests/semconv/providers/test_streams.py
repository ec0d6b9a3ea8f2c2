"""Streams of every dialect: cut anywhere, in any pieces, compressed."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.answers.wires import DONE, STREAM, sse
from support.tapes.conventions import check_content

from playhead_genai.providers import Derived, WireResponse, derive

CHAT = [
    *sse(
        {"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Héllo"}}]},
        {"id": "c", "choices": [{"index": 0, "delta": {"content": " you"}}]},
        {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ),
    DONE,
]
ITEM = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Héllo you"}],
}
RESPONSES = sse(
    {"type": "response.created", "response": {"id": "c", "output": []}},
    {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Héllo"},
    {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": " you"},
    {
        "type": "response.completed",
        "response": {"id": "c", "status": "completed", "output": [ITEM]},
    },
)
ANTHROPIC = sse(
    {"type": "message_start", "message": {"id": "c", "role": "assistant"}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": "Héllo"},
    },
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": " you"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
)
STREAMS = {
    "openai.chat": b"".join(CHAT),
    "openai.responses": b"".join(RESPONSES),
    "anthropic.messages": b"".join(ANTHROPIC),
}
OUTPUT = '[{"role":"assistant","parts":[{"type":"text","content":"Héllo you"}]}]'


def read(wire: str, *chunks: bytes, encoding: str = "", complete: bool = True) -> Derived:
    headers = [*STREAM, ("content-encoding", encoding)] if encoding else STREAM
    found = derive(wire, b"{}", WireResponse(200, headers, chunks, complete))
    check_content(found.attributes)
    return found


@pytest.mark.parametrize("wire", STREAMS)
def test_whole(wire: str):
    found = read(wire, STREAMS[wire])
    assert found.attributes["gen_ai.output.messages"] == OUTPUT
    assert found.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    assert (found.content_complete, found.problem) == (True, "")


@pytest.mark.parametrize("wire", STREAMS)
def test_every_split_in_two_and_every_byte_alone(wire: str):
    stream = STREAMS[wire]
    whole = read(wire, stream)
    for cut in range(len(stream)):
        assert read(wire, stream[:cut], stream[cut:]) == whole
    assert read(wire, *(stream[i : i + 1] for i in range(len(stream)))) == whole


@pytest.mark.parametrize("wire", STREAMS)
def test_carriage_returns_change_nothing(wire: str):
    assert read(wire, STREAMS[wire].replace(b"\n", b"\r\n")) == read(wire, STREAMS[wire])


@pytest.mark.parametrize("wire", STREAMS)
def test_cut_after_every_byte(wire: str):
    stream = STREAMS[wire]
    seen: list[str] = []
    for cut in range(len(stream)):
        found = read(wire, stream[:cut], complete=False)
        output = found.attributes.get("gen_ai.output.messages", "[]")
        assert isinstance(output, str)
        texts = [part["content"] for message in json.loads(output) for part in message["parts"]]
        if not seen or seen[-1] != "".join(texts):
            seen.append("".join(texts))
        if not found.content_complete:
            assert found.problem == "the stream ended early"
            reasons = found.attributes.get("gen_ai.response.finish_reasons")
            assert (
                reasons in (None, ["error"])
                or b"finish_reason" in stream[:cut]
                or b"stop_r" in stream[:cut]
            )
    assert seen == ["", "Héllo", "Héllo you"]


@pytest.mark.parametrize("wire", STREAMS)
def test_compressed_and_cut(wire: str):
    packed = gzip.compress(STREAMS[wire], mtime=0)
    assert read(wire, packed, encoding="gzip") == read(wire, STREAMS[wire])
    found = read(wire, packed[:-12], encoding="gzip", complete=False)
    assert found.content_complete is False
    assert found.problem == "truncated gzip data; the stream ended early"
    assert "Héllo" in str(found.attributes["gen_ai.output.messages"])


@pytest.mark.parametrize("wire", STREAMS)
def test_a_stream_that_no_header_names(wire: str):
    named = read(wire, STREAMS[wire])
    assert derive(wire, b"{}", WireResponse(200, [], [STREAMS[wire]], True)) == named


@given(st.sampled_from(sorted(STREAMS)), st.integers(0, 700), st.binary(max_size=6))
def test_a_damaged_stream_never_raises(wire: str, at: int, damage: bytes):
    stream = STREAMS[wire]
    read(wire, stream[:at] + damage + stream[at + len(damage) :])
