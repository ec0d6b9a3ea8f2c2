"""Bedrock through the SDK of Anthropic and through boto3: answers come in Amazon's event streams."""

import json
from typing import Any

import anthropic
import boto3
import pytest
from botocore.config import Config
from opentelemetry.trace import StatusCode
from support.answers.event_streams import chunk, event
from support.servers.scripted import Reply, ScriptedServer, anthropic_messages, json_reply
from support.tapes.recorded_calls import recorded_calls
from support.tapes.sessions import record, replay

from playhead_semconv import attributes as a

AMAZON = [("content-type", "application/vnd.amazon.eventstream")]
ASKED: Any = {
    "model": "anthropic.claude-sonnet-5-v1:0",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "Hello"}],
}


@pytest.mark.parametrize("streamed", [False, True])
def test_a_call(streamed: bool):
    whole = anthropic_messages.message("Hi there")
    events = [chunk(event) for event in anthropic_messages.events(whole)]
    reply = Reply(events, 200, AMAZON, framing="chunked") if streamed else json_reply(whole)
    with (
        ScriptedServer() as server,
        recorded_calls() as recorded,
        anthropic.AnthropicBedrock(
            base_url=server.url, aws_access_key="a", aws_secret_key="b", aws_region="eu-west-1"
        ) as claude,
    ):
        server.script([reply])
        said: Any = claude.messages.create(**ASKED, stream=streamed)
        if streamed:
            assert [event.type for event in said][-1] == "message_stop"
        span: Any = recorded.call()
    assert span.status.status_code is StatusCode.UNSET
    assert span.attributes[a.GEN_AI_PROVIDER_NAME] == "aws.bedrock"
    assert span.attributes.get(a.GEN_AI_REQUEST_STREAM, False) is streamed
    assert span.attributes[a.GEN_AI_RESPONSE_FINISH_REASONS] == ("stop",)
    (message,) = json.loads(span.attributes[a.GEN_AI_OUTPUT_MESSAGES])
    assert message["parts"] == [{"type": "text", "content": "Hi there"}]


SAID = {"message": {"role": "assistant", "content": [{"text": "Hi"}]}}
WHOLE = {"output": SAID, "stopReason": "end_turn", "usage": {"inputTokens": 3, "outputTokens": 2}}
EVENTS = [
    event("messageStart", {"role": "assistant"}),
    event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Hi"}}),
    event("contentBlockStop", {"contentBlockIndex": 0}),
    event("messageStop", {"stopReason": "end_turn"}),
    event("metadata", {"usage": {"inputTokens": 3, "outputTokens": 2}}),
]
HELLO: Any = [{"role": "user", "content": [{"text": "Hello"}]}]
BUSY = json_reply({"message": "Later"}, 503, {"x-amzn-errortype": "ServiceUnavailableException"})


def bedrock(server: ScriptedServer) -> Any:
    return bedrock_at(server.url)


def bedrock_at(url: str) -> Any:
    return boto3.client(
        "bedrock-runtime",
        "eu-west-1",
        endpoint_url=url,
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=Config(retries={"mode": "standard", "max_attempts": 2}),
    )


def converse(client: Any) -> None:
    client.converse(modelId="amazon.nova", messages=HELLO)


def converse_stream(client: Any) -> None:
    list(client.converse_stream(modelId="amazon.nova", messages=HELLO)["stream"])


def invoke(client: Any) -> None:
    asked = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": ASKED["messages"]}
    client.invoke_model(modelId="amazon.nova", body=json.dumps(asked))["body"].read()


CALLS: dict[str, tuple[Any, list[Reply], int]] = {
    "converse": (converse, [json_reply(WHOLE)], 1),
    "converse again": (converse, [BUSY, json_reply(WHOLE)], 2),
    "converse stream": (converse_stream, [Reply(EVENTS, 200, AMAZON, framing="chunked")], 1),
    "invoke": (invoke, [json_reply(anthropic_messages.message("Hi"))], 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_of_boto3(name: str):
    call, replies, attempts = CALLS[name]
    with ScriptedServer() as server, recorded_calls() as recorded:
        server.script(replies)
        call(bedrock(server))
        span: Any = recorded.call()
        assert len(recorded.attempts()) == attempts
    assert (span.name, span.status.status_code) == ("chat amazon.nova", StatusCode.UNSET)
    assert span.attributes[a.GEN_AI_PROVIDER_NAME] == "aws.bedrock"
    (message,) = json.loads(span.attributes[a.GEN_AI_OUTPUT_MESSAGES])
    assert message["parts"] == [{"type": "text", "content": "Hi"}]
    assert span.attributes[a.GEN_AI_RESPONSE_FINISH_REASONS] == ("stop",)


def test_a_call_of_boto3_that_is_refused():
    with ScriptedServer() as server, recorded_calls() as recorded:
        refused = {"message": "No such model"}
        server.script([json_reply(refused, 400, {"x-amzn-errortype": "ValidationException:http"})])
        with pytest.raises(Exception, match="No such model"):
            converse(bedrock(server))
        span: Any = recorded.call()
    assert span.attributes[a.ERROR_TYPE] == "ValidationException"
    assert span.status.description == "No such model"


KEY = "sk-proj-0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0u1V2w3X4y5Z"
"""What a model says, and is on no tape."""


def converse_text(url: str) -> str:
    said = bedrock_at(url).converse_stream(modelId="amazon.nova", messages=HELLO)["stream"]
    return "".join(
        one["contentBlockDelta"]["delta"]["text"] for one in said if "contentBlockDelta" in one
    )


def claude_text(url: str) -> str:
    with anthropic.AnthropicBedrock(
        base_url=url, aws_access_key="a", aws_secret_key="b", aws_region="eu-west-1"
    ) as claude:
        stream: Any = claude.messages.create(**ASKED, stream=True)
        return "".join(one.delta.text for one in stream if one.type == "content_block_delta")


@pytest.mark.parametrize("program", [converse_text, claude_text])
def test_a_stream_in_which_a_model_says_a_credential_replays_with_its_mask(program: Any):
    text = f"it is {KEY}, and"
    if program is converse_text:
        said = event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": text}})
        events = [EVENTS[0], said, *EVENTS[2:]]
    else:
        whole = anthropic_messages.message(text)
        events = [chunk(one) for one in anthropic_messages.events(whole)]
    with ScriptedServer() as server:
        server.script([Reply(events, 200, AMAZON, framing="chunked")])
        got, tape = record(lambda: program(server.url))
        url = server.url
    assert got == text
    again, _ = replay(lambda: program(url), tape)
    assert again == f"it is *redact{'~' * (len(KEY) - 7)}, and"
