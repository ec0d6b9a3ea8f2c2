"""The same answers on the wires of several providers: a `Said` as a body, or as a stream, of each.

Written from the public descriptions of the APIs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from support.event_streams import event
from support.scripted import Reply, json_reply, openai_chat, sse

Call = tuple[str, dict[str, Any]]
"""Id and arguments of a call of the tool."""


@dataclass(frozen=True)
class Said:
    """What a model says."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    refused: bool = False
    """What it says is a refusal, on the wires that tell it from other texts."""


TOOL = "weather"
CONVERSE_USAGE = {"inputTokens": 12, "outputTokens": 5, "totalTokens": 17}
COHERE_USAGE = {
    "billed_units": {"input_tokens": 12, "output_tokens": 5},
    "tokens": {"input_tokens": 12, "output_tokens": 5},
}


class Answers:
    """One wire."""

    media = "text/event-stream"
    frame = staticmethod(sse.data)

    def whole(self, said: Said) -> dict[str, Any]:
        """A body."""
        raise NotImplementedError

    def pieces(self, said: Said) -> list[Any]:
        """The values of a stream."""
        raise NotImplementedError

    def reply(self, said: Said) -> Reply:
        """An answer in one piece."""
        return json_reply(self.whole(said))

    def events(self, said: Said) -> list[bytes]:
        """The pieces as bytes."""
        return [self.frame(one) for one in self.pieces(said)]

    def stream(self, said: Said, **fields: Any) -> Reply:
        """A streamed answer."""
        return Reply(
            self.events(said), 200, [("content-type", self.media)], **{"framing": "chunked", **fields}
        )

    def broken(self) -> bytes:
        """An event that is no JSON."""
        return b"data: {broken\n\n"

    def error(self, status: int) -> Reply:
        """A request that is refused."""
        said = {"message": "No", "type": "invalid", "code": None}
        return json_reply({"error": said}, status, {"retry-after-ms": "1"})


class Chat(Answers):
    """OpenAI's chat."""

    def whole(self, said: Said) -> dict[str, Any]:
        calls = [openai_chat.tool_call(id, TOOL, arguments) for id, arguments in said.calls]
        text = said.text or None
        refusal, content = (text, None) if said.refused else (None, text)
        found = openai_chat.completion(content, tool_calls=calls, refusal=refusal, model="m-1")
        del found["service_tier"], found["system_fingerprint"]
        if said.reasoning:
            found["choices"][0]["message"]["reasoning"] = said.reasoning
        return found

    def pieces(self, said: Said) -> list[Any]:
        whole = self.whole(said) | {"service_tier": "", "system_fingerprint": ""}
        found = list(openai_chat.chunks(whole))
        for one in found:
            del one["service_tier"], one["system_fingerprint"]
        if said.reasoning:
            first = found[0]["choices"][0]
            delta = {**first, "delta": {"reasoning": said.reasoning}}
            found.insert(1, {**found[0], "choices": [delta]})
        return found

    def events(self, said: Said) -> list[bytes]:
        return [*super().events(said), sse.DONE]


class Mistral(Chat):
    """Mistral's chat: a call of a tool comes in one piece, a thought among the content."""

    def whole(self, said: Said) -> dict[str, Any]:
        found = super().whole(Said(said.text, "", said.calls))
        if said.reasoning:
            thought = {"type": "thinking", "thinking": [{"type": "text", "text": said.reasoning}]}
            text = {"type": "text", "text": said.text}
            found["choices"][0]["message"]["content"] = [thought, text]
        return found

    def pieces(self, said: Said) -> list[Any]:
        first, *others = super().pieces(Said(said.text))
        one = first["choices"][0]
        if said.reasoning:
            thought = self.whole(said)["choices"][0]["message"]["content"][:1]
            others.insert(0, {**first, "choices": [{**one, "delta": {"content": thought}}]})
        if said.calls:
            whole = self.whole(said)["choices"][0]
            calls = [
                {**call, "index": index} for index, call in enumerate(whole["message"]["tool_calls"])
            ]
            end = {"delta": {"content": "", "tool_calls": calls}, "finish_reason": "tool_calls"}
            others = [{**first, "choices": [{**one, **end}]}, others[-1]]
        return [first, *others]


