"""Every call form of both SDKs, by what became of the call: the span of the logical call, exactly."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import openai
import pytest
from opentelemetry.trace import SpanKind, StatusCode
from support.answers.client_forms import FORMS, JSON_TEXT, STREAMS, Form
from support.servers.scripted import Gate, Reply, raw_reply, sse, sse_reply
from support.tapes.recorded_calls import collected

from playhead_semconv import attributes as a

TEXT = '[{"role":"%s","parts":[{"type":"text","content":%s}]}]'
HELLO = TEXT % ("user", '"Hello"')

ANSWERS: dict[str, dict[str, Any]] = {
    "openai.chat": {
        a.GEN_AI_RESPONSE_ID: "chatcmpl-1",
        a.GEN_AI_RESPONSE_MODEL: "gpt-4o-2024-08-06",
        a.OPENAI_RESPONSE_SERVICE_TIER: "default",
        a.OPENAI_RESPONSE_SYSTEM_FINGERPRINT: "fp_scripted",
        a.GEN_AI_USAGE_INPUT_TOKENS: 12,
        a.GEN_AI_USAGE_OUTPUT_TOKENS: 5,
        a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: 0,
        a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: 0,
        a.GEN_AI_RESPONSE_FINISH_REASONS: ("stop",),
    },
    "openai.responses": {
        a.GEN_AI_RESPONSE_ID: "resp_1",
        a.GEN_AI_RESPONSE_MODEL: "gpt-5-2025-08-07",
        a.GEN_AI_USAGE_INPUT_TOKENS: 20,
        a.GEN_AI_USAGE_OUTPUT_TOKENS: 8,
        a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: 0,
        a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: 0,
        a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: 0,
        a.GEN_AI_RESPONSE_FINISH_REASONS: ("stop",),
    },
    "openai.embeddings": {
        a.GEN_AI_RESPONSE_MODEL: "text-embedding-3-small",
        a.GEN_AI_EMBEDDINGS_DIMENSION_COUNT: 2,
        a.GEN_AI_USAGE_INPUT_TOKENS: 8,
    },
    "anthropic.messages": {
        a.GEN_AI_RESPONSE_ID: "msg_01",
        a.GEN_AI_RESPONSE_MODEL: "claude-sonnet-5-5",
        a.GEN_AI_USAGE_INPUT_TOKENS: 15,
        a.GEN_AI_USAGE_OUTPUT_TOKENS: 7,
        a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: 0,
        a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: 0,
        a.GEN_AI_RESPONSE_FINISH_REASONS: ("stop",),
    },
}
"""What a good answer says, by wire."""


def perform(form: Form, client: Any) -> None:
    """Make the call and read its answer, in an event loop where the form is async."""
    if not form.asynchronous:
        with client:
            form.run(client)
        return

    async def main() -> None:
        async with client:
            await form.run(client)

    asyncio.run(main())


def asked(form: Form, port: int) -> dict[str, Any]:
    """Attributes that the request alone gives."""
    found: dict[str, Any] = {
        a.GEN_AI_OPERATION_NAME: "embeddings" if form.wire == "openai.embeddings" else "chat",
        a.GEN_AI_REQUEST_MODEL: form.model,
        a.SERVER_ADDRESS: "127.0.0.1",
        a.SERVER_PORT: port,
        a.GEN_AI_INPUT_MESSAGES: HELLO,
    }
    if form.wire == "openai.chat":
        found[a.OPENAI_API_TYPE] = "chat_completions"
    elif form.wire == "openai.responses":
        found[a.OPENAI_API_TYPE] = "responses"
    elif form.wire == "openai.embeddings":
        found[a.GEN_AI_REQUEST_ENCODING_FORMATS] = ("base64",)
    elif form.wire == "anthropic.messages":
        found[a.GEN_AI_REQUEST_MAX_TOKENS] = 64
    if form.streamed:
        found[a.GEN_AI_REQUEST_STREAM] = True
    if form.name.endswith(" parse"):
        found[a.GEN_AI_OUTPUT_TYPE] = "json"
    return found


def answered(form: Form) -> dict[str, Any]:
    """Attributes of a good answer."""
    found = dict(ANSWERS[form.wire])
    if form.wire != "openai.embeddings":
        text = '"Hi there"' if form.text != JSON_TEXT else '"{\\"city\\":\\"Oslo\\"}"'
        found[a.GEN_AI_OUTPUT_MESSAGES] = TEXT % ("assistant", text)
    return found


def ended_call(recorded: Any) -> Any:
    """The span of a call whose stream is abandoned: openai 1.x leaves the response open."""
    collected(recorded)
    return recorded.call()


OF_THE_TAPE = (a.PLAYHEAD_EXCHANGE_REF, a.PLAYHEAD_RESTS_ON, a.PLAYHEAD_WIRE, a.PLAYHEAD_DERIVED)


def checked(span: Any, recorded: Any, form: Form) -> dict[str, Any]:
    """The attributes of ``span``, after those that vary were checked and taken out."""
    left = dict(span.attributes)
    assert span.kind is SpanKind.CLIENT
    assert span.name == f"{left[a.GEN_AI_OPERATION_NAME]} {form.model}"
    if form.streamed and left.get(a.GEN_AI_REQUEST_STREAM):
        waited = left.pop(a.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK)
        assert 0 < waited <= (span.end_time - span.start_time) / 1e9
    tape = {name: left.pop(name) for name in OF_THE_TAPE}
    *_, last = recorded.sink.tape.exchanges().values()
    assert tape[a.PLAYHEAD_WIRE] == form.wire
    assert tape[a.PLAYHEAD_EXCHANGE_REF] == f"{recorded.sink.instance.hex()}/{last.id}"
    assert tape[a.PLAYHEAD_RESTS_ON] == last.last_seq
    content = (a.GEN_AI_INPUT_MESSAGES, a.GEN_AI_OUTPUT_MESSAGES)
    assert tape[a.PLAYHEAD_DERIVED] == tuple(name for name in content if name in left)
    attempts = recorded.attempts()
    assert [attempt.parent.span_id for attempt in attempts] == [span.context.span_id] * len(attempts)
    assert span.start_time <= attempts[0].start_time
    assert span.end_time >= attempts[-1].start_time
    return left


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_success(form, server, recorded):
    server.script([form.reply()])
    perform(form, form.client(server))
    span = recorded.call()
    assert checked(span, recorded, form) == asked(form, server.port) | answered(form)
    assert span.status.status_code is StatusCode.UNSET
    assert len(recorded.attempts()) == 1


def without_answer(form: Form, port: int) -> dict[str, Any]:
    """What is known when no stream came: the request's own ``stream`` stays where the wire has it."""
    found = asked(form, port)
    if form.wire == "openai.responses":
        found.pop(a.GEN_AI_REQUEST_STREAM, None)
    return found


