"""Embeddings, media, batches and their like through the real SDKs: stored, replayed with no provider."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.answers.beside_rows import (
    BATCH,
    BY_TYPE,
    COMPACTED,
    FILE,
    MESSAGES,
    NUMBERS,
    PICTURES,
    RESPONSE,
    VECTORS,
)
from support.answers.sdk_table import APART, surroundings
from support.observed import beside_chat
from support.servers.scripted import (
    Reply,
    ScriptedServer,
    json_reply,
    openai_responses,
)
from support.starting.home import Home

from playhead_semconv import attributes as a

VERDICT = {"id": "m", "model": "m-1", "results": [{"flagged": False, "categories": {}}]}
TEXT = {
    "id": "c-1",
    "object": "text_completion",
    "created": 1,
    "model": "m-1",
    "choices": [{"index": 0, "text": "Hi", "finish_reason": "stop", "logprobs": None}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
}
QUEUED = openai_responses.response([], status="queued", model="m-1") | {
    "usage": None,
    "background": True,
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
    "openai.images": PICTURES,
    "openai.images edit": PICTURES,
    "openai.speech": Reply([b"ID3"], 200, [("content-type", "audio/mpeg")]),
    "openai.transcription": {"text": "Hi"},
    "openai.moderation": VERDICT,
    "openai.completions": TEXT,
    "openai.responses": QUEUED,
    "openai.fetched_response": RESPONSE,
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
    "cohere.embed": BY_TYPE,
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
"""Call of `support.observed.beside_chat` → what the provider says: JSON, or a reply."""
FORMS = {"exchanges": 3, "strict": 0}
"""Level → requests that are volatile, with files: the line between their fields is drawn by chance."""


@pytest.mark.acceptance
@pytest.mark.timeout(300)
@pytest.mark.parametrize("level", ["exchanges", "strict"])
def test_each_call_means_something_and_replays(tmp_path: Path, level: str):
    assert list(ANSWERS) == list(beside_chat.CALLS)
    answers = [one if isinstance(one, Reply) else json_reply(one) for one in ANSWERS.values()]
    home = Home(tmp_path, {})
    for environ in (home.environ, home.bare):
        environ.update(surroundings(tmp_path))
    with ScriptedServer() as server:
        server.script(answers)
        done = home.playhead("record", "--level", level, Path(beside_chat.__file__), server.url, APART)
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
