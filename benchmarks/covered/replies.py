"""What the scripted provider answers, for each wire and case: plain, streamed, refused, cut."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from support.answers.event_streams import event
from support.servers.scripted import Reply, json_reply, sse_reply

from covered.words import ANSWER, ARGUMENT, INPUT, OUTPUT, REFUSED, SECOND, THOUGHT, cut
from covered.xai import of_xai

Replies = dict[str, list[Reply]]
ARGUMENTS = json.dumps({"city": ARGUMENT})
BUSY = {"retry-after-ms": "1", "retry-after": "0"}


def sse(events: Iterable[Any], *, named: bool = False, done: bool = False) -> Reply:
    parts: list[bytes] = []
    for one in events:
        head = f"event: {one['type']}\n" if named else ""
        parts.append(f"{head}data: {json.dumps(one)}\n\n".encode())
    return sse_reply([*parts, *([b"data: [DONE]\n\n"] if done else [])])


def lines(events: Iterable[Any]) -> Reply:
    parts = [json.dumps(one).encode() + b"\n" for one in events]
    return Reply(parts, 200, [("content-type", "application/x-ndjson")], framing="chunked")


def amazon(events: Iterable[tuple[str, Any]]) -> Reply:
    kind = [("content-type", "application/vnd.amazon.eventstream")]
    return Reply([event(*one) for one in events], 200, kind, framing="chunked")


def cut_off(reply: Reply, after: int) -> Reply:
    """The same reply, whose connection breaks after so many parts."""
    sizes = [len(part) for part in reply.parts[:after] if isinstance(part, bytes)]
    return reply.but(truncate_at=sum(sizes))


def family(
    whole: Any, stream: Reply, tools: Reply, error: Any, *, busy: int = 429, begun: int
) -> Replies:
    """The cases that every wire has. ``begun``: parts of the stream until half of the text has come."""
    plain = json_reply(whole)
    return {
        "call": [plain],
        "stream": [stream],
        "tools": [tools],
        "retry": [json_reply(error, busy, BUSY), plain],
        "error": [json_reply(error, 400)],
        "truncated": [cut_off(stream, begun)],
        "abandoned": [stream],
        "closed": [stream],
    }


def chat(**message: Any) -> dict[str, Any]:
    """A chat completion of one choice."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    usage = {"prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT}
    head = {"id": "c-1", "object": "chat.completion", "created": 1, "model": "m-1"}
    return {**head, "choices": [choice], "usage": usage}


def chunk(delta: Any, reason: str | None = None, index: int = 0, **more: Any) -> dict[str, Any]:
    choice = {"index": index, "delta": delta, "finish_reason": reason}
    head = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m-1"}
    return {**head, "choices": [choice], **more}


def called(index: int, **fields: Any) -> dict[str, Any]:
    return chunk({"tool_calls": [{"index": index, **fields}]})


def of_chat() -> Replies:
    usage = chat()["usage"]
    head, last = chunk({"role": "assistant", "content": ""}), chunk({}, "stop", usage=usage)
    texts = [chunk({"content": piece}) for piece in cut(ANSWER)]
    function = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}}
    arguments = [called(0, function={"arguments": piece}) for piece in cut(ARGUMENTS)]
    tools = [head, called(0, **function), *arguments, chunk({}, "tool_calls", usage=usage)]
    error = {"error": {"message": "Later", "type": "busy", "code": "busy"}}
    stream = sse([head, *texts, last], done=True)
    return family(chat(content=ANSWER), stream, sse(tools, done=True), error, begun=3)


def of_openai() -> Replies:
    usage = chat()["usage"]
    both = [chunk({"content": piece}, index=0) for piece in cut(ANSWER)]
    others = [chunk({"content": piece}, index=1) for piece in cut(SECOND)]
    mixed = [one for pair in zip(both, others, strict=True) for one in pair]
    ends = [chunk({}, "stop", index=0), chunk({}, "stop", index=1, usage=usage)]
    told = {"input_tokens": INPUT, "output_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT}
    details = {
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    text = {"type": "output_text", "text": ANSWER, "annotations": []}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [text],
    }
    response = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "m-1",
        "output": [message],
        "usage": told | details,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
    events = [
        {"type": "response.created", "response": response | {"status": "in_progress", "output": []}},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": message | {"content": [], "status": "in_progress"},
        },
        {"type": "response.content_part.added", **at, "part": text | {"text": ""}},
        *({"type": "response.output_text.delta", **at, "delta": piece} for piece in cut(ANSWER)),
        {"type": "response.output_text.done", **at, "text": ANSWER},
        {"type": "response.output_item.done", "output_index": 0, "item": message},
        {"type": "response.completed", "response": response},
    ]
    numbered = [one | {"sequence_number": number} for number, one in enumerate(events)]
    embedded = {
        "object": "list",
        "model": "m-1",
        "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 1.0]}],
        "usage": {"prompt_tokens": INPUT, "total_tokens": INPUT},
    }
    return of_chat() | {
        "embeddings": [json_reply(embedded)],
        "two choices": [sse([*mixed, *ends], done=True)],
        "refusal": [json_reply(chat(content=None, refusal=REFUSED))],
        "image": [json_reply(chat(content=ANSWER))],
        "structured": [json_reply(chat(content=json.dumps({"city": ANSWER})))],
        "responses": [json_reply(response)],
        "responses stream": [sse(numbered, named=True)],
    }


