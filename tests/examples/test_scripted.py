"""The scripted server and the provider shapes, read by the real SDKs."""

import socket
import threading

import anthropic
import httpx2
import openai
import pytest
from support.servers.scripted import (
    Gate,
    Reply,
    ScriptedServer,
    anthropic_error,
    anthropic_messages,
    anthropic_sse,
    chat_sse,
    hang_up,
    json_reply,
    openai_chat,
    openai_embeddings,
    openai_error,
    openai_responses,
    raw_reply,
    responses_sse,
    sse,
    sse_reply,
)

HELLO = [{"role": "user", "content": "hello"}]


@pytest.fixture
def server():
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def gpt(server):
    with openai.OpenAI(base_url=server.openai_url, api_key="test") as client:
        yield client


@pytest.fixture
def claude(server):
    with anthropic.Anthropic(base_url=server.url, api_key="test") as client:
        yield client


def chat(client, **more):
    return client.chat.completions.create(model="gpt-4o", messages=HELLO, **more)


def test_chat_completion_with_parallel_tool_calls(server, gpt):
    calls = [
        openai_chat.tool_call("call_1", "weather", {"city": "Oslo"}),
        openai_chat.tool_call("call_2", "weather", {"city": "Rome"}),
    ]
    usage = openai_chat.usage(30, 9, cached=10, reasoning=4)
    server.script([json_reply(openai_chat.completion(tool_calls=calls, usage=usage))])
    answer = chat(gpt)
    assert [call.function.arguments for call in answer.choices[0].message.tool_calls] == [
        '{"city": "Oslo"}',
        '{"city": "Rome"}',
    ]
    assert answer.choices[0].finish_reason == "tool_calls"
    assert answer.usage.prompt_tokens_details.cached_tokens == 10
    assert answer.usage.completion_tokens_details.reasoning_tokens == 4
    assert answer.model_extra == {}
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.json == {"messages": HELLO, "model": "gpt-4o"}
    assert request.headers["authorization"] == "Bearer test"


@pytest.mark.parametrize("gzip", [False, True])
def test_chat_stream_folds_to_the_whole(server, gpt, gzip):
    whole = openai_chat.completion(
        choices=[
            openai_chat.choice("it reads well"),
            openai_chat.choice(refusal="I cannot do that"),
            openai_chat.choice(
                "both", tool_calls=[openai_chat.tool_call("c", "f", {"a": "b c", "d": 1})]
            ),
        ]
    )
    server.script([chat_sse(whole, gzip=gzip)])
    with gpt.chat.completions.stream(
        model="gpt-4o", messages=HELLO, n=3, stream_options={"include_usage": True}
    ) as stream:
        final = stream.get_final_completion()
    for got, want in zip(final.choices, whole["choices"], strict=True):
        assert got.finish_reason == want["finish_reason"]
        assert got.message.content == want["message"]["content"]
        assert got.message.refusal == want["message"]["refusal"]
    call = final.choices[2].message.tool_calls[0]
    assert (call.id, call.function.name, call.function.arguments) == ("c", "f", '{"a": "b c", "d": 1}')
    assert final.usage.to_dict() == whole["usage"]


def test_responses_whole_and_streamed(server, gpt):
    whole = openai_responses.response(
        [
            openai_responses.reasoning("think of it", encrypted_content="gAAAA"),
            openai_responses.function_call("call_1", "refund", {"order": 81}),
            openai_responses.message("I refunded it"),
            openai_responses.message(refusal="not that one", id="msg_2"),
        ]
    )
    server.script([json_reply(whole), responses_sse(whole)])
    direct = gpt.responses.create(model="gpt-5", input="refund 81")
    with gpt.responses.stream(model="gpt-5", input="refund 81") as stream:
        kinds = [event.type for event in stream]
        streamed = stream.get_final_response()
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
    assert kinds.count("response.reasoning_summary_text.delta") == 3
    assert [item.type for item in streamed.output] == [
        "reasoning",
        "function_call",
        "message",
        "message",
    ]
    assert streamed.output[0].encrypted_content == "gAAAA"
    assert streamed.output_text == direct.output_text == "I refunded it"
    assert [item.to_dict() for item in direct.output] == whole["output"]
    assert streamed.output[1].arguments == '{"order": 81}'
    assert streamed.output[3].content[0].refusal == "not that one"


def test_embeddings_in_both_encodings(server, gpt):
    vectors = [[0.5, -1.0], [0.25, 2.0]]
    server.script(
        [
            json_reply(openai_embeddings.embeddings(vectors)),
            json_reply(openai_embeddings.embeddings(vectors, as_base64=False)),
        ]
    )
    for encoding in (openai.omit, "float"):
        answer = gpt.embeddings.create(
            model="text-embedding-3-small", input=["a", "b"], encoding_format=encoding
        )
        assert [one.embedding for one in answer.data] == vectors
    assert [request.json["encoding_format"] for request in server.requests] == ["base64", "float"]


