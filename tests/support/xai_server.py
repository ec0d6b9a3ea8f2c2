"""A scripted xAI: a gRPC server in a process of its own, with the messages of the real SDK.

What is asked decides what is answered: ``tools``, ``parallel``, ``schema``, ``refused``, ``failed``,
``cut``, ``held`` (it does not end), else a greeting.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def xai_server(folder: str) -> Iterator[str]:
    """Its address; ``folder``: where the SDK lies."""
    with subprocess.Popen(
        [sys.executable, __file__, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield f"127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def usage(pb: Any) -> Any:
    return pb.SamplingUsage(
        prompt_tokens=12,
        completion_tokens=5,
        total_tokens=20,
        reasoning_tokens=3,
        cached_prompt_text_tokens=4,
    )


def called(chat: Any, *cities: str) -> list[Any]:
    """Calls of the tool."""
    return [
        chat.ToolCall(
            id=f"c-{number}",
            type=chat.TOOL_CALL_TYPE_CLIENT_SIDE_TOOL,
            function=chat.FunctionCall(name="weather", arguments=f'{{"city":"{city}"}}'),
        )
        for number, city in enumerate(cities, 1)
    ]


def whole(chat: Any, counts: Any, stop: int, asked: str, calls: int) -> Any:
    """The answer in one piece."""
    text = '{"city":"Oslo"}' if asked == "schema" else "Hi there"
    said = chat.CompletionMessage(role=chat.ROLE_ASSISTANT, content=text)
    if asked == "tools":
        said = chat.CompletionMessage(role=chat.ROLE_ASSISTANT, tool_calls=called(chat, "Oslo"))
    reason = calls if asked == "tools" else stop
    output = chat.CompletionOutput(index=0, message=said, finish_reason=reason)
    return chat.GetChatCompletionResponse(id="r-1", model="grok-4-x", outputs=[output], usage=counts)


def pieces(chat: Any, counts: Any, stop: int, asked: str, calls: int) -> list[Any]:
    """The answer as a stream."""
    both = chat.Delta(role=chat.ROLE_ASSISTANT, tool_calls=called(chat, "Oslo", "Rome"))
    reason = calls if asked == "parallel" else stop
    deltas = (
        [both]
        if asked == "parallel"
        else [
            chat.Delta(role=chat.ROLE_ASSISTANT, reasoning_content="Let me think"),
            chat.Delta(role=chat.ROLE_ASSISTANT, content="Hi"),
            chat.Delta(role=chat.ROLE_ASSISTANT, content=" there"),
        ]
    )
    found = [
        chat.GetChatCompletionChunk(
            id="r-1",
            model="grok-4-x",
            outputs=[
                chat.CompletionOutputChunk(
                    index=0, delta=delta, finish_reason=reason if delta is deltas[-1] else 0
                )
            ],
        )
        for delta in deltas
    ]
    found[-1].usage.CopyFrom(counts)
    return found


def main() -> None:
    sys.path.insert(0, sys.argv[1])
    from concurrent.futures import ThreadPoolExecutor

    import grpc
    from xai_sdk.proto import (
        chat_pb2,
        chat_pb2_grpc,
        deferred_pb2,
        image_pb2,
        image_pb2_grpc,
        sample_pb2,
        usage_pb2,
    )

    counts = usage(usage_pb2)
    stop, calls = sample_pb2.REASON_STOP, sample_pb2.REASON_TOOL_CALLS
    never, looked = threading.Event(), iter((deferred_pb2.PENDING, deferred_pb2.DONE))

    class Chat(chat_pb2_grpc.ChatServicer):
        def GetCompletion(self, request: Any, context: Any) -> Any:
            asked = request.messages[-1].content[0].text
            if asked == "refused":
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, "No")
            if asked == "failed":
                context.abort(grpc.StatusCode.INTERNAL, "broken")
            if asked == "held":
                never.wait()
            return whole(chat_pb2, counts, stop, asked, calls)

        def GetCompletionChunk(self, request: Any, context: Any) -> Iterator[Any]:
            asked = request.messages[-1].content[0].text
            found = pieces(chat_pb2, counts, stop, asked, calls)
            if asked == "held":
                yield found[0]
                never.wait()
            if asked == "cut":
                yield from found[:2]
                context.abort(grpc.StatusCode.UNAVAILABLE, "gone")
            yield from found

        def StartDeferredCompletion(self, request: Any, context: Any) -> Any:
            return deferred_pb2.StartDeferredResponse(request_id="d-1")

        def GetDeferredCompletion(self, request: Any, context: Any) -> Any:
            status = next(looked)
            done = whole(chat_pb2, counts, stop, "", calls) if status == deferred_pb2.DONE else None
            return chat_pb2.GetDeferredCompletionResponse(status=status, response=done)

    class Image(image_pb2_grpc.ImageServicer):
        def GenerateImage(self, request: Any, context: Any) -> Any:
            made = image_pb2.GeneratedImage(url="https://x.test/made.png", respect_moderation=True)
            known = image_pb2.ImageResponse.DESCRIPTOR.fields_by_name  # old ones tell no usage
            used = {"usage": counts} if "usage" in known else {}
            return image_pb2.ImageResponse(images=[made], model="grok-imagine-x", **used)

    server = grpc.server(ThreadPoolExecutor(8))
    chat_pb2_grpc.add_ChatServicer_to_server(Chat(), server)
    image_pb2_grpc.add_ImageServicer_to_server(Image(), server)
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main()