def of_anthropic() -> Replies:
    def message(*content: Any) -> dict[str, Any]:
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m-1",
            "content": list(content),
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": INPUT, "output_tokens": OUTPUT},
        }

    def streamed(block: Any, kind: str, field: str, pieces: list[str], reason: str) -> Iterator[Any]:
        begun = message() | {"stop_reason": None, "usage": {"input_tokens": INPUT, "output_tokens": 1}}
        yield {"type": "message_start", "message": begun}
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        for piece in pieces:
            delta = {"type": kind, field: piece}
            yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        end = {"stop_reason": reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": OUTPUT}}
        yield {"type": "message_stop"}

    text = {"type": "text", "text": ""}
    use = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    stream = sse(streamed(text, "text_delta", "text", cut(ANSWER), "end_turn"), named=True)
    tools = sse(
        streamed(use, "input_json_delta", "partial_json", cut(ARGUMENTS), "tool_use"), named=True
    )
    error = {"type": "error", "error": {"type": "rate_limit_error", "message": "Later"}}
    thinking = {"type": "thinking", "thinking": THOUGHT, "signature": "c2ln"}
    told = {"type": "text", "text": ANSWER}
    return family(message(told), stream, tools, error, begun=4) | {
        "reasoning": [json_reply(message(thinking, told))],
        "image": [json_reply(message(told))],
    }


def of_google() -> Replies:
    usage = {
        "promptTokenCount": INPUT,
        "candidatesTokenCount": OUTPUT,
        "totalTokenCount": INPUT + OUTPUT,
    }

    def content(*parts: Any, reason: str | None = None, **more: Any) -> dict[str, Any]:
        candidate: Any = {"content": {"role": "model", "parts": list(parts)}}
        if reason:
            candidate["finishReason"] = reason
        return {"candidates": [candidate], "modelVersion": "m-1", **more}

    whole = content({"text": ANSWER}, reason="STOP", usageMetadata=usage)
    texts = [content({"text": piece}) for piece in cut(ANSWER)]
    call = {"functionCall": {"name": "f", "args": {"city": ARGUMENT}}}
    error = {"error": {"code": 429, "message": "Later", "status": "RESOURCE_EXHAUSTED"}}
    stream = sse([*texts, content({"text": ""}, reason="STOP", usageMetadata=usage)])
    tools = sse([content(call, reason="STOP", usageMetadata=usage)])
    thought = content({"text": THOUGHT, "thought": True}, {"text": ANSWER}, reason="STOP")
    embedded = {"embeddings": [{"values": [0.5, 1.0]}], "usageMetadata": {"promptTokenCount": INPUT}}
    return family(whole, stream, tools, error, begun=2) | {
        "reasoning": [json_reply(thought)],
        "image": [json_reply(whole)],
        "embeddings": [json_reply(embedded)],
    }


def of_bedrock() -> Replies:
    usage = {"inputTokens": INPUT, "outputTokens": OUTPUT, "totalTokens": INPUT + OUTPUT}

    def streamed(start: Any, deltas: list[Any], reason: str) -> Iterator[tuple[str, Any]]:
        yield "messageStart", {"role": "assistant"}
        if start:
            yield "contentBlockStart", {"contentBlockIndex": 0, "start": start}
        for delta in deltas:
            yield "contentBlockDelta", {"contentBlockIndex": 0, "delta": delta}
        yield "contentBlockStop", {"contentBlockIndex": 0}
        yield "messageStop", {"stopReason": reason}
        yield "metadata", {"usage": usage, "metrics": {"latencyMs": 1}}

    whole = {
        "output": {"message": {"role": "assistant", "content": [{"text": ANSWER}]}},
        "stopReason": "end_turn",
        "usage": usage,
        "metrics": {"latencyMs": 1},
    }
    stream = amazon(streamed(None, [{"text": piece} for piece in cut(ANSWER)], "end_turn"))
    deltas = [{"toolUse": {"input": piece}} for piece in cut(ARGUMENTS)]
    tools = amazon(streamed({"toolUse": {"toolUseId": "t1", "name": "f"}}, deltas, "tool_use"))
    claude = of_anthropic()["call"]
    return family(whole, stream, tools, {"message": "Later"}, busy=503, begun=3) | {"invoked": claude}


def of_cohere() -> Replies:
    used = {"input_tokens": INPUT, "output_tokens": OUTPUT}
    usage = {"billed_units": used, "tokens": used}
    whole = {
        "id": "c-1",
        "finish_reason": "COMPLETE",
        "message": {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]},
        "usage": usage,
    }

    def streamed(*middle: Any) -> Reply:
        start = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": []}
        first = {"type": "message-start", "id": "c-1", "delta": {"message": start}}
        end = {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": usage}}
        return sse([first, *middle, end], named=True)

    opening = {
        "type": "content-start",
        "index": 0,
        "delta": {"message": {"content": {"type": "text", "text": ""}}},
    }
    texts = [
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": piece}}}}
        for piece in cut(ANSWER)
    ]
    function = {"id": "f_1", "type": "function", "function": {"name": "f", "arguments": ""}}
    begun = {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": function}}}
    arguments = [
        {
            "type": "tool-call-delta",
            "index": 0,
            "delta": {"message": {"tool_calls": {"function": {"arguments": piece}}}},
        }
        for piece in cut(ARGUMENTS)
    ]
    stream = streamed(opening, *texts, {"type": "content-end", "index": 0})
    tools = streamed(begun, *arguments, {"type": "tool-call-end", "index": 0})
    embedded = {
        "id": "e-1",
        "response_type": "embeddings_by_type",
        "embeddings": {"float": [[0.5, 1.0]]},
        "texts": [],
        "meta": {"billed_units": {"input_tokens": INPUT}},
    }
    return family(whole, stream, tools, {"message": "Later"}, begun=4) | {
        "embeddings": [json_reply(embedded)]
    }


def of_ollama() -> Replies:
    head = {"model": "m-1", "created_at": "2026-01-01T00:00:00Z"}
    used = {"done_reason": "stop", "prompt_eval_count": INPUT, "eval_count": OUTPUT}

    def said(done: bool, **message: Any) -> dict[str, Any]:
        return {
            **head,
            "message": {"role": "assistant", **message},
            "done": done,
            **(used if done else {}),
        }

    call = {"function": {"name": "f", "arguments": {"city": ARGUMENT}}}
    stream = lines([*(said(False, content=piece) for piece in cut(ANSWER)), said(True, content="")])
    tools = lines([said(False, content="", tool_calls=[call]), said(True, content="")])
    embedded = {"model": "m-1", "embeddings": [[0.5, 1.0]], "prompt_eval_count": INPUT}
    replies = family(said(True, content=ANSWER), stream, tools, {"error": "Later"}, begun=2)
    del replies["retry"]  # its client never asks again
    return replies | {"embeddings": [json_reply(embedded)]}


def of_mistral() -> Replies:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": ARGUMENTS}}
    usage = chat()["usage"]
    whole = chunk({"content": "", "tool_calls": [{"index": 0, **call}]}, "tool_calls", usage=usage)
    embedded = {
        "id": "e-1",
        "object": "list",
        "model": "m-1",
        "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 1.0]}],
        "usage": {"prompt_tokens": INPUT, "completion_tokens": 0, "total_tokens": INPUT},
    }
    return of_chat() | {
        "tools": [sse([chunk({"role": "assistant", "content": ""}), whole], done=True)],
        "embeddings": [json_reply(embedded)],
    }


def of_together() -> Replies:
    return of_chat() | {"embeddings": of_openai()["embeddings"]}


def of_hugging_face() -> Replies:
    replies = of_chat() | {"image": of_openai()["image"]}
    del replies["retry"]  # its client never asks again
    return replies


def of_litellm() -> Replies:
    claude, gemini = of_anthropic(), of_google()
    return of_together() | {
        "image": of_openai()["image"],
        "to anthropic": claude["call"],
        "to anthropic stream": claude["stream"],
        "to anthropic retry": claude["retry"],
        "to gemini": gemini["call"],
        "to gemini stream": gemini["stream"],
    }


REPLIES: dict[str, Callable[[], Replies]] = {
    "openai": of_openai,
    "anthropic": of_anthropic,
    "google-genai": of_google,
    "bedrock": of_bedrock,
    "mistral": of_mistral,
    "cohere": of_cohere,
    "groq": of_chat,
    "ollama": of_ollama,
    "together": of_together,
    "huggingface_hub": of_hugging_face,
    "litellm": of_litellm,
    "xai": of_xai,
}
"""By SDK: the answers to each case, in order."""
