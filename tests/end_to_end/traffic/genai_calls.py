"""Makes recorded requests of Gemini with the SDK google-genai."""

import asyncio
import re
from typing import Any

from said import URL, Said, fields_of, requests

# isort: split

from google import genai
from google.genai import errors, types
from google.oauth2.credentials import Credentials

PLACE = re.compile(r"/(v\w+)/projects/([^/]+)/locations/([^/]+)/publishers/google/models/([^:]+):(\w+)")


def read(said: Said, answer: Any) -> None:
    for number, candidate in enumerate(answer.candidates or ()):
        for part in (candidate.content and candidate.content.parts) or ():
            said.text(part.text, number)
            if part.function_call:
                said.call(part.function_call.name, part.function_call.args)
        if candidate.finish_reason:
            said.finish.append(candidate.finish_reason.value)
    if (usage := answer.usage_metadata) and usage.total_token_count:
        thought = usage.thoughts_token_count or 0
        said.used(usage.prompt_token_count, (usage.candidates_token_count or 0) + thought)


async def asynchronous(client: Any, said: Said, streamed: bool, **asked: Any) -> None:
    if not streamed:
        read(said, await client.aio.models.generate_content(**asked))
        return
    async for chunk in await client.aio.models.generate_content_stream(**asked):
        read(said, chunk)


for request in requests():
    said, body = Said(), fields_of(request["body"])
    found = PLACE.search(request["url"])
    assert found
    version, project, location, model, action = found.groups()
    client = genai.Client(
        vertexai=True,
        project=project,
        location=location,
        credentials=Credentials("test"),
        http_options=types.HttpOptions(base_url=URL, api_version=version),
    )
    asked = {"model": model, "contents": body["contents"]}
    streamed = action == "streamGenerateContent"
    try:
        if request["asynchronous"]:
            asyncio.run(asynchronous(client, said, streamed, **asked))
        elif streamed:
            for chunk in client.models.generate_content_stream(**asked):
                read(said, chunk)
        else:
            read(said, client.models.generate_content(**asked))
    except errors.APIError as refused:
        said.error = refused.code
    said.tell()
