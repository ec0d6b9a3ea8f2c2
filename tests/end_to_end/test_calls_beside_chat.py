"""Embeddings, media, batches and their like through the real SDKs: stored, replayed with no provider."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.home import Home
from support.scripted import (
    Reply,
    ScriptedServer,
    json_reply,
    openai_embeddings,
    openai_responses,
)
from support.sdk_table import APART, surroundings
from support.sdks import others

from playhead_semconv import attributes as a

PICTURE = {
    "created": 1,
    "data": [{"b64_json": "AAAA"}],
    "usage": {"input_tokens": 3, "output_tokens": 4},
}
VERDICT = {"id": "m", "model": "m-1", "results": [{"flagged": False, "categories": {}}]}
TEXT = {
    "id": "c-1",
    "object": "text_completion",
    "created": 1,
    "model": "m-1",
    "choices": [{"index": 0, "text": "Hi", "finish_reason": "stop", "logprobs": None}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
}
SAID = [openai_responses.message("Hi")]
COUNTED = openai_responses.usage(3, 4)
QUEUED = openai_responses.response([], status="queued", model="m-1") | {
    "usage": None,
    "background": True,
}
FETCHED = openai_responses.response(SAID, model="m-1", usage=COUNTED)
COMPACTED = {
    "id": "resp_2",
    "object": "response.compaction",
    "created_at": 1,
    "output": [{"type": "compaction", "id": "cmp_1", "encrypted_content": "eA=="}],
    "usage": COUNTED,
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
    "processing_status": "in_progress",
    "created_at": "2026-01-01T00:00:00Z",
    "expires_at": "2026-01-02T00:00:00Z",
    "request_counts": {"processing": 1, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0},
}
VECTORS = openai_embeddings.embeddings([[0.5, 0.25]], model="m-1", tokens=3)
NUMBERS = openai_embeddings.embeddings([[0.5, 0.25]], model="m-1", tokens=3, as_base64=False)
EMBEDDED = {
    "id": "e-1",
    "texts": ["Hello"],
    "embeddings": {"float": [[0.5, 0.25]]},
    "response_type": "embeddings_by_type",
    "meta": {"billed_units": {"input_tokens": 3}},
}
LOCAL: dict[str, Any] = {"model": "m-1", "created_at": "2026-01-01T00:00:00Z"}
NOVA = {
    "output": {"message": {"role": "assistant", "content": [{"text": "Hi"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 3, "outputTokens": 4},
}
TITAN = [{"tokenCount": 4, "outputText": "Hi", "completionReason": "FINISH"}]
ANSWERS: dict[str, Any] = {
    "openai.embeddings": VECTORS,
    "openai.images": PICTURE,
    "openai.images edit": PICTURE,
    "openai.speech": Reply([b"ID3"], 200, [("content-type", "audio/mpeg")]),
    "openai.transcription": {"text": "Hi"},
    "openai.moderation": VERDICT,
    "openai.completions": TEXT,
    "openai.responses": QUEUED,
    "openai.fetched_response": FETCHED,
    "openai.compaction": COMPACTED,
    "openai.batch_file": FILE,
    "openai.batch": BATCH,
    "openai.fetched_batch": BATCH,
    "anthropic.count_tokens": {"input_tokens": 3},
    "anthropic.batch": MESSAGES,
    "anthropic.fetched_batch": MESSAGES,
    "gemini.batch_embed_contents": {"embeddings": [{"values": [0.5, 0.25]}]},
    "gemini.count_tokens": {"totalTokens": 3},
    "openai.embeddings mistral": NUMBERS | {"id": "e-1"},
    "cohere.embed": EMBEDDED,
    "ollama.generate": LOCAL
    | {"response": "Hi", "done": True, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 4},
    "ollama.embed": {"model": "m-1", "embeddings": [[0.5, 0.25]], "prompt_eval_count": 3},
    "bedrock.titan": {"inputTextTokenCount": 3, "results": TITAN},
    "bedrock.titan_embeddings": {"embedding": [0.5, 0.25], "inputTextTokenCount": 3},
    "bedrock.cohere_embeddings": {"embeddings": [[0.5, 0.25]], "id": "e-1"},
    "bedrock.prompt": {
        "generation": "Hi",
        "prompt_token_count": 3,
        "generation_token_count": 4,
        "stop_reason": "stop",
    },
    "bedrock.command_r": {"text": "Hi", "finish_reason": "COMPLETE", "response_id": "r-1"},
    "bedrock.converse": NOVA,
}
"""Call of `support.sdks.others` → what the provider says: JSON, or a reply."""
FORMS = {"exchanges": 3, "strict": 0}
"""Level → requests that are volatile, with files: the line between their fields is drawn by chance."""


@pytest.mark.acceptance
@pytest.mark.timeout(300)
@pytest.mark.parametrize("level", ["exchanges", "strict"])
def test_each_call_means_something_and_replays(tmp_path: Path, level: str):
    assert list(ANSWERS) == list(others.CALLS)
    answers = [one if isinstance(one, Reply) else json_reply(one) for one in ANSWERS.values()]
    home = Home(tmp_path, {})
    for environ in (home.environ, home.bare):
        environ.update(surroundings(tmp_path))
    with ScriptedServer() as server:
        server.script(answers)
        done = home.playhead("record", "--level", level, Path(others.__file__), server.url, APART)
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stdout, done.stdout
    home.playhead("rederive")
    run = home.run("last")
    told = [(step.span.attributes.get(a.PLAYHEAD_WIRE), step.span.failed) for step in run.steps]
    assert told == [(name.partition(" ")[0], False) for name in ANSWERS]
    exchanges = [one for step in run.steps for one in run.exchanges_of(step)]
    assert [one.request for one in exchanges] == [one.body for one in server.requests]
    assert [one.response for one in exchanges] == [b"".join(one.parts) for one in answers]
    assert [run.exchanges_of(step)[0].has_content for step in run.steps] == [True] * len(answers)
    status, report = home.report("last")
    volatile = FORMS[level]
    verdict = "volatile" if volatile else "identical"
    assert (status, report["verdict"], report["divergences"]) == (0, verdict, [])
    exact = len(answers) - volatile
    assert (report["fidelity"]["volatile"], report["fidelity"]["exact"]) == (volatile, exact)
