"""``URL FOLDER NAME CASE…``: one call beside chat, each case once. It knows nothing of playhead.

A call is given as functions of its SDK's client. What its API does not stream is read as the bytes of
the answer come, where the SDK lets a program do that.
"""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

HELLO, MODEL = "Hello", "m-1"
ASKED: Any = [{"role": "user", "content": HELLO}]
PICTURE, SOUND = ("a.png", b"\x89PNG"), ("a.wav", b"RIFF")
LINES = ("lines.jsonl", json.dumps({"custom_id": "1", "body": {"model": MODEL}}).encode())
ENDPOINT, WINDOW = "/v1/chat/completions", "24h"
BATCH = [{"custom_id": "1", "params": {"model": MODEL, "max_tokens": 9, "messages": ASKED}}]
PATIENCE_S, SHORT_S = 20.0, 0.4

Ask = Callable[[Any], Any]
"""Client → answer, or something to await."""


class Call:
    """One call of a blocking client and of an asynchronous one."""

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


class Gemini(Other):
    def client(self, asynchronous: bool, tries: int = 1, timeout_s: float = PATIENCE_S) -> Any:
        from support.sdks.gemini import Gemini

        self.made = Gemini(self.url).client(tries, timeout_s)  # it closes when it is collected
        return self.made.aio.models if asynchronous else self.made.models

    def asks(self, client: Any) -> Any:
        return client.embed_content(model=MODEL, contents=HELLO)


class GeminiTokens(Gemini):
    def asks(self, client: Any) -> Any:
        return client.count_tokens(model=MODEL, contents=HELLO)


class Mistral(Other):
    def client(self, asynchronous: bool, tries: int = 1, timeout_s: float = PATIENCE_S) -> Any:
        from support.sdks.mistral import Mistral

        return Mistral(self.url).client(tries, timeout_s)

    def asks(self, client: Any) -> Any:
        return client.embeddings.create(model=MODEL, inputs=[HELLO])

    def asks_async(self, client: Any) -> Any:
        return client.embeddings.create_async(model=MODEL, inputs=[HELLO])


class Cohere(Other):
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


class Ollama(Other):
    def client(self, asynchronous: bool, tries: int = 1, timeout_s: float = PATIENCE_S) -> Any:
        import ollama

        kind = ollama.AsyncClient if asynchronous else ollama.Client
        return kind(host=self.url, timeout=timeout_s)

    def asks(self, client: Any) -> Any:
        return client.embed(model=MODEL, input=HELLO)


class HuggingFace(Other):
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


def images(client: Any, **more: Any) -> Any:
    return client.images.generate(model=MODEL, prompt=HELLO, **more)


def edited(client: Any, **more: Any) -> Any:
    return client.images.edit(model=MODEL, prompt=HELLO, image=PICTURE, **more)


def speech(client: Any, **more: Any) -> Any:
    return client.audio.speech.create(model=MODEL, voice="ash", input=HELLO, **more)


def heard(client: Any, **more: Any) -> Any:
    return client.audio.transcriptions.create(model=MODEL, file=SOUND, **more)


def results(client: Any) -> Any:
    return client.messages.batches.results("msgbatch_1")


