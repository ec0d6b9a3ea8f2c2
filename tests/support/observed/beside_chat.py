"""``URL FOLDER``: calls of SDKs beside the cases, each once, in the order of `CALLS`."""

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

HELLO, MODEL = "Hello", "m-1"
ASKED: Any = [{"role": "user", "content": HELLO}]
PICTURE, SOUND = ("a.png", b"\x89PNG"), ("a.wav", b"RIFF")
LINES = ("lines.jsonl", json.dumps({"custom_id": "1", "body": {"model": MODEL}}).encode())
KEPT: list[Any] = []
"""Clients that close when nobody holds them."""
ENDPOINT: Any = "/v1/chat/completions"


def gpt(url: str) -> Any:
    import openai

    return openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)


def claude(url: str) -> Any:
    import anthropic

    return anthropic.Anthropic(base_url=url, api_key="k", max_retries=0)


def gemini(url: str) -> Any:
    from support.sdks.gemini import Gemini

    KEPT.append(Gemini(url).client())
    return KEPT[-1].models


def mistral(url: str) -> Any:
    from support.sdks.mistral import Mistral

    return Mistral(url).client()


def command(url: str) -> Any:
    from support.sdks.cohere_sdk import Cohere

    return Cohere(url).client()


def local(url: str) -> Any:
    import ollama

    return ollama.Client(host=url)


def invoked(model: str, **body: Any) -> Callable[[str], Any]:
    """An invocation of a model on Bedrock."""

    def ask(url: str) -> Any:
        from support.sdks.bedrock import Bedrock

        answer = Bedrock(url).client().invoke_model(modelId=model, body=json.dumps(body))
        return json.loads(answer["body"].read())

    return ask


def batch(url: str) -> Any:
    params: Any = {"model": MODEL, "max_tokens": 9, "messages": ASKED}
    return claude(url).messages.batches.create(requests=[{"custom_id": "1", "params": params}])


CALLS: dict[str, Callable[[str], Any]] = {
    "openai.embeddings": lambda url: gpt(url).embeddings.create(model=MODEL, input=HELLO),
    "openai.images": lambda url: gpt(url).images.generate(model=MODEL, prompt=HELLO),
    "openai.images edit": lambda url: gpt(url).images.edit(model=MODEL, prompt=HELLO, image=PICTURE),
    "openai.speech": lambda url: gpt(url).audio.speech.create(model=MODEL, voice="ash", input=HELLO),
    "openai.transcription": lambda url: gpt(url).audio.transcriptions.create(model=MODEL, file=SOUND),
    "openai.moderation": lambda url: gpt(url).moderations.create(model=MODEL, input=HELLO),
    "openai.completions": lambda url: gpt(url).completions.create(model=MODEL, prompt=HELLO),
    "openai.responses": lambda url: gpt(url).responses.create(model=MODEL, input=HELLO, background=True),
    "openai.fetched_response": lambda url: gpt(url).responses.retrieve("resp_1"),
    "openai.compaction": lambda url: gpt(url).responses.compact(model=MODEL, input=HELLO),
    "openai.batch_file": lambda url: gpt(url).files.create(file=LINES, purpose="batch"),
    "openai.batch": lambda url: gpt(url).batches.create(
        input_file_id="file-1", endpoint=ENDPOINT, completion_window="24h"
    ),
    "openai.fetched_batch": lambda url: gpt(url).batches.retrieve("batch_1"),
    "anthropic.count_tokens": lambda url: claude(url).messages.count_tokens(model=MODEL, messages=ASKED),
    "anthropic.batch": batch,
    "anthropic.fetched_batch": lambda url: claude(url).messages.batches.retrieve("msgbatch_1"),
    "gemini.batch_embed_contents": lambda url: gemini(url).embed_content(model=MODEL, contents=HELLO),
    "gemini.count_tokens": lambda url: gemini(url).count_tokens(model=MODEL, contents=HELLO),
    "openai.embeddings mistral": lambda url: mistral(url).embeddings.create(model=MODEL, inputs=[HELLO]),
    "cohere.embed": lambda url: command(url).embed(
        model=MODEL, texts=[HELLO], input_type="search_query", embedding_types=["float"]
    ),
    "ollama.generate": lambda url: local(url).generate(model=MODEL, prompt=HELLO),
    "ollama.embed": lambda url: local(url).embed(model=MODEL, input=HELLO),
    "bedrock.titan": invoked("amazon.titan-text", inputText=HELLO),
    "bedrock.titan_embeddings": invoked("amazon.titan-embed-text", inputText=HELLO),
    "bedrock.cohere_embeddings": invoked("cohere.embed", texts=[HELLO], input_type="search_query"),
    "bedrock.prompt": invoked("meta.llama", prompt=HELLO),
    "bedrock.command_r": invoked("cohere.command-r", message=HELLO),
    "bedrock.converse": invoked(
        "amazon.nova", messages=[{"role": "user", "content": [{"text": HELLO}]}]
    ),
}
"""Wire, and what tells it from another call on it → the call."""

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.path[:0] = [sys.argv[2], str(Path(__file__).parents[2])]
    for name, call in CALLS.items():
        try:
            said = type(call(sys.argv[1])).__name__
        except Exception as problem:
            said = f"{type(problem).__name__}: {problem}"
        sys.stdout.write(f"{name}: {said}\n")