STATUS_ERRORS = {
    "openai": ("invalid_value", "Invalid value for 'temperature'.", openai.BadRequestError),
    "anthropic": (
        "invalid_request_error",
        "max_tokens: Field required",
        anthropic.BadRequestError,
    ),
}


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_refused_with_a_4xx(form, server, recorded):
    server.script([form.error(400)])
    kind, message, raised = STATUS_ERRORS[form.sdk]
    with pytest.raises(raised):
        perform(form, form.client(server))
    span = recorded.call()
    left = dict(span.attributes)
    for name in OF_THE_TAPE:
        left.pop(name)
    assert left.pop(a.ERROR_TYPE) == kind
    left.pop(a.GEN_AI_REQUEST_STREAM, None)
    expected = asked(form, server.port)
    expected.pop(a.GEN_AI_REQUEST_STREAM, None)
    assert left == expected
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, message)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_429_then_200_is_one_call_of_two_attempts(form, server, recorded):
    server.script([form.error(429), form.reply()])
    perform(form, form.client(server))
    span = recorded.call()
    assert checked(span, recorded, form) == asked(form, server.port) | answered(form)
    assert span.status.status_code is StatusCode.UNSET
    attempts = recorded.attempts()
    assert [attempt.attributes[a.HTTP_RESPONSE_STATUS_CODE] for attempt in attempts] == [429, 200]
    assert [attempt.attributes.get(a.HTTP_REQUEST_RESEND_COUNT) for attempt in attempts] == [None, 1]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_timeout(form, server, recorded):
    never = Gate()
    server.script([form.reply(before=never)])
    client = form.client(server, timeout=0.05, max_retries=0)
    sdk = openai if form.sdk == "openai" else anthropic
    with pytest.raises(sdk.APITimeoutError):
        perform(form, client)
    span = recorded.call()
    assert span.attributes[a.ERROR_TYPE] == f"{form.sdk}.APITimeoutError"
    assert span.attributes[a.GEN_AI_INPUT_MESSAGES] == HELLO
    assert a.GEN_AI_OUTPUT_MESSAGES not in span.attributes
    assert span.status.status_code is StatusCode.ERROR
    assert span.end_time - span.start_time >= 50_000_000