CALLS: dict[str, Callable[[str], Call]] = {
    "embeddings": gpt(lambda it: it.embeddings.create(model=MODEL, input=HELLO)),
    "images": gpt(images, lambda it: images(it, stream=True, partial_images=1)),
    "edited images": gpt(edited, lambda it: edited(it, stream=True, partial_images=1)),
    "varied images": gpt(lambda it: it.images.create_variation(model=MODEL, image=PICTURE)),
    "speech": gpt(speech),
    "events of speech": gpt(lambda it: speech(it, stream_format="sse")),
    "transcription": gpt(heard, lambda it: heard(it, stream=True)),
    "translation": gpt(lambda it: it.audio.translations.create(model=MODEL, file=SOUND)),
    "moderation": gpt(lambda it: it.moderations.create(model=MODEL, input=HELLO)),
    "compaction": gpt(lambda it: it.responses.compact(model=MODEL, input=HELLO)),
    "fetched response": gpt(
        lambda it: it.responses.retrieve("resp_1"),
        lambda it: it.responses.retrieve("resp_1", stream=True),
    ),
    "batch file": gpt(lambda it: it.files.create(file=LINES, purpose="batch")),
    "batch": gpt(
        lambda it: it.batches.create(input_file_id="file-1", endpoint=ENDPOINT, completion_window=WINDOW)
    ),
    "fetched batch": gpt(lambda it: it.batches.retrieve("batch_1")),
    "claude's tokens": claude(lambda it: it.messages.count_tokens(model=MODEL, messages=ASKED)),
    "claude's batch": claude(lambda it: it.messages.batches.create(requests=BATCH)),
    "claude's fetched batch": claude(lambda it: it.messages.batches.retrieve("msgbatch_1")),
    "claude's results": lambda url: Results(url, "anthropic:Anthropic", results, results),
    "gemini": Gemini,
    "gemini's tokens": GeminiTokens,
    "mistral": Mistral,
    "cohere": Cohere,
    "ollama": Ollama,
    "huggingface_hub": HuggingFace,
}
"""Calls by name; those of openai without that of their SDK."""


def told(answer: Any) -> object:
    """What to print of an answer."""
    return type(answer).__name__


def abandoned(call: Call) -> object:
    """Read one part and leave."""
    parts = call.stream()
    first = next(parts)
    parts.close()  # type: ignore[attr-defined]
    return first


async def read(call: Call) -> object:
    """Read a stream to its end."""
    return [part async for part in call.astream()]


async def cancelled(call: Call) -> object:
    """Cancel the task that waits for an answer, when the provider says that it has been asked."""
    import httpx

    task = asyncio.create_task(call.aask())
    async with httpx.AsyncClient(timeout=PATIENCE_S) as client:
        await client.get(f"{call.url}/reached")
    return await end_of(task)


async def left(call: Call) -> object:
    """Cancel the task that reads a stream."""
    begun = asyncio.Event()

    async def reading() -> None:
        async for _ in call.astream():
            begun.set()

    task = asyncio.create_task(reading())
    await begun.wait()
    return await end_of(task)


async def end_of(task: asyncio.Task[Any]) -> object:
    """Cancel a task and return how it ends."""
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return "cancelled"
    return "came to its end"


SYNC: dict[str, Callable[[Call], object]] = {
    "plain": lambda call: call.ask(),
    "refused": lambda call: call.ask(),
    "failed": lambda call: call.ask(),
    "again": lambda call: call.ask(tries=3),
    "timeout": lambda call: call.ask(timeout_s=SHORT_S),
    "cut": lambda call: call.ask(),
    "malformed": lambda call: call.ask(),
    "stream": lambda call: list(call.stream()),
    "cut stream": lambda call: list(call.stream()),
    "malformed stream": lambda call: list(call.stream()),
    "abandoned": abandoned,
}
"""Case → what is done with the call."""

ASYNC: dict[str, Callable[[Call], Any]] = {
    "async": lambda call: call.aask(),
    "async stream": read,
    "cancelled": cancelled,
    "cancelled stream": left,
}
"""The same for what needs an event loop."""


def perform(name: str, url: str, case: str) -> str:
    """Do one case of a call; returns what to print."""
    call = CALLS[name](url)
    try:
        got = asyncio.run(ASYNC[case](call)) if case in ASYNC else SYNC[case](call)
    except Exception as problem:
        got = type(problem).__name__
    return f"{case}: {got}"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    url, folder, name, *wanted = sys.argv[1:]
    sys.path[:0] = [folder, str(Path(__file__).parents[2])]
    for case in wanted:
        sys.stdout.write(perform(name, url, case) + "\n")
