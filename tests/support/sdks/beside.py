"""Calls beside chat: embeddings, media, batches and their like.

A call is given as functions of its SDK's client. What its API does not stream is read as the bytes of
the answer come, where the SDK lets a program do that.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

import httpx
from support.sdks.cases import HELLO, MODEL, end_of

ASKED: Any = [{"role": "user", "content": HELLO}]
PICTURE, SOUND = ("a.png", b"\x89PNG"), ("a.wav", b"RIFF")
LINES = ("lines.jsonl", json.dumps({"custom_id": "1", "body": {"model": MODEL}}).encode())
ENDPOINT, WINDOW = "/v1/chat/completions", "24h"
BATCH = [{"custom_id": "1", "params": {"model": MODEL, "max_tokens": 9, "messages": ASKED}}]
PATIENCE_S = 20.0

Ask = Callable[[Any], Any]
"""Client → answer, or something to await."""


def told(answer: Any) -> object:
    """What to print of an answer."""
    return type(answer).__name__


async def cancelled(call: Call) -> object:
    """Cancel the task that waits for an answer, when the provider says that it has been asked."""
    task = asyncio.create_task(call.aask())
    async with httpx.AsyncClient(timeout=PATIENCE_S) as client:
        await client.get(f"{call.url}/reached")
    return await end_of(task)


class Call:
    """One call of a blocking client and of an asynchronous one."""

    own: Mapping[str, Callable[[Call], Any]] = {
        "again twice": lambda call: call.ask(tries=3),
        "cut answer": lambda call: call.ask(),
        "malformed answer": lambda call: call.ask(),
        "cancelled answer": cancelled,
    }
    """Cases of answers that come in one piece."""

    def __init__(self, url: str) -> None:
        self.url = url

    def client(self, asynchronous: bool, tries: int = 1, timeout_s: float = PATIENCE_S) -> Any:
        """A client that sends ``tries`` times."""
        raise NotImplementedError

    def asks(self, client: Any) -> Any:
        """Ask."""
        raise NotImplementedError

    def ask(self, tries: int = 1, timeout_s: float = PATIENCE_S) -> object:
        """Ask and return the answer."""
        return told(self.asks(self.client(False, tries, timeout_s)))

    async def aask(self) -> object:
        """The same with the asynchronous client."""
        raise NotImplementedError

    def stream(self) -> Iterator[object]:
        """Yield the parts of an answer."""
        raise NotImplementedError

    def astream(self) -> AsyncIterator[object]:
        """The same with the asynchronous client."""
        raise NotImplementedError


class Stainless(Call):
    """A call of openai or anthropic."""

    def __init__(self, url: str, kind: str, asks: Ask, streams: Ask | None = None) -> None:
        """``streams``: asks for a stream of its API; None: it has none."""
        super().__init__(url)
        self.kind, self.asks, self.streams = kind, asks, streams

    def client(self, asynchronous: bool, tries: int = 1, timeout_s: float = PATIENCE_S) -> Any:
        module, _, name = self.kind.partition(":")
        kind = getattr(import_module(module), f"Async{name}" if asynchronous else name)
        url = f"{self.url}/v1" if module == "openai" else self.url
        return kind(api_key="k", base_url=url, max_retries=tries - 1, timeout=timeout_s)

    async def aask(self) -> object:
        async with self.client(True) as client:
            return told(await self.asks(client))

    def stream(self) -> Iterator[object]:
        client = self.client(False)
        if self.streams is None:
            with self.asks(client.with_streaming_response) as answer:
                yield from answer.iter_bytes()
            return
        parts = self.streams(client)
        try:
            yield from map(told, parts)
        finally:
            parts.close()

    async def astream(self) -> AsyncIterator[object]:
        async with self.client(True) as client:
            if self.streams is None:
                async with self.asks(client.with_streaming_response) as answer:
                    async for part in answer.iter_bytes():
                        yield part
                return
            parts = await self.streams(client)
            try:
                async for part in parts:
                    yield told(part)
            finally:
                await parts.close()


class Results(Stainless):
    """The results of a batch of Anthropic, which its SDK reads line by line."""

    def ask(self, tries: int = 1, timeout_s: float = PATIENCE_S) -> object:
        return [told(one) for one in self.asks(self.client(False, tries, timeout_s))]

    async def aask(self) -> object:
        async with self.client(True) as client:
            return [told(one) async for one in await self.asks(client)]


class Other(Call):
    """A call of another SDK, whose adapters are in this folder."""

    def asks_async(self, client: Any) -> Any:
        """Ask with the asynchronous client."""
        return self.asks(client)

    async def aask(self) -> object:
        return told(await self.asks_async(self.client(True)))


class GeminiVectors(Other):
    def client(self, asynchronous: bool, tries: int = 1, timeout_s: float = PATIENCE_S) -> Any:
        from support.sdks.gemini import Gemini

        self.made = Gemini(self.url).client(tries, timeout_s)  # it closes when it is collected
        return self.made.aio.models if asynchronous else self.made.models

    def asks(self, client: Any) -> Any:
        return client.embed_content(model=MODEL, contents=HELLO)


class GeminiTokens(GeminiVectors):
    def asks(self, client: Any) -> Any:
        return client.count_tokens(model=MODEL, contents=HELLO)


class MistralVectors(Other):
    def client(self, asynchronous: bool, tries: int = 1, timeout_s: float = PATIENCE_S) -> Any:
        from support.sdks.mistral import Mistral

        return Mistral(self.url).client(tries, timeout_s)

    def asks(self, client: Any) -> Any:
        return client.embeddings.create(model=MODEL, inputs=[HELLO])

    def asks_async(self, client: Any) -> Any:
        return client.embeddings.create_async(model=MODEL, inputs=[HELLO])


class CohereVectors(Other):
    def client(self, asynchronous: bool, tries: int = 1, timeout_s: float = PATIENCE_S) -> Any:
        import cohere
        from support.sdks.cohere_sdk import Cohere

        self.tries = tries
        kind = cohere.AsyncClientV2 if asynchronous else cohere.ClientV2
        return Cohere(self.url).client(kind, timeout_s)

    def asks(self, client: Any) -> Any:
        return client.embed(
            model=MODEL,
            texts=[HELLO],
            input_type="search_query",
            embedding_types=["float"],
            request_options={"max_retries": self.tries if self.tries > 1 else 0},
        )


class OllamaVectors(Other):
    def client(self, asynchronous: bool, tries: int = 1, timeout_s: float = PATIENCE_S) -> Any:
        import ollama

        kind = ollama.AsyncClient if asynchronous else ollama.Client
        return kind(host=self.url, timeout=timeout_s)

    def asks(self, client: Any) -> Any:
        return client.embed(model=MODEL, input=HELLO)


class HuggingFaceVectors(Other):
    def client(self, asynchronous: bool, tries: int = 1, timeout_s: float = PATIENCE_S) -> Any:
        import huggingface_hub

        name = "AsyncInferenceClient" if asynchronous else "InferenceClient"
        place = f"{self.url}/hf-inference/models/{MODEL}/pipeline/feature-extraction"
        return getattr(huggingface_hub, name)(model=place, api_key="k", timeout=timeout_s)

    def asks(self, client: Any) -> Any:
        return client.feature_extraction(HELLO)


def stainless(kind: str, asks: Ask, streams: Ask | None = None) -> Callable[[str], Call]:
    """A call of openai or anthropic."""
    return lambda url: Stainless(url, kind, asks, streams)


def gpt(asks: Ask, streams: Ask | None = None) -> Callable[[str], Call]:
    """A call of openai."""
    return stainless("openai:OpenAI", asks, streams)


def claude(asks: Ask) -> Callable[[str], Call]:
    """A call of anthropic."""
    return stainless("anthropic:Anthropic", asks)


def generated(client: Any, **more: Any) -> Any:
    return client.images.generate(model=MODEL, prompt=HELLO, **more)


def changed(client: Any, **more: Any) -> Any:
    return client.images.edit(model=MODEL, prompt=HELLO, image=PICTURE, **more)


def spoken(client: Any, **more: Any) -> Any:
    return client.audio.speech.create(model=MODEL, voice="ash", input=HELLO, **more)


def heard(client: Any, **more: Any) -> Any:
    return client.audio.transcriptions.create(model=MODEL, file=SOUND, **more)


def fetched(client: Any, **more: Any) -> Any:
    return client.responses.retrieve("resp_1", **more)


def of_batch(client: Any) -> Any:
    return client.messages.batches.results("msgbatch_1")


embeddings = gpt(lambda it: it.embeddings.create(model=MODEL, input=HELLO))
images = gpt(generated, lambda it: generated(it, stream=True, partial_images=1))
edited_images = gpt(changed, lambda it: changed(it, stream=True, partial_images=1))
varied_images = gpt(lambda it: it.images.create_variation(model=MODEL, image=PICTURE))
speech = gpt(spoken)
events_of_speech = gpt(lambda it: spoken(it, stream_format="sse"))
transcription = gpt(heard, lambda it: heard(it, stream=True))
translation = gpt(lambda it: it.audio.translations.create(model=MODEL, file=SOUND))
moderation = gpt(lambda it: it.moderations.create(model=MODEL, input=HELLO))
compaction = gpt(lambda it: it.responses.compact(model=MODEL, input=HELLO))
fetched_response = gpt(fetched, lambda it: fetched(it, stream=True))
batch_file = gpt(lambda it: it.files.create(file=LINES, purpose="batch"))
batch = gpt(
    lambda it: it.batches.create(input_file_id="file-1", endpoint=ENDPOINT, completion_window=WINDOW)
)
fetched_batch = gpt(lambda it: it.batches.retrieve("batch_1"))
claude_tokens = claude(lambda it: it.messages.count_tokens(model=MODEL, messages=ASKED))
claude_batch = claude(lambda it: it.messages.batches.create(requests=BATCH))
claude_fetched_batch = claude(lambda it: it.messages.batches.retrieve("msgbatch_1"))


def claude_results(url: str) -> Call:
    return Results(url, "anthropic:Anthropic", of_batch, of_batch)
