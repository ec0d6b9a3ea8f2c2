"""Each case with each SDK: one span of one call, exactly, and every byte on the tape."""

from __future__ import annotations

import gc
from importlib import import_module
from typing import Any

import pytest
from opentelemetry.trace import StatusCode
from support.answers.sdk_expected import FAILED, expected, settled, whole
from support.answers.sdk_table import SDKS, Sdk, replies
from support.sdks.cases import MODEL, perform
from support.servers.scripted import Reply, ScriptedServer
from support.starting.running import until
from support.tapes.recorded_calls import Recorded

from playhead_semconv import attributes as a

SHORT = frozenset(("plain", "stream", "again"))
"""Cases that every run of the suite has; the others are for acceptance."""


def combinations() -> list[Any]:
    return [
        pytest.param(
            name, case, id=f"{name} {case}", marks=[] if case in SHORT else [pytest.mark.acceptance]
        )
        for name, sdk in SDKS.items()
        for case in sdk.cases
    ]


@pytest.mark.parametrize(("name", "case"), combinations())
def test_a_call(name: str, case: str, server: ScriptedServer, recorded: Recorded):
    sdk, answers = SDKS[name], replies(SDKS[name], case)
    server.script(answers)
    module, _, kind = sdk.adapter.partition(":")
    ask = getattr(import_module(f"support.sdks.{module}"), kind)
    gc.freeze()  # litellm alone is most of what a collection would look at
    done = perform(ask, server.url, case)
    server.close()
    until(lambda: is_over(recorded), "the call is over")
    span: Any = recorded.call()
    attempts: Any = recorded.attempts()
    if case in FAILED:
        assert done.endswith(("Error", "Timeout", "Exception"))
    left = settled(dict(span.attributes), sdk, case, (span.end_time - span.start_time) / 1e9)
    assert left == expected(sdk, case, server.port)
    assert span.name == f"{sdk.operation} {MODEL}"
    failed = a.ERROR_TYPE in span.attributes
    assert span.status.status_code is (StatusCode.ERROR if failed else StatusCode.UNSET)
    assert [one.parent.span_id for one in attempts] == [span.context.span_id] * len(answers)
    resent = [one.attributes.get(a.HTTP_REQUEST_RESEND_COUNT, 0) for one in attempts]
    assert resent == list(range(len(answers)))
    told_as_it_was(recorded, server, answers, sdk, case)


def is_over(recorded: Recorded) -> bool:
    """Whether no call is open. litellm's logging may hold on to a stream for a moment."""
    return not recorded.calls.open_calls() or (gc.collect() >= 0 and not recorded.calls.open_calls())


def told_as_it_was(
    recorded: Recorded, server: ScriptedServer, answers: list[Reply], sdk: Sdk, case: str
) -> None:
    """Every byte of requests and answers is on the tape."""
    tape = recorded.sink.tape
    exchanges = list(tape.exchanges().values())
    assert [tape.read(one.ask.body) for one in exchanges] == [one.body for one in server.requests]
    for exchange, reply in zip(exchanges, answers, strict=True):
        whole(b"".join(tape.read(part.data) for part in exchange.parts), reply, sdk, case)
