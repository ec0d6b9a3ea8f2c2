"""Batches of OpenAI and Anthropic, asked for with the real SDKs."""

import json
from typing import Any

import anthropic
import openai
import pytest
from support.answers.wires import content
from support.servers.scripted import Reply, Request, ScriptedServer, json_reply

from playhead_genai.providers import Derived, WireResponse, derive, may_be_sent_again, recognised

JSON = [("content-type", "application/json")]
LINES = [("content-type", "application/x-jsonl")]


@pytest.fixture
def server():
    with ScriptedServer() as server:
        yield server


def read(request: Request, answer: Any) -> Derived:
    wire = recognised(request.method, f"https://any.host{request.path}", request.body)
    assert wire is not None
    headers, data = (LINES, answer) if isinstance(answer, bytes) else (JSON, json.dumps(answer).encode())
    reply = WireResponse(200, headers, [data], True)
    found = derive(wire, request.body, reply, url=request.path)
    assert found.problem == "" and found.content_complete
    assert not [name for name in found.attributes if name.startswith("gen_ai.usage.")]
    return found


def again(request: Request) -> bool:
    return may_be_sent_again(request.method, f"https://any.host{request.path}", request.body)


def test_a_batch_of_openai(server):
    body = {"model": "gpt-6", "messages": [{"role": "user", "content": "Hi"}]}
    line = {"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": body}
    file = {"id": "file-1", "object": "file", "purpose": "batch", "bytes": 9, "filename": "a.jsonl"}
    batch = {
        "id": "batch_1",
        "object": "batch",
        "status": "completed",
        "model": "gpt-6",
        "endpoint": "/v1/chat/completions",
        "usage": {"input_tokens": 9},
    }
    server.script([json_reply(file), json_reply(batch), json_reply(batch)])
    with openai.OpenAI(base_url=server.openai_url, api_key="test") as gpt:
        lines = json.dumps(line).encode() + b"\n" + json.dumps(line).encode() + b"\n"
        gpt.files.create(file=("a.jsonl", lines), purpose="batch")
        gpt.batches.create(
            input_file_id="file-1", endpoint="/v1/chat/completions", completion_window="24h"
        )
        gpt.batches.retrieve("batch_1")
    uploaded, begun, fetched = server.requests
    found = read(uploaded, file)
    assert found.operation == "upload_batch"
    assert (found.request_model, found.attributes["gen_ai.response.id"]) == ("gpt-6", "file-1")
    assert read(begun, batch).operation == "create_batch"
    found = read(fetched, batch)
    assert found.operation == "fetch_batch"
    assert [again(one) for one in server.requests] == [False, False, True]
    assert found.attributes["gen_ai.response.model"] == "gpt-6"


def test_a_batch_of_anthropic(server):
    params = {
        "model": "claude-opus-5",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Hi"}],
    }
    batch = {"id": "msgbatch_1", "type": "message_batch", "processing_status": "ended"}
    batch["results_url"] = f"{server.url}/v1/messages/batches/msgbatch_1/results"
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5",
        "content": [{"type": "text", "text": "Hello"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }
    results: list[Any] = [
        {"custom_id": "a", "result": {"type": "succeeded", "message": message}},
        {"custom_id": "b", "result": {"type": "expired"}},
    ]
    lines = b"".join(json.dumps(result).encode() + b"\n" for result in results)
    server.script([json_reply(batch), json_reply(batch), json_reply(batch), Reply([lines], 200, LINES)])
    with anthropic.Anthropic(base_url=server.url, api_key="test") as claude:
        asked: Any = [{"custom_id": name, "params": params} for name in "ab"]
        claude.messages.batches.create(requests=asked)
        claude.messages.batches.retrieve("msgbatch_1")
        got = [one.custom_id for one in claude.messages.batches.results("msgbatch_1")]
        assert got == ["a", "b"]
    begun, fetched, *_, last = server.requests
    found = read(begun, batch)
    assert found.operation == "create_batch"
    assert found.request_model == "claude-opus-5"
    assert [one["custom_id"] for one in content(found, "input.messages")] == ["a", "b"]
    assert content(found, "input.messages")[0]["parts"] == [{"type": "text", "content": "Hi"}]
    assert read(fetched, batch).operation == "fetch_batch"
    found = read(last, lines)
    assert found.operation == "fetch_response"
    (answer,) = content(found, "output.messages")
    assert (answer["custom_id"], answer["parts"][0]["content"]) == ("a", "Hello")
    assert [again(one) for one in (begun, fetched, last)] == [False, True, True]
    assert found.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    assert found.attributes["gen_ai.response.model"] == "claude-opus-5"


def test_results_that_end_within_a_line():
    results = {"custom_id": "a", "result": {"type": "expired"}}
    line = json.dumps(results).encode()
    wire = "anthropic.batch_results"
    for data, whole in ((line, True), (line + b"\n", True), (line + b"\n{brok", False)):
        found = derive(wire, b"", WireResponse(200, LINES, [data], True))
        assert found.content_complete is whole
        assert found.problem == ("" if whole else "the stream ended early")
