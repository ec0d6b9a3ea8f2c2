"""Streams that nobody reads to their end: held, dropped, closed, cancelled."""

from __future__ import annotations

import asyncio

import openai
import pytest
from opentelemetry.trace import StatusCode
from support.answers.client_forms import CHAT, CLAUDE, FORMS, RESPONSES, Form
from support.servers.scripted import Gate, ScriptedServer, sse_reply
from support.tapes.recorded_calls import collected, recorded_calls

from playhead_semconv import attributes as a

OPENERS = {
    "openai.chat": lambda c: c.chat.completions.create(**CHAT, stream=True),
    "openai.responses": lambda c: c.responses.create(**RESPONSES, stream=True),
    "anthropic.messages": lambda c: c.messages.create(**CLAUDE, stream=True),
}
STREAMS = [f for f in FORMS if f.name.endswith("create stream") and not f.name.startswith("beta")]
SYNC = [form for form in STREAMS if not form.asynchronous]
ASYNC = [form for form in STREAMS if form.asynchronous]
HELLO = '[{"role":"user","parts":[{"type":"text","content":"Hello"}]}]'


def first_words(form: Form, gate: Gate) -> tuple[object, int]:
    """A stream that stops at ``gate`` after its first word, and how many events come before that."""
    parts = list(form.reply().parts)
    count = next(number for number, part in enumerate(parts, 1) if b'"Hi"' in part)
    return sse_reply([*parts[:count], gate, *parts[count:]]), count


def assert_abandoned(span) -> None:
    assert span.status.status_code is StatusCode.UNSET
    assert a.ERROR_TYPE not in span.attributes
    assert span.attributes[a.PLAYHEAD_END_HOW] == "abandoned"
    assert span.attributes[a.GEN_AI_INPUT_MESSAGES] == HELLO
    assert '"content":"Hi"' in span.attributes[a.GEN_AI_OUTPUT_MESSAGES]
    assert span.attributes[a.GEN_AI_REQUEST_STREAM] is True
    assert span.attributes[a.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK] > 0


def read_first(stream) -> None:
    """Read until the first word is there."""
    for event in stream:
        if "'Hi'" in repr(event):
            return


async def aread_first(stream) -> None:
    async for event in stream:
        if "'Hi'" in repr(event):
            return


@pytest.mark.parametrize("form", SYNC, ids=str)
def test_closed(form, server, recorded):
    gate = Gate()
    reply, _ = first_words(form, gate)
    server.script([reply])
    with form.client(server) as client:
        stream = OPENERS[form.wire](client)
        read_first(stream)
        assert recorded.spans() == []
        stream.close()
        assert_abandoned(recorded.call())
    gate.open()


def test_left_when_the_message_has_ended(server, recorded):
    form = next(form for form in SYNC if form.wire == "anthropic.messages")
    *parts, stop = form.reply().parts
    assert b"message_stop" in stop
    gate = Gate()
    server.script([sse_reply([*parts, gate, stop])])
    with form.client(server) as client, OPENERS[form.wire](client) as stream:
        for event in stream:
            if event.type == "message_delta":
                break
    gate.open()
    said = recorded.call().attributes
    assert a.PLAYHEAD_END_HOW not in said and a.ERROR_TYPE not in said
    assert said[a.GEN_AI_RESPONSE_FINISH_REASONS] == ("stop",)


@pytest.mark.parametrize("form", SYNC, ids=str)
def test_left_through_a_with_block(form, server, recorded):
    gate = Gate()
    reply, _ = first_words(form, gate)
    server.script([reply])
    with form.client(server) as client:
        with OPENERS[form.wire](client) as stream:
            read_first(stream)
        assert_abandoned(recorded.call())
    gate.open()


@pytest.mark.parametrize("form", SYNC, ids=str)
def test_dropped(form, server, recorded):
    gate = Gate()
    reply, _ = first_words(form, gate)
    server.script([reply])
    with form.client(server) as client:
        stream = OPENERS[form.wire](client)
        read_first(stream)
        del stream
        collected(recorded)
        assert_abandoned(recorded.call())
    gate.open()


