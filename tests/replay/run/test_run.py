import doctest
from pathlib import Path

import pytest
from support.tapes.handmade import INSTANCE, TRACE, HandMade, HandMadeStore

import playhead_replay.run.run
from playhead_core import difference as difference_module
from playhead_core.errors import RunUnknown, TapeMissing
from playhead_replay import Run, read_tape_file, write_tape_file
from playhead_replay.run.command import Command
from playhead_replay.run.spans import KIND_INTERNAL, Span, SpanEvent
from playhead_semconv import attributes as a


def made() -> HandMade:
    made = HandMade().start()
    made.chat(b'{"model":"gpt-4o"}', (b"one", b"two"))
    made.wait(1).tool("search", '{"q":"order 81"}')
    call = made.begin("chat gpt-4o", kind=3, **{a.GEN_AI_OPERATION_NAME: "chat"})
    for attempt in range(2):
        http = made.begin(
            "POST",
            parent=call,
            kind=3,
            **{a.HTTP_REQUEST_METHOD: "POST", a.HTTP_REQUEST_RESEND_COUNT: attempt},
        )
        made.exchange(request=b"{}", span=http, status=(429, 200)[attempt])
        made.finish(http, error="429" if not attempt else "")
    made.finish(call, **{a.GEN_AI_USAGE_INPUT_TOKENS: 8, a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: 5})
    bare = made.begin("GET", kind=3, **{a.HTTP_REQUEST_METHOD: "GET"})
    made.exchange("GET http://tool/orders/81", b"", span=bare)
    made.finish(bare)
    made.tool("refund", "{}", error="ValueError: no order")
    made.say("done\n").exit(1)
    return made


@pytest.fixture
def run() -> Run:
    store = HandMadeStore()
    store.add(made(), "refund-7", status="failure")
    return Run.load(store, "refund-7")


def test_steps_are_logical_calls_tools_and_bare_requests_in_order_of_start(run: Run):
    assert [(step.number, step.span.name) for step in run.steps] == [
        (1, "chat gpt-4o"),
        (2, "execute_tool search"),
        (3, "chat gpt-4o"),
        (4, "GET"),
        (5, "execute_tool refund"),
    ]


def test_attempts_and_retries_stand_under_their_step(run: Run):
    step = run.step(3)
    assert step is not None
    assert len(step.attempts) == 2
    assert step.retries == 1
    assert [exchange.status_code for exchange in run.exchanges_of(step)] == [429, 200]
    assert [exchange.name for exchange in run.exchanges_of(step)] == ["main#1", "main#2"]
    assert run.step_of(step.attempts[1].span_id) is step


def test_a_bare_request_is_its_own_attempt(run: Run):
    step = run.step(4)
    assert step is not None
    assert step.attempts == [step.span]
    assert [exchange.key for exchange in run.exchanges_of(step)] == ["GET http://tool/orders/81"]


def test_bytes_times_and_headers_of_an_exchange(run: Run):
    exchange = run.exchanges[0]
    assert exchange.request == b'{"model":"gpt-4o"}'
    assert exchange.response == b"onetwo"
    assert [(chunk.data, chunk.batch) for chunk in exchange.chunks] == [(b"one", 2), (b"two", 3)]
    assert exchange.chunks[1].time_ns - exchange.chunks[0].time_ns == 100_000_000
    assert exchange.response_headers == [("content-type", "application/json")]


def test_usage_is_summed_where_the_operation_is_no_text():
    made = HandMade().start()
    call = made.begin("chat", kind=3, **{a.GEN_AI_OPERATION_NAME: {"x": [1]}})
    made.finish(call, **{a.GEN_AI_USAGE_INPUT_TOKENS: 8})
    run = Run.of_tapes([made.tape()], [span.otlp for span in made.spans], "odd")
    assert run.usage.input_tokens == 8


def test_usage_is_summed_and_errors_are_steps(run: Run):
    assert run.usage == playhead_replay.run.run.TokenUsage(820, 64, 5, 0)
    assert [(step.number, step.span.error) for step in run.errors] == [(5, "ValueError: no order")]


def test_an_error_that_only_an_event_describes_is_shown():
    raised = {a.EXCEPTION_TYPE: "shop.Retry", a.EXCEPTION_MESSAGE: "five digits\nor more"}
    span = Span("1", "2", "", "execute_tool look_up", KIND_INTERNAL, 1, 2, {}, "error")
    assert span.error == "error"
    span.events = [SpanEvent("exception", 1, raised), SpanEvent("other", 2, {})]
    assert span.error == "shop.Retry: five digits"
    span.status_message = "refused"
    assert span.error == "refused"


