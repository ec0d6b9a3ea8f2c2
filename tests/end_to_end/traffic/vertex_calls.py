"""Makes recorded requests of Gemini with the SDK of Vertex AI, over REST."""

import re
from typing import Any

from said import URL, Said, fields_of, requests

# isort: split

import vertexai
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from vertexai import generative_models as stable
from vertexai.preview import generative_models as preview

PLACE = re.compile(r"/(v\w+)/projects/([^/]+)/locations/([^/]+)/publishers/google/models/([^:]+):")

for request in requests():
    said, body = Said(), fields_of(request["body"])
    found = PLACE.search(request["url"])
    assert found
    version, project, location, name = found.groups()
    vertexai.init(
        project=project,
        location=location,
        api_endpoint=URL,
        api_transport="rest",
        credentials=AnonymousCredentials(),
    )
    words: Any = stable if version == "v1" else preview
    system, config = body.get("systemInstruction"), body.get("generationConfig")
    try:
        model = words.GenerativeModel(
            name, system_instruction=words.Content.from_dict(system) if system else None
        )
        answer = model.generate_content(
            [words.Content.from_dict(content) for content in body["contents"]],
            generation_config=config and words.GenerationConfig.from_dict(config),
            tools=[words.Tool.from_dict(tool) for tool in body.get("tools", ())] or None,
        )
    except exceptions.GoogleAPICallError as refused:
        said.error = refused.code
    else:
        told = answer.to_dict()
        for number, candidate in enumerate(answer.candidates):
            for part in told["candidates"][number].get("content", {}).get("parts", ()):
                said.text(part.get("text"), number)
                if call := part.get("function_call"):
                    said.call(call["name"], call["args"])
            said.finish.append(candidate.finish_reason.name)
        usage = told["usage_metadata"]
        thought = usage.get("thoughts_token_count", 0)
        said.used(usage["prompt_token_count"], usage.get("candidates_token_count", 0) + thought)
    said.tell()