@pytest.mark.parametrize("form", SYNC, ids=str)
def test_held_until_the_process_ends(form, server):
    gate = Gate()
    reply, _ = first_words(form, gate)
    server.script([reply])
    with form.client(server) as client:
        with recorded_calls() as recorded:
            stream = OPENERS[form.wire](client)
            read_first(stream)
            assert [call.span.name for call in recorded.calls.open_calls()] == [f"chat {form.model}"]
            recorded.calls.abandon()
            assert_abandoned(recorded.call())
            assert recorded.calls.open_calls() == []
            gate.open()
            assert list(stream) != []
            assert len([s for s in recorded.spans() if a.GEN_AI_OPERATION_NAME in s.attributes]) == 1


@pytest.mark.parametrize("form", ASYNC, ids=str)
def test_cancelled_while_it_waits_for_the_next_event(form, server, recorded):
    gate = Gate()
    reply, _ = first_words(form, gate)
    server.script([reply])

    async def main() -> None:
        async with form.client(server) as client:

            async def read() -> None:
                async for _ in await OPENERS[form.wire](client):
                    pass

            task = asyncio.create_task(read())
            await asyncio.to_thread(gate.wait_reached)
            while b'"Hi"' not in b"".join(received(recorded)):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    gate.open()
    span = recorded.call()
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes[a.ERROR_TYPE] == "asyncio.exceptions.CancelledError"
    assert '"content":"Hi"' in span.attributes[a.GEN_AI_OUTPUT_MESSAGES]


def received(recorded) -> list[bytes]:
    """The chunks on the tape so far."""
    return [
        fact.body.inline
        for fact in list(recorded.sink.facts)
        if fact.name == "playhead.exchange.data" and fact.body is not None
    ]


@pytest.mark.parametrize("form", [form for form in FORMS if form.asynchronous], ids=str)
def test_cancelled_before_the_answer(form, server, recorded):
    never = Gate()
    server.script([form.reply(before=never)])

    async def main() -> None:
        async with form.client(server) as client:
            task = asyncio.ensure_future(form.run(client))
            await asyncio.to_thread(never.wait_reached)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    never.open()
    span = recorded.call()
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes[a.ERROR_TYPE] == "asyncio.exceptions.CancelledError"
    assert span.attributes[a.GEN_AI_INPUT_MESSAGES] == HELLO


@pytest.mark.parametrize("form", ASYNC, ids=str)
def test_async_closed(form, server, recorded):
    gate = Gate()
    reply, _ = first_words(form, gate)
    server.script([reply])

    async def main() -> None:
        async with form.client(server) as client:
            stream = await OPENERS[form.wire](client)
            await aread_first(stream)
            await stream.close()
            assert_abandoned(recorded.call())

    asyncio.run(main())
    gate.open()


@pytest.mark.parametrize("form", ASYNC, ids=str)
def test_the_loop_is_closed_over_an_open_stream(form, server, recorded):
    gate = Gate()
    reply, _ = first_words(form, gate)
    server.script([reply])
    kept = []

    async def main() -> None:
        client = form.client(server)
        stream = await OPENERS[form.wire](client)
        await aread_first(stream)
        kept.append((client, stream))

    asyncio.run(main())
    recorded.calls.abandon()
    assert_abandoned(recorded.call())
    gate.open()
    kept.clear()


def test_complete_though_the_sdk_stops_at_done(server, recorded):
    form = SYNC[0]
    server.script([sse_reply([*form.reply().parts, b": bye\n\n"])])
    with openai.OpenAI(base_url=server.openai_url, api_key="k") as client:
        assert len(list(client.chat.completions.create(**CHAT, stream=True))) == 5
    span = recorded.call()
    assert span.status.status_code is StatusCode.UNSET
    assert a.PLAYHEAD_END_HOW not in span.attributes
    assert span.attributes[a.GEN_AI_RESPONSE_FINISH_REASONS] == ("stop",)


def test_two_streams_read_in_turn(recorded):
    form = SYNC[0]
    with ScriptedServer() as server:
        server.script([form.reply(), form.reply()])
        with openai.OpenAI(base_url=server.openai_url, api_key="k") as client:
            first = client.chat.completions.create(**CHAT, stream=True)
            second = client.chat.completions.create(**CHAT, stream=True)
            for one, two in zip(first, second, strict=True):
                assert type(one) is type(two)
    calls = [span for span in recorded.spans() if a.GEN_AI_OPERATION_NAME in span.attributes]
    assert [span.status.status_code for span in calls] == [StatusCode.UNSET] * 2
    assert len({span.attributes[a.PLAYHEAD_EXCHANGE_REF] for span in calls}) == 2
