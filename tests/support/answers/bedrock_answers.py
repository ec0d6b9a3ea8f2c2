"""Answers on the wires of Anthropic and of Amazon, whose streams hold Anthropic's messages, too.

Written from the public descriptions of the APIs.
"""

from __future__ import annotations

import json
from typing import Any

from support.answers.event_streams import chunk, event
from support.answers.sdk_answers import TOOL, Answers, Said
from support.servers.scripted import Reply, anthropic_messages, json_reply, sse

AMAZON = "application/vnd.amazon.eventstream"
CONVERSE_USAGE = {"inputTokens": 12, "outputTokens": 5, "totalTokens": 17}


class Messages(Answers):
    """Anthropic's messages."""

    frame = staticmethod(sse.named)
    refusal = ("text", "content_filter")

    def whole(self, said: Said) -> dict[str, Any]:
        blocks: list[Any] = []
        if said.reasoning:
            blocks.append(anthropic_messages.thinking(said.reasoning))
        if said.text:
            blocks.append(anthropic_messages.text(said.text))
        blocks += [anthropic_messages.tool_use(id, TOOL, arguments) for id, arguments in said.calls]
        return anthropic_messages.message(
            blocks,
            model="m-1",
            stop_reason="refusal" if said.refused else None,
            usage=anthropic_messages.usage(12, 5),
        )

    def pieces(self, said: Said) -> list[Any]:
        return list(anthropic_messages.events(self.whole(said)))

    def parts(self, said: Said) -> list[dict[str, Any]]:
        signed = {"signature": "c2lnbmF0dXJl"}
        return [one | signed if one["type"] == "reasoning" else one for one in super().parts(said)]

    def broken(self) -> bytes:
        return b"event: content_block_delta\n" + super().broken()

    def error(self, status: int) -> Reply:
        said = {"type": "error", "error": {"type": "invalid", "message": "No"}}
        return json_reply(said, status, {"retry-after-ms": "1"})


class BedrockMessages(Messages):
    """The same of a model that is invoked on Bedrock: its streams are Amazon's."""

    media = AMAZON
    frame = staticmethod(chunk)

    def broken(self) -> bytes:
        return spoilt(chunk({"type": "ping"}))

    def error(self, status: int) -> Reply:
        return refused_by_amazon(status)


def spoilt(message: bytes) -> bytes:
    """A message of Amazon's event streams whose checksum is wrong."""
    return message[:-1] + bytes([message[-1] ^ 1])


def refused_by_amazon(status: int) -> Reply:
    """A request that Bedrock refuses."""
    return json_reply({"message": "No"}, status, {"x-amzn-errortype": "invalid"})


class Converse(Answers):
    """Bedrock's ``Converse``."""

    media = AMAZON
    refusal = ("text", "content_filter")

    def whole(self, said: Said) -> dict[str, Any]:
        content: list[Any] = []
        if said.reasoning:
            content.append({"reasoningContent": {"reasoningText": {"text": said.reasoning}}})
        if said.text:
            content.append({"text": said.text})
        for id, arguments in said.calls:
            content.append({"toolUse": {"toolUseId": id, "name": TOOL, "input": arguments}})
        reason = "content_filtered" if said.refused else "tool_use" if said.calls else "end_turn"
        return {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": reason,
            "usage": CONVERSE_USAGE,
            "metrics": {"latencyMs": 1},
        }

    def events(self, said: Said) -> list[bytes]:
        found = [event("messageStart", {"role": "assistant"})]
        index = 0
        for block in self.whole(said)["output"]["message"]["content"]:
            deltas: list[Any] = [{"text": piece} for piece in sse.pieces(block.get("text", ""))]
            if "toolUse" in block:
                use = block["toolUse"]
                start = {"toolUse": {"toolUseId": use["toolUseId"], "name": use["name"]}}
                found.append(event("contentBlockStart", {"contentBlockIndex": index, "start": start}))
                deltas = [{"toolUse": {"input": json.dumps(use["input"])}}]
            elif "reasoningContent" in block:
                deltas = [{"reasoningContent": {"text": said.reasoning}}]
            found += [
                event("contentBlockDelta", {"contentBlockIndex": index, "delta": delta})
                for delta in deltas
            ]
            found.append(event("contentBlockStop", {"contentBlockIndex": index}))
            index += 1
        found.append(event("messageStop", {"stopReason": self.whole(said)["stopReason"]}))
        return [*found, event("metadata", {"usage": CONVERSE_USAGE, "metrics": {"latencyMs": 1}})]

    def broken(self) -> bytes:
        return spoilt(event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "x"}}))

    def error(self, status: int) -> Reply:
        return refused_by_amazon(status)
