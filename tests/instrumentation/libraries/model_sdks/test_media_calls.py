"""Calls beside chat through the SDKs of OpenAI and Anthropic: one span each, with its meaning."""

import json
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest
from support.servers.scripted import Reply, json_reply, openai_error

from playhead_semconv import attributes as a

IMAGE = {"created": 1, "data": [{"b64_json": "AAAA"}], "usage": {"input_tokens": 3, "output_tokens": 4}}
SOUND = Reply([b"ID3"], 200, [("content-type", "audio/mpeg")])
WAV = ("a.wav", b"RIFF")
CALLS: dict[str, tuple[str, str, Reply, Callable[[openai.OpenAI], Any]]] = {
    "openai.images": (
        "generate_content gpt-image-1",
        "blob",
        json_reply(IMAGE),
        lambda gpt: gpt.images.edit(model="gpt-image-1", prompt="Hi", image=WAV),
    ),
    "openai.speech": (
        "generate_content tts-1",
        "blob",
        SOUND,
        lambda gpt: gpt.audio.speech.create(model="tts-1", voice="ash", input="Hi").read(),
    ),
    "openai.transcription": (
        "generate_content whisper-1",
        "text",
        json_reply({"text": "Hi"}),
        lambda gpt: gpt.audio.transcriptions.create(model="whisper-1", file=WAV),
    ),
    "openai.moderation": (
        "moderation omni",
        "moderation",
        json_reply({"id": "m", "model": "omni", "results": [{"flagged": False, "categories": {}}]}),
        lambda gpt: gpt.moderations.create(model="omni", input="Hi"),
    ),
    "openai.compaction": (
        "chat gpt-6",
        "compaction",
        json_reply({"id": "r", "output": [{"type": "compaction", "id": "c"}], "usage": {}}),
        lambda gpt: gpt.post(
            "/responses/compact", body={"model": "gpt-6", "input": "Hi"}, cast_to=object
        ),
    ),
}


@pytest.mark.parametrize("wire", CALLS)
def test_a_call(wire: str, server, recorded):
    name, kind, reply, call = CALLS[wire]
    server.script([reply])
    with openai.OpenAI(base_url=server.openai_url, api_key="sk-test") as gpt:
        call(gpt)
    span = recorded.call()
    assert (span.name, span.attributes[a.PLAYHEAD_WIRE]) == (name, wire)
    assert a.ERROR_TYPE not in span.attributes
    (message,) = json.loads(span.attributes[a.GEN_AI_OUTPUT_MESSAGES])
    assert [part["type"] for part in message["parts"]] == [kind]
    assert len(recorded.attempts()) == 1


MESSAGES: Any = [{"role": "user", "content": "Hi"}]
BATCH: Any = [{"custom_id": "1", "params": {"model": "m", "max_tokens": 9, "messages": MESSAGES}}]
LINE = ("lines.jsonl", b'{"body": {"model": "m"}}')
BY_WIRE: dict[str, tuple[str, type[Any], Callable[[Any], Any]]] = {
    "openai.batch_file": (
        "upload_batch m",
        openai.OpenAI,
        lambda gpt: gpt.files.create(file=LINE, purpose="batch"),
    ),
    "openai.fetched_batch": (
        "fetch_batch",
        openai.OpenAI,
        lambda gpt: gpt.batches.retrieve("batch_1"),
    ),
    "openai.completions": (
        "text_completion m",
        openai.OpenAI,
        lambda gpt: gpt.completions.create(model="m", prompt="Hi"),
    ),
    "anthropic.count_tokens": (
        "count_tokens m",
        anthropic.Anthropic,
        lambda claude: claude.messages.count_tokens(model="m", messages=MESSAGES),
    ),
    "anthropic.batch": (
        "create_batch m",
        anthropic.Anthropic,
        lambda claude: claude.messages.batches.create(requests=BATCH),
    ),
}


@pytest.mark.parametrize("wire", BY_WIRE)
def test_a_call_that_is_sent_again_is_one(wire: str, server, recorded):
    name, kind, call = BY_WIRE[wire]
    server.script(
        [openai_error(429), openai_error(500, {"retry-after-ms": "1"}), json_reply({"id": "i"})]
    )
    with kind(base_url=server.openai_url, api_key="sk-test") as client:
        call(client)
    span = recorded.call()
    assert (span.name, span.attributes[a.PLAYHEAD_WIRE]) == (name, wire)
    assert a.ERROR_TYPE not in span.attributes
    assert len(recorded.attempts()) == 3
    assert all(one.parent.span_id == span.context.span_id for one in recorded.attempts())


def test_what_is_no_call_of_a_model_has_no_span_of_one(server, recorded):
    server.script([json_reply({"object": "list", "data": []}), json_reply({"id": "file-1"})])
    with openai.OpenAI(base_url=server.openai_url, api_key="sk-test") as gpt:
        list(gpt.models.list())
        gpt.files.create(file=LINE, purpose="assistants")
    assert [span.attributes.get(a.GEN_AI_OPERATION_NAME) for span in recorded.spans()] == [None, None]
