"""Images, speech and transcription of OpenAI, asked for with the real SDK."""

import base64
import json
from typing import Any

import openai
import pytest
from support.answers.wires import content, sse
from support.servers.scripted import Reply, Request, ScriptedServer, json_reply, sse_reply

from playhead_genai.providers import Derived, WireResponse, derive, recognised
from playhead_genai.providers.forms import form_of

PNG = base64.b64encode(b"\x89PNG picture").decode()
JSON = [("content-type", "application/json")]
STREAM = [("content-type", "text/event-stream")]
IMAGES = {
    "created": 1,
    "output_format": "webp",
    "data": [{"b64_json": PNG, "revised_prompt": "a red cat"}],
    "usage": {
        "input_tokens": 30,
        "input_tokens_details": {"text_tokens": 10, "image_tokens": 20},
        "output_tokens": 40,
        "total_tokens": 70,
    },
}


@pytest.fixture
def server():
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def gpt(server):
    with openai.OpenAI(base_url=server.openai_url, api_key="test") as client:
        yield client


def read(request: Request, reply: WireResponse) -> Derived:
    wire = recognised(request.method, f"https://any.host{request.path}", request.body)
    assert wire is not None
    found = derive(wire, request.body, reply, url=request.path)
    assert found == derive(wire, request.body, reply, url=f"http://127.0.0.1:9{request.path}")
    assert found.problem == "" and found.content_complete
    return found


def whole(body: Any) -> WireResponse:
    return WireResponse(200, JSON, [json.dumps(body).encode()], True)


def test_an_image_is_made(server, gpt):
    server.script([json_reply(IMAGES)])
    made = gpt.images.generate(model="gpt-image-1", prompt="a cat", n=2, size="1024x1024")
    assert made.usage.output_tokens == 40
    found = read(server.requests[0], whole(IMAGES))
    assert found.operation == "generate_content"
    at = found.attributes
    assert at["gen_ai.output.type"] == "image"
    assert at["gen_ai.request.choice.count"] == 2
    assert (at["gen_ai.usage.input_tokens"], at["gen_ai.usage.output_tokens"]) == (30, 40)
    assert at["gen_ai.usage.image.input_tokens"] == 20
    assert content(found, "input.messages")[0]["parts"] == [{"type": "text", "content": "a cat"}]
    (message,) = content(found, "output.messages")
    blob = {"type": "blob", "mime_type": "image/webp", "modality": "image", "content": PNG}
    assert message["parts"] == [blob]
    assert message["revised_prompt"] == "a red cat"


def test_images_are_edited(server, gpt):
    server.script([json_reply(IMAGES)] * 2)
    pictures = [("a.png", b"\x89PNG one", "image/png"), ("b.jpg", b"\r\n--two", "image/jpeg")]
    gpt.images.edit(model="gpt-image-1", prompt="both", image=pictures)
    found = read(server.requests[0], whole(IMAGES))
    (message,) = content(found, "input.messages")
    assert message["parts"][0] == {"type": "text", "content": "both"}
    assert [part["mime_type"] for part in message["parts"][1:]] == ["image/png", "image/jpeg"]
    assert base64.b64decode(message["parts"][2]["content"]) == b"\r\n--two"
    assert found.request_model == "gpt-image-1"
    gpt.images.create_variation(image=pictures[0], n=1)
    varied = read(server.requests[1], whole(IMAGES))
    assert varied.request_model == ""
    assert len(content(varied, "input.messages")[0]["parts"]) == 1


def test_images_are_streamed(server, gpt):
    usage = IMAGES["usage"]
    events = [
        {"type": "image_generation.partial_image", "b64_json": "AAAA", "partial_image_index": 0},
        {
            "type": "image_generation.completed",
            "b64_json": PNG,
            "usage": usage,
            "output_format": "webp",
        },
    ]
    server.script([sse_reply(sse(*events))])
    stream = gpt.images.generate(model="gpt-image-1", prompt="a cat", stream=True, partial_images=1)
    assert [event.type for event in stream][-1] == "image_generation.completed"
    found = read(server.requests[0], WireResponse(200, STREAM, sse(*events), True))
    assert content(found, "output.messages")[0]["parts"][0]["content"] == PNG
    assert found.attributes["gen_ai.usage.output_tokens"] == 40
    cut = WireResponse(200, STREAM, sse(*events[:1]), True)
    broken = derive("openai.images", server.requests[0].body, cut)
    assert broken.problem == "the stream ended early"
    assert broken.attributes["gen_ai.response.finish_reasons"] == ["error"]


