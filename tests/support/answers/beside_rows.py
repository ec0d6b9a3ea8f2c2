"""The calls of `support.sdks.beside`, each with its answer and what its span says."""

from __future__ import annotations

import base64
from typing import Any

from support.answers.beside_table import (
    ANTHROPIC,
    BROKEN,
    COHERE,
    GEMINI,
    HUGGING_FACE,
    OLLAMA,
    OPENAI,
    STREAMS,
    TEXT,
    USED,
    Row,
    asked,
    blob,
    made,
    refusal_of_google,
)
from support.sdks.cases import MODEL
from support.servers.scripted import (
    Reply,
    json_reply,
    openai_embeddings,
    openai_responses,
    sse,
    sse_reply,
)

from playhead_semconv import attributes as a

NO_STREAM = frozenset(("malformed",))
"""What a call does not have whose API has no stream, but whose answer can be read as it comes."""
NO_PARTS = STREAMS
"""What a call does not have whose SDK reads it as a whole."""
NO_RETRY = STREAMS | {"again twice"}


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


PNG, HALF, SENT = encoded(b"\x89PNG picture"), encoded(b"\x89PNG pic"), encoded(b"\x89PNG")
COUNTED = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
PICTURES = {"created": 1, "data": [{"b64_json": PNG}], "usage": COUNTED}
IMAGE: Any = {a.GEN_AI_OUTPUT_TYPE: "image"}
SPEECH: Any = {a.GEN_AI_OUTPUT_TYPE: "speech"}
WORDS: Any = {a.GEN_AI_OUTPUT_TYPE: "text"}
WAV = blob("audio/x-wav", encoded(b"RIFF"))
DIMENSION = {a.GEN_AI_EMBEDDINGS_DIMENSION_COUNT: 2}
EMBEDDED = {**DIMENSION, a.GEN_AI_RESPONSE_MODEL: MODEL, a.GEN_AI_USAGE_INPUT_TOKENS: 3}
VECTORS = openai_embeddings.embeddings([[0.5, 0.25]], model=MODEL, tokens=3)
NUMBERS = openai_embeddings.embeddings([[0.5, 0.25]], model=MODEL, tokens=3, as_base64=False)
BY_TYPE = {
    "id": "e-1",
    "texts": ["Hello"],
    "embeddings": {"float": [[0.5, 0.25]]},
    "response_type": "embeddings_by_type",
    "meta": {"billed_units": {"input_tokens": 3}},
}


def pictures(kind: str) -> tuple[bytes, ...]:
    """The stream of an image."""
    partial = {"type": f"{kind}.partial_image", "b64_json": HALF, "partial_image_index": 0}
    completed = {"type": f"{kind}.completed", "b64_json": PNG, "usage": COUNTED}
    return tuple(sse.events([partial, completed]))


SPOKEN = tuple(
    sse.events(
        [
            {"type": "speech.audio.delta", "audio": encoded(b"ID3 sound")},
            {"type": "speech.audio.done", "usage": COUNTED},
        ]
    )
)
HEARD = tuple(
    sse.events(
        [
            {"type": "transcript.text.delta", "delta": "H"},
            {"type": "transcript.text.done", "text": "Hi", "usage": COUNTED},
        ]
    )
)
VERDICT = {"flagged": False, "categories": {}, "category_scores": {}}
NO_HARM = {"type": "moderation", "flagged": False, "category_scores": {}, "categories": []}
RESPONSE = openai_responses.response(
    [openai_responses.message("Hi")], model=MODEL, usage=openai_responses.usage(3, 4)
)
COMPACTED = {
    "id": "resp_2",
    "object": "response.compaction",
    "created_at": 1,
    "output": [{"type": "compaction", "id": "cmp_1", "encrypted_content": "eA=="}],
    "usage": openai_responses.usage(3, 4),
}
FILE = {
    "id": "file-1",
    "object": "file",
    "bytes": 9,
    "created_at": 1,
    "filename": "lines.jsonl",
    "purpose": "batch",
    "status": "processed",
}
BATCH = {
    "id": "batch_1",
    "object": "batch",
    "endpoint": "/v1/chat/completions",
    "input_file_id": "file-1",
    "completion_window": "24h",
    "status": "in_progress",
    "created_at": 1,
}
MESSAGES = {
    "id": "msgbatch_1",
    "type": "message_batch",
    "processing_status": "ended",
    "created_at": "2026-01-01T00:00:00Z",
    "expires_at": "2026-01-02T00:00:00Z",
    "request_counts": {"processing": 0, "succeeded": 2, "errored": 0, "canceled": 0, "expired": 0},
}
SAID = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": MODEL,
    "content": [{"type": "text", "text": "Hi"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 4},
}
LINES = b"".join(
    sse.encode({"custom_id": name, "result": {"type": "succeeded", "message": SAID}}) + b"\n"
    for name in "12"
)


