"""What xAI answers over gRPC to each case, in messages of the real SDK. It has to be on the path."""

from __future__ import annotations

import json
from typing import Any

import grpc
from support.answers.sdk_answers import TOOL, Said
from support.answers.sdk_table import HI, SAYS, STREAMED
from support.servers.scripted import Gate, sse
from support.servers.scripted_grpc import GrpcReply
from xai_sdk.proto import chat_pb2, deferred_pb2, image_pb2, sample_pb2, usage_pb2

MADE = "https://x.test/made.png"
"""Where a picture lies that was made."""

Status = grpc.StatusCode
Finish: Any = sample_pb2
Chat: Any = chat_pb2


def replies(case: str) -> list[GrpcReply]:
    """What the server answers."""
    said = SAYS.get(case, HI)
    first, *others = pieces(said)
    held = GrpcReply([first, Gate()])
    return {
        "refused": [GrpcReply((), Status.INVALID_ARGUMENT, "No")],
        "failed": [GrpcReply((), Status.INTERNAL, "broken")],
        "again": [GrpcReply((), Status.UNAVAILABLE, "later"), GrpcReply([whole(said)])],
        "timeout": [GrpcReply([Gate()])],
        "async timeout": [GrpcReply([Gate()])],
        "cut": [GrpcReply([first], Status.UNAVAILABLE, "gone")],
        "async cut": [GrpcReply([first], Status.UNAVAILABLE, "gone")],
        "malformed": [GrpcReply([first, NONSENSE, Gate()])],
        "malformed answer": [GrpcReply([NONSENSE])],
        "abandoned": [held],
        "cancelled": [held],
        "closed": [held],
        "gone": [held, GrpcReply(hangs_up=True), GrpcReply([whole(said)])],
        "async gone": [held, GrpcReply(hangs_up=True), GrpcReply([whole(said)])],
        "deferred": [GrpcReply([one]) for one in deferred(said)],
        "picture": [GrpcReply([picture()])],
    }.get(case) or [GrpcReply([first, *others] if case in STREAMED else [whole(said)])]


NONSENSE = b"\x0a\xff"
"""Bytes that are no message."""


def whole(said: Said) -> bytes:
    """An answer in one piece."""
    return answer(said).SerializeToString()


def answer(said: Said) -> Any:
    """The same, before it is bytes."""
    message = Chat.CompletionMessage(**fields(said))
    output = Chat.CompletionOutput(index=0, message=message, finish_reason=reason(said))
    return Chat.GetChatCompletionResponse(id="r-1", model="m-1", outputs=[output], usage=used())


def pieces(said: Said) -> list[bytes]:
    """An answer as a stream."""
    spoken = [Said(reasoning=said.reasoning)] if said.reasoning else []
    spoken += [Said(one) for one in sse.pieces(said.text)] if said.text else []
    spoken += [Said(calls=said.calls)] if said.calls else []
    found: list[bytes] = []
    for number, one in enumerate(spoken, 1):
        last = number == len(spoken)
        output = Chat.CompletionOutputChunk(
            index=0, delta=Chat.Delta(**fields(one)), finish_reason=reason(said) if last else 0
        )
        chunk = Chat.GetChatCompletionChunk(id="r-1", model="m-1", outputs=[output])
        if last:
            chunk.usage.CopyFrom(used())
        found.append(chunk.SerializeToString())
    return found


def deferred(said: Said) -> list[bytes]:
    """An answer that is begun, not there yet, and then there."""
    fetched: Any = Chat.GetDeferredCompletionResponse
    statuses: Any = deferred_pb2
    return [
        statuses.StartDeferredResponse(request_id="d-1").SerializeToString(),
        fetched(status=statuses.PENDING).SerializeToString(),
        fetched(status=statuses.DONE, response=answer(said)).SerializeToString(),
    ]


def picture() -> bytes:
    """An answer with a picture."""
    images: Any = image_pb2
    made = images.GeneratedImage(url=MADE)
    return images.ImageResponse(images=[made], model="m-1", usage=used()).SerializeToString()


def fields(said: Said) -> dict[str, Any]:
    """The fields of a message, or of a piece of one."""
    return {
        "role": Chat.ROLE_ASSISTANT,
        "content": said.text,
        "reasoning_content": said.reasoning,
        "tool_calls": [called(*one) for one in said.calls],
    }


def called(id: str, arguments: dict[str, Any]) -> Any:
    """A call of the tool."""
    function = Chat.FunctionCall(name=TOOL, arguments=json.dumps(arguments))
    return Chat.ToolCall(id=id, type=Chat.TOOL_CALL_TYPE_CLIENT_SIDE_TOOL, function=function)


def reason(said: Said) -> Any:
    """Why an answer ended."""
    return Finish.REASON_TOOL_CALLS if said.calls else Finish.REASON_STOP


def used() -> Any:
    """The tokens of an answer."""
    counts: Any = usage_pb2
    return counts.SamplingUsage(prompt_tokens=12, completion_tokens=5, total_tokens=17)