def test_a_text_is_spoken(server, gpt):
    server.script([Reply([b"ID3 sound"], 200, [("content-type", "audio/mpeg")])])
    said = gpt.audio.speech.create(
        model="gpt-4o-mini-tts", voice="ash", input="Hello", instructions="Whisper"
    )
    assert said.content == b"ID3 sound"
    reply = WireResponse(200, [("content-type", "audio/mpeg")], [b"ID3 ", b"sound"], True)
    found = read(server.requests[0], reply)
    assert found.attributes["gen_ai.output.type"] == "speech"
    assert content(found, "system_instructions") == [{"type": "text", "content": "Whisper"}]
    (part,) = content(found, "output.messages")[0]["parts"]
    assert (part["mime_type"], base64.b64decode(part["content"])) == ("audio/mpeg", b"ID3 sound")
    cut = derive("openai.speech", server.requests[0].body, WireResponse(200, [], [b"ID3"], False))
    assert (cut.content_complete, cut.problem) == (False, "the response body ended early")
    assert cut.attributes["gen_ai.response.finish_reasons"] == ["error"]
    refused = WireResponse(401, JSON, [b'{"error": {"code": "no_key", "message": "who?"}}'], True)
    assert derive("openai.speech", server.requests[0].body, refused).error_type == "no_key"


def test_speech_is_streamed():
    events = [
        {"type": "speech.audio.delta", "audio": base64.b64encode(b"ID3 s").decode()},
        {"type": "speech.audio.delta", "audio": base64.b64encode(b"ound").decode()},
        {"type": "speech.audio.done", "usage": {"input_tokens": 3, "output_tokens": 9}},
    ]
    request = b'{"model":"gpt-4o-mini-tts","input":"Hello","voice":"ash","response_format":"wav"}'
    found = derive("openai.speech", request, WireResponse(200, STREAM, sse(*events), True))
    (part,) = content(found, "output.messages")[0]["parts"]
    assert (part["mime_type"], base64.b64decode(part["content"])) == ("audio/wav", b"ID3 sound")
    assert found.attributes["gen_ai.usage.output_tokens"] == 9
    assert found.content_complete


def test_speech_is_transcribed(server, gpt):
    usage = {"type": "tokens", "input_tokens": 14, "output_tokens": 3, "total_tokens": 17}
    answer = {"text": "Hello", "usage": usage | {"input_token_details": {"audio_tokens": 14}}}
    server.script([json_reply(answer), json_reply({"text": "Hi"})])
    file = ("call.wav", b"RIFF sound", "application/octet-stream")
    said = gpt.audio.transcriptions.create(
        model="gpt-4o-transcribe", file=file, prompt="Names: Ada", temperature=0.5
    )
    assert said.text == "Hello"
    found = read(server.requests[0], whole(answer))
    assert found.operation == "generate_content"
    assert found.request_model == "gpt-4o-transcribe"
    at = found.attributes
    assert (at["gen_ai.request.temperature"], at["gen_ai.output.type"]) == (0.5, "text")
    assert at["gen_ai.usage.audio.input_tokens"] == 14
    audio, prompt = content(found, "input.messages")[0]["parts"]
    assert (audio["modality"], audio["mime_type"]) == ("audio", "audio/wav")
    assert base64.b64decode(audio["content"]) == b"RIFF sound"
    assert prompt == {"type": "text", "content": "Names: Ada"}
    assert content(found, "output.messages")[0]["parts"] == [{"type": "text", "content": "Hello"}]
    gpt.audio.translations.create(model="whisper-1", file=file)
    plain = WireResponse(200, [("content-type", "text/plain; charset=utf-8")], [b"Hi\n"], True)
    assert (
        content(read(server.requests[1], plain), "output.messages")[0]["parts"][0]["content"] == "Hi\n"
    )


def test_a_transcription_is_streamed(server, gpt):
    usage = {"type": "tokens", "input_tokens": 14, "output_tokens": 3, "total_tokens": 17}
    events = [
        {"type": "transcript.text.delta", "delta": "Hel"},
        {"type": "transcript.text.delta", "delta": "lo"},
        {"type": "transcript.text.done", "text": "Hello", "usage": usage},
    ]
    server.script([sse_reply(sse(*events))])
    stream = gpt.audio.transcriptions.create(
        model="gpt-4o-transcribe", file=("a.mp3", b"ID3"), stream=True
    )
    assert [event.type for event in stream][-1] == "transcript.text.done"
    found = read(server.requests[0], WireResponse(200, STREAM, sse(*events), True))
    assert content(found, "output.messages")[0]["parts"] == [{"type": "text", "content": "Hello"}]
    assert found.attributes["gen_ai.usage.output_tokens"] == 3
    cut = WireResponse(200, STREAM, sse(*events[:2]), True)
    broken = derive("openai.transcription", server.requests[0].body, cut)
    assert content(broken, "output.messages")[0]["parts"] == [{"type": "text", "content": "Hello"}]
    assert broken.problem == "the stream ended early"


@pytest.mark.parametrize(
    "body",
    [
        b"--b\r\n",
        b"--b\r\n\r\n",
        b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--",
        b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n' + b"\r\n--b" * 9,
        b'--b\r\nContent-Disposition: form-data; filename="x"; name=""\r\n\r\n\xff\r\n--b--',
    ],
)
def test_hostile_forms(body: bytes):
    assert form_of(body) is not None
    for wire in ("openai.images", "openai.transcription", "openai.batch_file"):
        derive(wire, body, WireResponse(200, JSON, [b"{}"], True))


def test_other_forms_are_no_calls():
    form = b'--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nassistants\r\n--b--\r\n'
    assert recognised("POST", "https://api.openai.com/v1/files", form) is None
    assert form_of(b'{"a": 1}') is None
