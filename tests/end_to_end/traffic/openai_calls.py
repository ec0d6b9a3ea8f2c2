"""Makes recorded requests with the SDK of OpenAI."""

import asyncio
import json
from typing import Any

from said import URL, Said, fields_of, requests

# isort: split

import openai

SETUP: Any = {"base_url": f"{URL}/v1", "api_key": "test", "max_retries": 0}


def method(client: Any, url: str) -> Any:
    end = url.rpartition("/")[2]
    places = {
        "completions": client.chat.completions,
        "responses": client.responses,
        "embeddings": client.embeddings,
    }
    return places[end].create


def read(said: Said, answer: Any) -> None:
    """Take in a whole answer or an event of a stream."""
    kind = type(answer).__name__
    if kind == "ChatCompletion":
        for choice in answer.choices:
            said.text(choice.message.content, choice.index)
            said.finish.append(choice.finish_reason)
            for call in choice.message.tool_calls or ():
                said.call(call.function.name, call.function.arguments)
        said.used(answer.usage.prompt_tokens, answer.usage.completion_tokens)
    elif kind == "ChatCompletionChunk":
        for choice in answer.choices:
            said.text(choice.delta.content, choice.index)
            if choice.finish_reason:
                said.finish.append(choice.finish_reason)
            for call in choice.delta.tool_calls or ():
                if call.id:
                    said.calls.append([call.function.name, ""])
                said.calls[-1][1] += call.function.arguments or ""
        if answer.usage:
            said.used(answer.usage.prompt_tokens, answer.usage.completion_tokens)
    elif kind == "CreateEmbeddingResponse":
        said.used(answer.usage.prompt_tokens, None)
    elif kind == "Response":
        said.text(answer.output_text)
        for item in answer.output:
            if item.type == "function_call":
                said.call(item.name, item.arguments)
        stopped = answer.incomplete_details and answer.incomplete_details.reason
        said.finish.append(stopped or ("tool_calls" if said.calls else answer.status))
        said.used(answer.usage.input_tokens, answer.usage.output_tokens)
    elif kind in ("ResponseCompletedEvent", "ResponseIncompleteEvent", "ResponseFailedEvent"):
        read(said, answer.response)


async def asynchronous(request: dict[str, Any], said: Said) -> None:
    async with openai.AsyncOpenAI(**SETUP) as client:
        body = fields_of(request["body"])
        answer = await method(client, request["url"])(**body)
        if body.get("stream"):
            async for event in answer:
                read(said, event)
        else:
            read(said, answer)


def synchronous(request: dict[str, Any], said: Said) -> None:
    with openai.OpenAI(**SETUP) as client:
        body = fields_of(request["body"])
        answer = method(client, request["url"])(**body)
        for event in answer if body.get("stream") else [answer]:
            read(said, event)


for request in requests():
    said = Said()
    try:
        if request["asynchronous"]:
            asyncio.run(asynchronous(request, said))
        else:
            synchronous(request, said)
    except openai.APIStatusError as refused:
        said.error = refused.status_code
    said.calls = [
        [name, json.loads(arguments) if isinstance(arguments, str) else arguments]
        for name, arguments in said.calls
    ]
    said.tell()
