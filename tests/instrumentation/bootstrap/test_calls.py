"""What a call to a model writes, under both launchers."""

from __future__ import annotations

import pytest

from playhead_core.tape.span_starts import starts_of
from playhead_semconv import attributes as a
from playhead_semconv import events as e

RECORD = ("python", "-m", "playhead_instrumentation", "record")

CALL = """\
import httpx2, openai, os, sys

def answer(request):
    if "die" in sys.argv:
        os.kill(os.getpid(), 9)
    said = {"role": "assistant", "content": "Sunny."}
    whole = {"id": "1", "object": "chat.completion", "created": 1, "model": "gpt-4o"}
    whole["choices"] = [{"index": 0, "finish_reason": "stop", "message": said}]
    return httpx2.Response(200, json=whole)

client = httpx2.Client(transport=httpx2.MockTransport(answer))
gpt = openai.OpenAI(api_key="k", base_url="http://provider.invalid/v1", http_client=client)
print(gpt.chat.completions.create(model="gpt-4o", messages=[]).choices[0].message.content)
"""

LAUNCHERS = {"instrument": ("opentelemetry-instrument", "python"), "record": RECORD}


@pytest.mark.parametrize("launcher", LAUNCHERS.values(), ids=LAUNCHERS)
def test_a_small_call_writes_four_facts_and_the_ask_tells_its_spans(program, launcher):
    run = program(CALL)
    done = run.run(*launcher, "agent.py")
    assert (done.stdout, done.returncode) == ("Sunny.\n", 0)
    call, attempt = run.span("chat gpt-4o"), run.span("POST")
    asks = run.facts(e.PLAYHEAD_EXCHANGE_REQUEST)
    (ask,) = (fact for fact in asks if fact.exchange.kind == "http")
    assert [fact.name for fact in run.facts() if fact.trace_id and fact.exchange == ask.exchange] == [
        e.PLAYHEAD_EXCHANGE_REQUEST,
        e.PLAYHEAD_EXCHANGE_RESPONSE,
        e.PLAYHEAD_EXCHANGE_DATA,
        e.PLAYHEAD_EXCHANGE_END,
    ]
    inner, outer = starts_of(ask)
    assert (inner.span_id, inner.attributes[a.PLAYHEAD_SPAN_PARENT]) == (
        attempt.span_id,
        call.span_id.hex(),
    )
    assert (outer.span_id, outer.attributes[a.PLAYHEAD_SPAN_PARENT]) == (
        call.span_id,
        call.parent_span_id.hex(),
    )
    assert (outer.time_ns, inner.time_ns) == (call.start_time_unix_nano, attempt.start_time_unix_nano)
    assert outer.attributes[a.GEN_AI_REQUEST_MODEL] == "gpt-4o"
    told_alone = {fact.span_id for fact in run.facts(e.PLAYHEAD_SPAN_START)}
    assert told_alone == {span.span_id for span in run.spans()} - {call.span_id, attempt.span_id}


def test_a_process_that_dies_in_a_call_has_told_what_it_asked_and_in_which_spans(program):
    run = program(CALL)
    assert run.run("opentelemetry-instrument", "python", "agent.py", "die").returncode == -9
    (ask,) = run.facts(e.PLAYHEAD_EXCHANGE_REQUEST)
    inner, outer = starts_of(ask)
    names = [start.attributes[a.PLAYHEAD_SPAN_NAME] for start in (inner, outer)]
    assert names == ["POST", "chat gpt-4o"]
    assert inner.attributes[a.PLAYHEAD_SPAN_PARENT] == outer.span_id.hex()
    assert "run agent.py" not in {span.name for span in run.spans()}
