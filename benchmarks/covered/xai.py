"""xAI over gRPC: what it answers to each case, and the server that says it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

import grpc
from support.servers.scripted import Reply
from support.servers.scripted_grpc import GrpcReply, ScriptedGrpc

from covered.words import ANSWER, ARGUMENT, INPUT, OUTPUT, THOUGHT, cut

REFUSED = 400
"""Status of a reply that is no answer."""


def of_xai() -> dict[str, list[Reply]]:
    """The answers to each case: a message is a part of a reply. The SDK has to be importable."""
    from xai_sdk.proto import chat_pb2, sample_pb2, usage_pb2

    usage = usage_pb2.SamplingUsage(
        prompt_tokens=INPUT, completion_tokens=OUTPUT, total_tokens=INPUT + OUTPUT
    )
    stop, calls = sample_pb2.REASON_STOP, sample_pb2.REASON_TOOL_CALLS

    def whole(**message: Any) -> Reply:
        said = chat_pb2.CompletionMessage(role=chat_pb2.ROLE_ASSISTANT, **message)
        output = chat_pb2.CompletionOutput(index=0, message=said, finish_reason=stop)
        answer = chat_pb2.GetChatCompletionResponse(id="r-1", model="m-1", outputs=[output], usage=usage)
        return Reply([answer.SerializeToString()])

    def streamed(deltas: list[Any], reason: int) -> Reply:
        parts: list[bytes] = []
        for number, delta in enumerate(deltas, 1):
            last = number == len(deltas)
            output = chat_pb2.CompletionOutputChunk(
                index=0, delta=delta, finish_reason=reason if last else 0
            )
            one = chat_pb2.GetChatCompletionChunk(id="r-1", model="m-1", outputs=[output])
            if last:
                one.usage.CopyFrom(usage)
            parts.append(one.SerializeToString())
        return Reply(parts)

    def delta(**fields: Any) -> Any:
        return chat_pb2.Delta(role=chat_pb2.ROLE_ASSISTANT, **fields)  # it is in each of a stream

    texts = [delta(content=piece) for piece in cut(ANSWER)]
    function = chat_pb2.FunctionCall(name="f", arguments=json.dumps({"city": ARGUMENT}))
    called = delta(tool_calls=[chat_pb2.ToolCall(id="call_1", function=function)])
    stream = streamed([delta(), *texts, delta()], stop)
    begun = sum(len(part) for part in stream.parts[:3] if isinstance(part, bytes))
    return {
        "call": [whole(content=ANSWER)],
        "stream": [stream],
        "tools": [streamed([delta(), called], calls)],
        "error": [Reply(status=REFUSED)],
        "truncated": [stream.but(truncate_at=begun)],
        "abandoned": [stream],
        "closed": [stream],
        "reasoning": [whole(content=ANSWER, reasoning_content=THOUGHT)],
        "image": [whole(content=ANSWER)],
        "structured": [whole(content=json.dumps({"city": ANSWER}))],
    }


@contextmanager
def xai_server(replies: dict[str, list[Reply]]) -> Iterator[str]:
    """The address of a server on loopback that answers each case once, in order."""
    with ScriptedGrpc() as server:
        server.script(_over_grpc(one) for (one,) in replies.values())
        yield server.target


def _over_grpc(reply: Reply) -> GrpcReply:
    messages = [part for part in reply.parts if isinstance(part, bytes)]
    if reply.status == REFUSED:
        return GrpcReply((), grpc.StatusCode.INVALID_ARGUMENT, "Later")
    if reply.truncate_at is None:
        return GrpcReply(messages)
    sizes = accumulate(map(len, messages))
    came = [one for one, size in zip(messages, sizes, strict=True) if size <= reply.truncate_at]
    return GrpcReply(came, grpc.StatusCode.UNAVAILABLE, "gone")
