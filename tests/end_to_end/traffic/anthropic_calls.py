"""Makes recorded requests of Claude on Bedrock with the SDK of Anthropic."""

from typing import Any
from urllib.parse import unquote

from said import URL, Said, fields_of, requests

# isort: split

import anthropic


def read(said: Said, message: anthropic.types.Message) -> None:
    for block in message.content:
        if block.type == "text":
            said.text(block.text)
        elif block.type == "tool_use":
            said.call(block.name, block.input)
    assert message.stop_reason
    said.finish.append(message.stop_reason)
    usage = message.usage
    cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    said.used(usage.input_tokens + cached, usage.output_tokens)


with anthropic.AnthropicBedrock(
    base_url=URL, aws_access_key="a", aws_secret_key="b", aws_region="us-east-1", max_retries=0
) as client:
    for request in requests():
        said, body = Said(), fields_of(request["body"])
        asked: Any = {name: body.pop(name) for name in ("max_tokens", "messages")}
        del body["anthropic_version"]  # the SDK sends its own
        model, _, action = unquote(request["url"]).rpartition("/model/")[2].rpartition("/")
        try:
            if action == "invoke":
                read(said, client.messages.create(model=model, **asked, extra_body=body))
            else:
                with client.messages.stream(model=model, **asked, extra_body=body) as stream:
                    read(said, stream.get_final_message())
        except anthropic.APIStatusError as refused:
            said.error = refused.status_code
        said.tell()