def results(*names: str) -> dict[str, Any]:
    """What the results with these names say."""
    parts = [{"type": "text", "content": "Hi"}]
    said = [{"role": "assistant", "parts": parts, "custom_id": name} for name in names]
    return {
        a.GEN_AI_RESPONSE_MODEL: MODEL,
        a.GEN_AI_RESPONSE_FINISH_REASONS: ["stop"] * len(names),
        a.GEN_AI_OUTPUT_MESSAGES: said,
    }


NOT_COUNTED = {
    a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: 0,
    a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: 0,
    a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: 0,
}
RESPONSES: Any = {a.OPENAI_API_TYPE: "responses"}
FETCHED = {a.GEN_AI_RESPONSE_ID: "resp_1", a.GEN_AI_RESPONSE_MODEL: MODEL}
BY_ID = {a.GEN_AI_RESPONSE_ID: "msgbatch_1"}
GOOGLE: Any = {a.GEN_AI_PROVIDER_NAME: "gcp.gen_ai"}

ROWS: dict[str, Row] = {
    "embeddings": Row(
        "openai.embeddings",
        json_reply(VECTORS),
        asked("embeddings", TEXT, **{a.GEN_AI_REQUEST_ENCODING_FORMATS: ["base64"]}),
        EMBEDDED,
        without=NO_STREAM,
    ),
    "images": Row(
        "openai.images",
        json_reply(PICTURES),
        asked("generate_content", TEXT, **IMAGE),
        made(blob("image/png", PNG)) | USED,
        pictures("image_generation"),
        made(blob("image/png", HALF), whole=False),
    ),
    "edited_images": Row(
        "openai.images",
        json_reply(PICTURES),
        asked("generate_content", TEXT, blob("image/png", SENT), **IMAGE),
        made(blob("image/png", PNG)) | USED,
        pictures("image_edit"),
        made(blob("image/png", HALF), whole=False),
        form=True,
    ),
    "varied_images": Row(
        "openai.images",
        json_reply(PICTURES),
        asked("generate_content", blob("image/png", SENT), **IMAGE),
        made(blob("image/png", PNG)) | USED,
        form=True,
        without=NO_STREAM,
    ),
    "speech": Row(
        "openai.speech",
        Reply([b"ID3 sound!"], 200, [("content-type", "audio/mpeg")]),
        asked("generate_content", TEXT, **SPEECH),
        made(blob("audio/mpeg", encoded(b"ID3 sound!"))),
        begun=made(blob("audio/mpeg", encoded(b"ID3 s")), whole=False),
        cut=made(blob("audio/mpeg", encoded(b"ID3 s")), whole=False),
        without=NO_STREAM | {"malformed answer"},
    ),
    "events_of_speech": Row(
        "openai.speech",
        sse_reply(SPOKEN),
        asked("generate_content", TEXT, **SPEECH),
        made(blob("audio/mpeg", encoded(b"ID3 sound"))) | USED,
        SPOKEN,
        made(blob("audio/mpeg", encoded(b"ID3 sound")), whole=False),
        made(blob("audio/mpeg", encoded(b"ID3 sound")), whole=False),
        OPENAI | {"malformed answer": "truncated_response"},
        always_streams=True,
        reads_on=True,
    ),
    "transcription": Row(
        "openai.transcription",
        json_reply({"text": "Hi", "usage": {"type": "tokens", **COUNTED}}),
        asked("generate_content", WAV, **WORDS),
        made({"type": "text", "content": "Hi"}) | USED,
        HEARD,
        made({"type": "text", "content": "H"}, whole=False),
        form=True,
    ),
    "translation": Row(
        "openai.transcription",
        json_reply({"text": "Hi"}),
        asked("generate_content", WAV, **WORDS),
        made({"type": "text", "content": "Hi"}),
        form=True,
        without=NO_STREAM,
    ),
    "moderation": Row(
        "openai.moderation",
        json_reply({"id": "m", "model": MODEL, "results": [VERDICT]}),
        asked("moderation", TEXT),
        made(NO_HARM) | {a.GEN_AI_RESPONSE_ID: "m", a.GEN_AI_RESPONSE_MODEL: MODEL},
        without=NO_STREAM,
    ),
    "compaction": Row(
        "openai.compaction",
        json_reply(COMPACTED),
        asked("chat", TEXT, **RESPONSES),
        made({"type": "compaction", "id": "cmp_1", "encrypted_content": "eA=="})
        | USED
        | NOT_COUNTED
        | {
            a.GEN_AI_RESPONSE_ID: "resp_2",
            a.GEN_AI_CONVERSATION_COMPACTED: True,
            a.GEN_AI_RESPONSE_FINISH_REASONS: ["compaction"],
        },
        without=NO_STREAM,
    ),
    "fetched_response": Row(
        "openai.fetched_response",
        json_reply(RESPONSE),
        asked("fetch_response", model="", **RESPONSES),
        made({"type": "text", "content": "Hi"}) | FETCHED | {a.GEN_AI_RESPONSE_FINISH_REASONS: ["stop"]},
        tuple(sse.events(openai_responses.events(RESPONSE))),
        FETCHED | BROKEN,
    ),
    "batch_file": Row(
        "openai.batch_file",
        json_reply(FILE),
        asked("upload_batch"),
        {a.GEN_AI_RESPONSE_ID: "file-1"},
        form=True,
        without=NO_STREAM,
    ),
    "batch": Row(
        "openai.batch",
        json_reply(BATCH),
        asked("create_batch", model=""),
        {a.GEN_AI_RESPONSE_ID: "batch_1"},
        without=NO_STREAM,
    ),
    "fetched_batch": Row(
        "openai.fetched_batch",
        json_reply(BATCH),
        asked("fetch_batch", model=""),
        {a.GEN_AI_RESPONSE_ID: "batch_1"},
        without=NO_STREAM,
    ),
    "claude_tokens": Row(
        "anthropic.count_tokens",
        json_reply({"input_tokens": 3}),
        asked("count_tokens", TEXT),
        fails=ANTHROPIC,
        without=NO_STREAM,
    ),
    "claude_batch": Row(
        "anthropic.batch",
        json_reply(MESSAGES),
        asked("create_batch")
        | {a.GEN_AI_INPUT_MESSAGES: [{"role": "user", "parts": [TEXT], "custom_id": "1"}]},
        BY_ID,
        fails=ANTHROPIC,
        without=NO_STREAM,
    ),
    "claude_fetched_batch": Row(
        "anthropic.fetched_batch",
        json_reply(MESSAGES),
        asked("fetch_batch", model=""),
        BY_ID,
        fails=ANTHROPIC,
        without=NO_STREAM,
    ),
    "claude_results": Row(
        "anthropic.batch_results",
        Reply([LINES], 200, [("content-type", "application/x-jsonl")]),
        asked("fetch_response", model=""),
        results("1", "2"),
        begun=results("1"),
        cut=results("1"),
        fails=ANTHROPIC
        | {"cut answer": "httpx2.RemoteProtocolError", "malformed answer": "truncated_response"},
        always_streams=True,
        begins=0.8,  # the SDK reads 64 bytes at a time
        without=NO_STREAM,
        lead=lambda url: json_reply(
            MESSAGES | {"results_url": f"{url}/v1/messages/batches/msgbatch_1/results"}
        ),
    ),
    "GeminiVectors": Row(
        "gemini.batch_embed_contents",
        json_reply({"embeddings": [{"values": [0.5, 0.25]}]}),
        asked("embeddings", TEXT, **GOOGLE),
        DIMENSION,
        fails=GEMINI,
        refusal=refusal_of_google,
        without=NO_PARTS,
    ),
    "GeminiTokens": Row(
        "gemini.count_tokens",
        json_reply({"totalTokens": 3}),
        asked("count_tokens", TEXT, **GOOGLE),
        fails=GEMINI,
        refusal=refusal_of_google,
        without=NO_PARTS,
    ),
    "MistralVectors": Row(
        "openai.embeddings",
        json_reply(NUMBERS | {"id": "e-1"}),
        asked("embeddings", TEXT),
        EMBEDDED,
        fails=GEMINI,
        without=NO_PARTS,
    ),
    "CohereVectors": Row(
        "cohere.embed",
        json_reply(BY_TYPE),
        asked("embeddings", TEXT)
        | {a.GEN_AI_PROVIDER_NAME: "cohere", a.GEN_AI_REQUEST_ENCODING_FORMATS: ["float"]},
        {**DIMENSION, a.GEN_AI_RESPONSE_ID: "e-1", a.GEN_AI_USAGE_INPUT_TOKENS: 3},
        fails=COHERE,
        refusal=lambda message, *_: {"message": message},
        without=NO_PARTS,
    ),
    "OllamaVectors": Row(
        "ollama.embed",
        json_reply({"model": MODEL, "embeddings": [[0.5, 0.25]], "prompt_eval_count": 3}),
        asked("embeddings", TEXT) | {a.GEN_AI_PROVIDER_NAME: "ollama"},
        EMBEDDED,
        fails=OLLAMA,
        refusal=lambda message, *_: {"error": message},
        without=NO_RETRY,
    ),
    "HuggingFaceVectors": Row(
        "hugging_face.feature_extraction",
        json_reply([[0.5, 0.25]]),
        asked("embeddings", TEXT) | {a.GEN_AI_PROVIDER_NAME: "hugging_face"},
        DIMENSION,
        fails=HUGGING_FACE,
        refusal=lambda message, *_: {"error": message},
        without=NO_RETRY,
    ),
}
"""By the names of the calls there."""