def test_command_and_outputs_come_from_the_tape(run: Run):
    assert run.command.words() == ["agent.py", "--order", "81"]
    assert run.outputs.stdout.data == b"done\n"
    assert run.outputs.exit is not None
    assert run.outputs.exit.code == 1


def test_a_span_that_has_started_only_is_pending():
    unfinished = HandMade().start()
    call = unfinished.begin("chat gpt-4o", kind=3, **{a.GEN_AI_OPERATION_NAME: "chat"})
    unfinished.exchange(span=call, answered=False)
    run = Run.of_tape(unfinished.tape(), name="dead")
    assert run.status == "interrupted"
    [step] = run.steps
    assert step.span.pending
    assert run.exchanges_of(step)[0].end is None


def test_missing_numbers_and_an_announced_tail_are_gaps():
    tape = made().tape(without=(4, 5, 9))
    run = Run.of_tape(tape)
    assert [(gap.first, gap.last) for gap in run.gaps] == [(4, 5), (9, 9)]
    assert str(run.gaps[0]) == "2 facts missing: 4 to 5"
    recorded = HandMade().start()
    recorded.fact("playhead.process.heartbeat", attributes={a.PLAYHEAD_PROCESS_LAST_SEQ: 9})
    assert [(gap.first, gap.last) for gap in Run.of_tape(recorded.tape()).gaps] == [(4, 9)]


def test_a_run_of_spans_alone_has_no_tape():
    store = HandMadeStore()
    store.add(made(), "foreign-1")
    store.tapes.clear()
    run = Run.load(store, "foreign-1")
    assert len(run.steps) == 5
    with pytest.raises(TapeMissing, match="foreign-1 has no tape"):
        _ = run.command


def test_an_unknown_run_is_the_stores_error():
    with pytest.raises(RunUnknown):
        Run.load(HandMadeStore(), TRACE.hex())


def test_a_tape_file_holds_the_run(tmp_path: Path):
    recorded = made()
    path = tmp_path / "refund.tape"
    size = write_tape_file(path, recorded.tape(), (span.otlp for span in recorded.spans))
    assert path.stat().st_size == size
    assert path.stat().st_mode & 0o777 == 0o600
    found = read_tape_file(path)
    assert found.tape.instance == INSTANCE
    assert list(found.tape.facts()) == recorded.facts
    run = Run.of_tape(found.tape, found.spans, "refund")
    assert (run.name, run.status, run.trace_id) == ("refund", "failure", TRACE.hex())
    assert [step.span.name for step in run.steps][:2] == ["chat gpt-4o", "execute_tool search"]
    assert list(tmp_path.iterdir()) == [path]


def test_the_examples_in_the_docstrings_hold(tmp_path: Path):
    example = tmp_path / "example.tape"
    recorded = HandMade().start()
    recorded.chat(chunks=(b'{"id"', b': "1"}\n'))
    recorded.exit(0)
    write_tape_file(example, recorded.tape(), (span.otlp for span in recorded.spans))
    for module, names in ((playhead_replay.run.run, {"example_tape": example}), (difference_module, {})):
        results = doctest.testmod(module, extraglobs=names)
        assert results.failed == 0
        assert results.attempted > 0


def test_of_spans_in_a_ring_the_first_is_the_root():
    made = HandMade()
    for number in (1, 2, 3):
        made.wait(1).begin(f"of {number}", number=number, parent=number % 3 + 1)
        made.finish(number)
    made.begin("below", number=4, parent=3)
    made.finish(4)
    run = Run.of_tapes([], [span.otlp for span in made.spans], "x")
    [root] = run.roots
    assert [span.name for span in root.walk()] == ["of 1", "of 3", "of 2", "below"]


def test_a_tape_sets_no_option_of_the_interpreter_that_runs_other_code():
    harmless = ["-O", "-Werror", "-Wignore:mine:UserWarning", "-Xutf8=0", "-bb"]
    others = ["-Werror::agent.Mine", "-Ximporttime", "-Xpycache_prefix=out", "-i", "-c", "-O\nx", "x"]
    at = {a.PLAYHEAD_RUN_INTERPRETER_OPTIONS: [*harmless, *others]}
    assert Command.of_attributes(at).options == tuple(harmless)
