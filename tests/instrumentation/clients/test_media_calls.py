"""Images, audio, moderation and compaction through OpenAI's SDK: one call each, with its meaning."""

import json
from collections.abc import Callable
from typing import Any

import openai
import pytest
from support.scripted import Reply, json_reply

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
