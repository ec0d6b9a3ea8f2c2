"""The same answers on the wires of several providers: a `Said` as a body, or as a stream, of each.

Written from the public descriptions of the APIs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from support.servers.scripted import Reply, json_reply, openai_chat, openai_responses, sse

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
COHERE_USAGE = {
    "billed_units": {"input_tokens": 12, "output_tokens": 5},
    "tokens": {"input_tokens": 12, "output_tokens": 5},
}


class Answers:
    """One wire; and, in the words of the conventions, what it says."""

    media = "text/event-stream"
    frame = staticmethod(sse.data)
    refusal = ("text", "stop")
    """Type of the part that is a refusal, and why such an answer ended."""
    called = "tool_call"
    """Why an answer with calls of tools ended."""

    def parts(self, said: Said) -> list[dict[str, Any]]:
        """Parts of the message."""
        found: list[dict[str, Any]] = []
        if said.reasoning:
            found.append({"type": "reasoning", "content": said.reasoning})
        if said.text:
            found.append({"type": self.refusal[0] if said.refused else "text", "content": said.text})
        return found + [self.call(*one) for one in said.calls]

    def call(self, id: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The part for a call of the tool."""
        return {"type": "tool_call", "id": id, "name": TOOL, "arguments": arguments}

    def reason(self, said: Said) -> str:
        """Why it ended."""
        return self.called if said.calls else self.refusal[1] if said.refused else "stop"

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

    refusal = ("refusal", "stop")

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

    refusal = Answers.refusal

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


class Responses(Answers):
    """OpenAI's responses."""

    frame = staticmethod(sse.named)
    refusal = ("refusal", "stop")

    def whole(self, said: Said) -> dict[str, Any]:
        items: list[Any] = []
        if said.reasoning:
            items.append(openai_responses.reasoning(said.reasoning))
        if said.text:
            items.append(
                openai_responses.message(said.text, refusal=said.text if said.refused else None)
            )
        items += [
            openai_responses.function_call(id, TOOL, arguments, id=f"fc-{id}")
            for id, arguments in said.calls
        ]
        return openai_responses.response(items, model="m-1", usage=openai_responses.usage(12, 5))

    def pieces(self, said: Said) -> list[Any]:
        return list(openai_responses.events(self.whole(said)))

    def parts(self, said: Said) -> list[dict[str, Any]]:
        return [
            one | {"item_id": "rs_1"} if one["type"] == "reasoning" else one
            for one in super().parts(said)
        ]

    def call(self, id: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return super().call(id, arguments) | {"item_id": f"fc-{id}"}


class Gemini(Answers):
    """Gemini's ``generateContent``."""

    refusal = ("text", "content_filter")
    called = "stop"

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
    called = "stop"

    def call(self, id: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"type": "tool_call", "name": TOOL, "arguments": arguments}

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