def test_message_whole_and_streamed(server, claude):
    whole = anthropic_messages.message(
        [
            anthropic_messages.thinking("let me see"),
            anthropic_messages.text("I look it up"),
            anthropic_messages.tool_use("toolu_1", "search", {"query": "tea and cake"}),
        ],
        usage=anthropic_messages.usage(15, 40, cache_read=100, cache_write=3),
    )
    server.script([json_reply(whole), anthropic_sse(whole)])
    asked = {"model": "claude-sonnet-5-5", "max_tokens": 64, "messages": HELLO}
    direct = claude.messages.create(**asked)
    with claude.messages.stream(**asked) as stream:
        streamed = stream.get_final_message()
    assert streamed.to_dict()["content"] == direct.to_dict()["content"] == whole["content"]
    assert streamed.stop_reason == direct.stop_reason == "tool_use"
    assert streamed.usage.output_tokens == 40
    assert streamed.usage.cache_read_input_tokens == 100


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
    ],
)
def test_openai_errors(server, gpt, status, error):
    server.script([openai_error(status, {})])
    with pytest.raises(error) as caught:
        chat(gpt.with_options(max_retries=0))
    assert caught.value.body["message"] in str(caught.value)


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (401, anthropic.AuthenticationError, "authentication_error"),
        (429, anthropic.RateLimitError, "rate_limit_error"),
        (529, anthropic.InternalServerError, "overloaded_error"),
    ],
)
def test_anthropic_errors(server, claude, status, error, kind):
    server.script([anthropic_error(status)])
    with pytest.raises(error) as caught:
        claude.with_options(max_retries=0).messages.create(
            model="claude-sonnet-5-5", max_tokens=9, messages=HELLO
        )
    assert caught.value.body["error"]["type"] == kind


def test_a_429_is_retried_at_once(server, gpt, claude):
    server.on(
        "/v1/chat/completions", openai_error(429), json_reply(openai_chat.completion("second time"))
    )
    server.on(
        "/v1/messages", anthropic_error(529), json_reply(anthropic_messages.message("second time"))
    )
    assert chat(gpt).choices[0].message.content == "second time"
    said = claude.messages.create(model="claude-sonnet-5-5", max_tokens=9, messages=HELLO)
    assert said.content[0].text == "second time"
    assert [request.headers["x-stainless-retry-count"] for request in server.requests] == list("0101")


def test_chunk_boundaries_and_gates(server):
    gate, before = Gate(), Gate()
    server.script([sse_reply([b"one", b"two", gate, b"three"], before=before)])
    seen: list[bytes] = []

    def read() -> None:
        with httpx2.stream("GET", server.url, timeout=60) as response:
            seen.extend(response.iter_raw())

    reader = threading.Thread(target=read)
    reader.start()
    before.wait_reached()
    assert seen == []
    before.open()
    gate.wait_reached()
    gate.open()
    reader.join()
    assert seen == [b"one", b"two", b"three"]


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_truncated_body(server, framing):
    server.script([Reply([b"12345", b"67890"], framing=framing, truncate_at=7)])
    got = b""
    with httpx2.stream("GET", server.url, timeout=60) as response:
        with pytest.raises(httpx2.RemoteProtocolError):
            for piece in response.iter_raw():
                got += piece
    assert got == b"1234567"


def test_reset_garbage_and_hang_up(server):
    server.script([Reply([b"x"], truncate_at=0, end="reset"), raw_reply(b"\x00\x01nonsense"), hang_up()])
    with pytest.raises(httpx2.ReadError):
        httpx2.get(server.url, timeout=60)
    with pytest.raises(httpx2.RemoteProtocolError):
        httpx2.get(server.url, timeout=60)
    with pytest.raises(httpx2.RemoteProtocolError):
        httpx2.get(server.url, timeout=60)
    assert server.connections == 3


def test_a_body_that_ends_with_the_connection(server):
    server.script([Reply([b"a", b"b"], framing="close"), Reply([b"c"])])
    with httpx2.Client(timeout=60) as client:
        assert client.get(server.url).content == b"ab"
        assert client.get(server.url).content == b"c"
    assert [request.connection for request in server.requests] == [0, 1]


def test_keep_alive_and_chunked_request(server):
    server.script([Reply([b"a"]), lambda request: Reply([request.body[::-1]])])
    with httpx2.Client(timeout=60, limits=httpx2.Limits(keepalive_expiry=60)) as client:
        client.get(server.url)
        assert client.post(server.url, content=iter([b"ab", b"cd"])).content == b"dcba"
    assert server.connections == 1
    assert [request.body for request in server.requests] == [b"", b"abcd"]


def test_malformed_event_reaches_the_sdk(server, gpt):
    server.script([sse_reply([b"data: {broken\n\n", sse.DONE])])
    with pytest.raises(ValueError, match="property name"):
        list(chat(gpt, stream=True))


def test_rules_in_order_and_repeat(server):
    server.on("/a", Reply([b"1"]))
    server.on("/a", Reply([b"2"]), Reply([b"3"]), repeat=True)
    assert [httpx2.get(server.url + "/a?q=1", timeout=60).text for _ in range(4)] == ["1", "2", "3", "3"]


def test_what_is_not_scripted_fails_the_block():
    with pytest.raises(AssertionError, match="no script answers: GET /nowhere"):
        with ScriptedServer() as server:
            assert httpx2.get(server.url + "/nowhere", timeout=60).status_code == 599


def test_closed_server_refuses(server):
    server.script([Reply([b"x"])])
    with httpx2.Client(timeout=60) as client:
        client.get(server.url)
        server.close()
        with socket.socket() as held:  # so that nobody else listens there
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind(("127.0.0.1", server.port))
            with pytest.raises(httpx2.TransportError):
                client.get(server.url)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", server.port))


def test_waiting_for_requests(server):
    server.script([Reply([b"x"])], repeat=True)
    thread = threading.Thread(target=lambda: [httpx2.get(server.url, timeout=60) for _ in range(3)])
    thread.start()
    assert len(server.wait_requests(3)) == 3
    thread.join()