def half(form: Form, **fields: Any) -> Reply:
    """The beginning of the form's stream."""
    parts = list(form.reply().parts)
    return sse_reply(parts[: len(parts) // 2], **fields)


@pytest.mark.parametrize("form", STREAMS, ids=str)
def test_stream_that_breaks_off(form, server, recorded):
    """The connection is closed before the last chunk: the transport says so."""
    size = sum(len(part) for part in half(form).parts)
    server.script([form.reply(truncate_at=size)])
    with pytest.raises(Exception) as caught:
        perform(form, form.client(server, max_retries=0))
    span = recorded.call()
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes[a.ERROR_TYPE] in ("httpx2.RemoteProtocolError", "httpx.RemoteProtocolError")
    assert caught.type.__name__ in ("APIConnectionError", "RemoteProtocolError")
    assert span.attributes[a.GEN_AI_REQUEST_STREAM] is True


@pytest.mark.parametrize("form", STREAMS, ids=str)
def test_stream_that_ends_too_early(form, server, recorded):
    """HTTP is whole, the content is not: most SDKs take it for the end."""
    server.script([half(form)])
    try:
        perform(form, form.client(server, max_retries=0))
    except Exception as error:
        assert type(error).__module__.partition(".")[0] in ("openai", "anthropic", "builtins")
    span = recorded.call()
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes[a.ERROR_TYPE] == "truncated_response"


@pytest.mark.parametrize("form", STREAMS, ids=str)
def test_malformed_event(form, server, recorded):
    parts = list(form.reply().parts)
    broken = (
        b"event: message_delta\ndata: {broken\n\n" if form.sdk == "anthropic" else b"data: {broken\n\n"
    )
    server.script([sse_reply([*parts[:2], broken, *parts[2:]])])
    with pytest.raises(ValueError):
        perform(form, form.client(server, max_retries=0))
    span = ended_call(recorded)
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes[a.ERROR_TYPE] == "malformed_response"


@pytest.mark.parametrize("form", [form for form in FORMS if not form.streamed], ids=str)
def test_malformed_body(form, server, recorded):
    server.script([Reply([b'{"id": "x", '], 200, [("content-type", "application/json")])])
    try:
        perform(form, form.client(server, max_retries=0))
    except Exception as error:
        assert isinstance(error, ValueError) or "JSON" in repr(error)
        kind = type(error)
        name = (
            kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        )
        expected = {name, "malformed_response"}
    else:
        expected = {"malformed_response"}
    span = recorded.call()
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes[a.ERROR_TYPE] in expected


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_connection_that_is_cut_without_an_answer(form, server, recorded):
    server.script([raw_reply(b"")])
    sdk = openai if form.sdk == "openai" else anthropic
    with pytest.raises(sdk.APIConnectionError):
        perform(form, form.client(server, max_retries=0))
    span = recorded.call()
    assert span.attributes[a.ERROR_TYPE] == f"{form.sdk}.APIConnectionError"
    assert span.status.description == "Connection error."


ERROR_EVENTS = {
    "openai.chat": sse.data({"error": {"message": "Overloaded", "type": "server_error", "code": None}}),
    "anthropic.messages": sse.named(
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    ),
}


@pytest.mark.parametrize("form", [f for f in STREAMS if f.wire in ERROR_EVENTS], ids=str)
def test_error_that_comes_as_an_event(form, server, recorded):
    parts = list(form.reply().parts)
    server.script([sse_reply([*parts[:2], ERROR_EVENTS[form.wire]])])
    sdk = openai if form.sdk == "openai" else anthropic
    with pytest.raises(sdk.APIError):
        perform(form, form.client(server, max_retries=0))
    span = ended_call(recorded)
    kind = "server_error" if form.sdk == "openai" else "overloaded_error"
    assert span.attributes[a.ERROR_TYPE] == kind
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "Overloaded")


def test_the_answer_tells_the_provider(server, recorded):
    form = FORMS[0]
    server.script([form.reply(headers={"openai-processing-ms": "12"})])
    perform(form, form.client(server))
    assert recorded.call().attributes[a.GEN_AI_PROVIDER_NAME] == "openai"
