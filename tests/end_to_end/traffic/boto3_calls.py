"""Makes recorded requests of Bedrock with boto3."""

import json
from typing import Any
from urllib.parse import unquote

from said import URL, Said, fields_of, requests

# isort: split

import boto3
import botocore.exceptions
from botocore.config import Config

client: Any = boto3.client(
    "bedrock-runtime",
    "us-east-1",
    endpoint_url=URL,
    aws_access_key_id="a",
    aws_secret_access_key="b",
    config=Config(retries={"total_max_attempts": 1}),
)


def total(usage: dict[str, Any], *names: str) -> int | None:
    """The sum of some counts; None where none is told."""
    counts = [usage[name] for name in names if usage.get(name) is not None]
    return sum(counts) if counts else None


def converse(said: Said, told: dict[str, Any]) -> None:
    """Take in an answer of Converse, or of Nova."""
    for block in told["output"]["message"]["content"]:
        said.text(block.get("text"))
        if "toolUse" in block:
            said.call(block["toolUse"]["name"], block["toolUse"]["input"])
    said.finish.append(told["stopReason"])
    used(said, told["usage"])


def used(said: Said, usage: dict[str, Any]) -> None:
    cached = ("cacheReadInputTokens", "cacheWriteInputTokens")
    nova = ("cacheReadInputTokenCount", "cacheWriteInputTokenCount")
    names = cached if any(name in usage for name in cached) else nova
    said.used(total(usage, "inputTokens", *names), usage.get("outputTokens"))


class ConverseStream:
    """Takes in the events of a stream of Converse, or of Nova."""

    def __init__(self, said: Said) -> None:
        self.said = said
        self.arguments: list[str] = []
        self.names: list[str] = []

    def event(self, event: dict[str, Any]) -> None:
        if start := event.get("contentBlockStart"):
            if use := start["start"].get("toolUse"):
                self.names.append(use["name"])
                self.arguments.append("")
        elif block := event.get("contentBlockDelta"):
            self.said.text(block["delta"].get("text"))
            if use := block["delta"].get("toolUse"):
                self.arguments[-1] += use["input"]
        elif stop := event.get("messageStop"):
            self.said.finish.append(stop["stopReason"])
        elif metadata := event.get("metadata"):
            used(self.said, metadata["usage"])

    def end(self) -> None:
        for name, arguments in zip(self.names, self.arguments, strict=True):
            self.said.calls.append([name, json.loads(arguments) if arguments else ""])


class ClaudeStream:
    """Takes in the events of a message of Claude."""

    def __init__(self, said: Said) -> None:
        self.said = said
        self.blocks: dict[int, dict[str, Any]] = {}
        self.usage: dict[str, Any] = {}

    def event(self, event: dict[str, Any]) -> None:
        kind = event["type"]
        if kind == "message_start":
            self.usage |= event["message"]["usage"]
        elif kind == "content_block_start":
            self.blocks[event["index"]] = dict(event["content_block"], json="")
        elif kind == "content_block_delta":
            self.said.text(event["delta"].get("text"))
            self.blocks[event["index"]]["json"] += event["delta"].get("partial_json", "")
        elif kind == "message_delta":
            self.said.finish.append(event["delta"]["stop_reason"])
            self.usage |= event["usage"]

    def end(self) -> None:
        for block in self.blocks.values():
            if block["type"] == "tool_use":
                self.said.call(block["name"], block["json"] or "{}")
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        self.said.used(total(self.usage, *names), self.usage.get("output_tokens"))


class TitanStream:
    """Takes in the events of a text of Titan."""

    def __init__(self, said: Said) -> None:
        self.said = said

    def event(self, event: dict[str, Any]) -> None:
        self.said.text(event["outputText"])
        if event.get("completionReason"):
            self.said.finish.append(event["completionReason"])
        self.said.used(event.get("inputTextTokenCount"), event.get("totalOutputTextTokenCount"))

    def end(self) -> None:
        pass


def invoked(said: Said, told: dict[str, Any]) -> None:
    """Take in what a model of any family says, by the words of its own."""
    if "output" in told:
        converse(said, told)
    elif "results" in told:
        (result,) = told["results"]
        said.text(result["outputText"])
        said.finish.append(result["completionReason"])
        said.used(told["inputTextTokenCount"], result["tokenCount"])
    elif "content" in told:
        for block in told["content"]:
            said.text(block.get("text"))
            if block["type"] == "tool_use":
                said.call(block["name"], block["input"])
        said.finish.append(told["stop_reason"])
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        said.used(total(told["usage"], *names), told["usage"]["output_tokens"])
    elif "generations" in told:
        for number, one in enumerate(told["generations"]):
            said.text(one["text"], number)
            said.finish.append(one["finish_reason"])
    elif "outputs" in told:
        for number, one in enumerate(told["outputs"]):
            said.text(one["text"], number)
            said.finish.append(one["stop_reason"])
    elif "generation" in told:
        said.text(told["generation"])
        said.finish.append(told["stop_reason"])
        said.used(told["prompt_token_count"], told["generation_token_count"])
    else:
        said.text(told["text"])
        said.finish.append(told["finish_reason"])


def ask(said: Said, model: str, operation: str, body: str) -> None:
    if operation == "converse":
        converse(said, client.converse(modelId=model, **fields_of(body)))
    elif operation == "converse-stream":
        reader = ConverseStream(said)
        for event in client.converse_stream(modelId=model, **fields_of(body))["stream"]:
            reader.event(event)
        reader.end()
    elif operation == "invoke":
        answer = client.invoke_model(modelId=model, body=body)
        counted = answer["ResponseMetadata"]["HTTPHeaders"]
        invoked(said, json.loads(answer["body"].read()))
        for name in ("input", "output"):
            count = counted.get(f"x-amzn-bedrock-{name}-token-count")
            if getattr(said, name) is None and count:
                setattr(said, name, int(count))
    else:
        answer = client.invoke_model_with_response_stream(modelId=model, body=body)
        kinds = {"anthropic": ClaudeStream, "titan": TitanStream}
        kind = next((kinds[word] for word in kinds if word in model), ConverseStream)
        reader = kind(said)
        for event in answer["body"]:
            reader.event(json.loads(event["chunk"]["bytes"]))
        reader.end()


for request in requests():
    said = Said()
    model, _, operation = unquote(request["url"]).rpartition("/model/")[2].rpartition("/")
    try:
        ask(said, model, operation, request["body"])
    except botocore.exceptions.ClientError as refused:
        said.error = refused.response["ResponseMetadata"]["HTTPStatusCode"]
    except botocore.exceptions.EventStreamError as broken:
        said.error = broken.response["ResponseMetadata"]["HTTPStatusCode"]
    said.tell()