class Gemini(Answers):
    """Gemini's ``generateContent``."""

    def _parts(self, said: Said, texts: list[str]) -> list[Any]:
        found: list[Any] = []
        if said.reasoning:
            found.append({"text": said.reasoning, "thought": True})
        found += [{"text": one} for one in texts if one]
        for id, arguments in said.calls:
            found.append({"functionCall": {"id": id, "name": TOOL, "args": arguments}})
        return found

    def _answer(self, parts: list[Any], reason: str | None) -> dict[str, Any]:
        one: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
        if reason:
            one["finishReason"] = reason
        usage = {"promptTokenCount": 12, "candidatesTokenCount": 5, "totalTokenCount": 17}
        return {
            "candidates": [one],
            "usageMetadata": usage,
            "modelVersion": "m-1",
            "responseId": "r-1",
        }

    def whole(self, said: Said) -> dict[str, Any]:
        return self._answer(self._parts(said, [said.text]), "SAFETY" if said.refused else "STOP")

    def pieces(self, said: Said) -> list[Any]:
        *before, last = [[one] for one in self._parts(said, sse.pieces(said.text))]
        return [self._answer(one, None) for one in before] + [self._answer(last, "STOP")]

    def error(self, status: int) -> Reply:
        said = {"code": status, "message": "No", "status": "invalid"}
        return json_reply({"error": said}, status)


class Converse(Answers):
    """Bedrock's ``Converse``."""

    media = "application/vnd.amazon.eventstream"

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
        whole = event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "x"}})
        return whole[:-1] + bytes([whole[-1] ^ 1])  # its checksum is wrong

    def error(self, status: int) -> Reply:
        return json_reply({"message": "No"}, status, {"x-amzn-errortype": "invalid"})


class Cohere(Answers):
    """Cohere's chat, version 2."""

    def whole(self, said: Said) -> dict[str, Any]:
        content: list[Any] = []
        if said.reasoning:
            content.append({"type": "thinking", "thinking": said.reasoning})
        if said.text:
            content.append({"type": "text", "text": said.text})
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if said.calls:
            message["tool_calls"] = [
                openai_chat.tool_call(id, TOOL, arguments) for id, arguments in said.calls
            ]
        reason = "TOOL_CALL" if said.calls else "COMPLETE"
        return {"id": "r-1", "finish_reason": reason, "message": message, "usage": COHERE_USAGE}

    def pieces(self, said: Said) -> list[Any]:
        whole = self.whole(said)
        found: list[Any] = [
            {"type": "message-start", "id": "r-1", "delta": {"message": {"role": "assistant"}}}
        ]
        for index, block in enumerate(whole["message"]["content"]):
            field = block["type"] if block["type"] == "text" else "thinking"
            start = {"message": {"content": {"type": block["type"], field: ""}}}
            found.append({"type": "content-start", "index": index, "delta": start})
            for piece in sse.pieces(block[field]):
                delta = {"message": {"content": {field: piece}}}
                found.append({"type": "content-delta", "index": index, "delta": delta})
            found.append({"type": "content-end", "index": index})
        for index, call in enumerate(whole["message"].get("tool_calls", ())):
            bare = {**call, "function": {**call["function"], "arguments": ""}}
            start = {"message": {"tool_calls": bare}}
            found.append({"type": "tool-call-start", "index": index, "delta": start})
            delta = {
                "message": {"tool_calls": {"function": {"arguments": call["function"]["arguments"]}}}
            }
            found.append({"type": "tool-call-delta", "index": index, "delta": delta})
            found.append({"type": "tool-call-end", "index": index})
        end = {"finish_reason": whole["finish_reason"], "usage": COHERE_USAGE}
        return [*found, {"type": "message-end", "delta": end}]

    def events(self, said: Said) -> list[bytes]:
        return [sse.named(one) for one in self.pieces(said)]

    def error(self, status: int) -> Reply:
        return json_reply({"message": "No"}, status, {"retry-after-ms": "1"})


class Ollama(Answers):
    """Ollama's own chat."""

    media = "application/x-ndjson"

    def _message(self, said: Said) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": said.text}
        if said.reasoning:
            message["thinking"] = said.reasoning
        if said.calls:
            message["tool_calls"] = [
                {"function": {"name": TOOL, "arguments": arguments}} for _, arguments in said.calls
            ]
        return message

    def _line(self, message: Any, **more: Any) -> dict[str, Any]:
        return {"model": "m-1", "created_at": "2026-01-01T00:00:00Z", "message": message, **more}

    def whole(self, said: Said) -> dict[str, Any]:
        return self._line(self._message(said), **self.end())

    def end(self) -> dict[str, Any]:
        """What the last line says."""
        return {"done": True, "done_reason": "stop", "prompt_eval_count": 12, "eval_count": 5}

    def pieces(self, said: Said) -> list[Any]:
        first, *others = sse.pieces(said.text)
        messages = [self._message(Said(first, said.reasoning, said.calls))]
        messages += [self._message(Said(piece)) for piece in others]
        lines = [self._line(message, done=False) for message in messages]
        return [*lines, self._line(self._message(Said()), **self.end())]

    def events(self, said: Said) -> list[bytes]:
        return [sse.encode(one) + b"\n" for one in self.pieces(said)]

    def broken(self) -> bytes:
        return b"{broken\n"

    def error(self, status: int) -> Reply:
        return json_reply({"error": "No"}, status)
