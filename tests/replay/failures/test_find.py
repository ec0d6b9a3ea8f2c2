"""Failures of a run: type, code, step, evidence, and whether it recovered."""

import json
from typing import Any

import pytest
from support.answers.spoken import QUESTION, request, talk
from support.tapes.handmade import HandMade

from playhead_core.facts import ErrorRecord
from playhead_genai.providers import WireResponse, derive
from playhead_replay import Run
from playhead_replay.failures.codes import CODES, code_of
from playhead_replay.failures.find import Failure, failures_of, status_reason
from playhead_semconv import attributes as a

SCHEMA = {
    "type": "object",
    "properties": {"q": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["q"],
    "additionalProperties": False,
}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": SCHEMA}}
    for name in ("search", "refund")
]


def run_of(made: HandMade) -> Run:
    return Run.of_tapes([made.tape()], [span.otlp for span in made.spans], "refund-1")


def found(made: HandMade) -> list[Failure]:
    run = run_of(made)
    return failures_of(run)


def told(made: HandMade) -> list[tuple[str, str, str, bool]]:
    return [(one.type, one.code, one.place, one.recovered) for one in found(made)]


def said(finish: str = "stop", **message: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **message}}
    return json.dumps({"model": "gpt-4o", "choices": [choice | {"finish_reason": finish}]}).encode()


def asked(*messages: dict[str, Any], **fields: Any) -> bytes:
    return json.dumps({"model": "gpt-4o", "messages": messages, "tools": TOOLS, **fields}).encode()


def called(arguments: str, name: str = "search", id: str = "c1") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]}


def answered(content: Any, id: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": json.dumps(content)}


def rounds(*calls: tuple[str, str, Any]) -> HandMade:
    """Each call of a tool (name, arguments, result) in an answer, its result in the next request."""
    made, history = HandMade().start(), [QUESTION]
    for number, (name, arguments, result) in enumerate(calls):
        call = called(arguments, name, f"c{number}")
        talk(made, asked(*history), said("tool_calls", **call))
        history += [call, answered(result, f"c{number}")]
    talk(made, asked(*history), said(content="done"))
    return made.exit()


def refused(made: HandMade, status: int, body: dict[str, Any], error: str) -> HandMade:
    """A call of a model that the provider refuses."""
    model = {a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_REQUEST_MODEL: "gpt-4o"}
    call = made.begin("chat gpt-4o", kind=3, **model)
    attempt = made.begin("POST", parent=call, kind=3, **{a.HTTP_REQUEST_METHOD: "POST"})
    made.exchange(
        request=request(QUESTION), chunks=(json.dumps(body).encode(),), span=attempt, status=status
    )
    made.finish(attempt, error=str(status), **{a.HTTP_RESPONSE_STATUS_CODE: status})
    made.finish(call, error=error, **{a.ERROR_TYPE: error.partition(":")[0]})
    return made


def test_a_good_run_has_no_failures():
    assert told(rounds(("search", '{"q": "order 81"}', {"found": ["on its way"]}))) == []
    assert (
        told(rounds(("refund", '{"q": "81"}', []), ("search", '{"q": "x"}', "2 errors were found")))
        == []
    )


@pytest.mark.parametrize(
    ("finish", "code", "reason"),
    [
        ("length", "cut_off", "cut off: length"),
        ("content_filter", "content_filter", "content filter"),
    ],
)
def test_a_last_answer_that_was_cut_off_is_no_plain_success(finish: str, code: str, reason: str):
    made = HandMade().start()
    talk(made, asked(QUESTION), said(finish, content="Order 81 is"))
    run = run_of(made.exit())
    failures = failures_of(run)
    assert [(one.type, one.code, one.step, one.recovered) for one in failures] == [
        ("model", code, 1, False)
    ]
    assert run.status == "success" and status_reason(run, failures) == reason


def test_an_answer_that_was_cut_off_is_recovered_by_a_later_one():
    made = HandMade().start()
    talk(made, asked(QUESTION), said("length", content="Order 81 is"))
    talk(made, asked(QUESTION), said(content="Order 81 is on its way."))
    run = run_of(made.exit())
    failures = failures_of(run)
    assert [one.recovered for one in failures] == [True]
    assert status_reason(run, failures) == ""


@pytest.mark.parametrize(
    ("status", "body", "error", "code"),
    [
        (429, {"error": {"code": "rate_limit_exceeded"}}, "openai.RateLimitError: 429", "rate_limit"),
        (429, {"error": {"code": "insufficient_quota"}}, "openai.RateLimitError: 429", "quota_exceeded"),
        (
            400,
            {"error": {"message": "This model's maximum context length is 128000 tokens."}},
            "openai.BadRequestError: 400",
            "context_length_exceeded",
        ),
        (401, {"error": {}}, "openai.AuthenticationError: 401", "auth_error"),
        (504, {}, "openai.InternalServerError: 504", "timeout"),
        (500, {}, "openai.InternalServerError: 500", "api_error"),
    ],
)
def test_a_refused_call_of_a_model_has_the_code_of_its_response(
    status: int, body: dict[str, Any], error: str, code: str
):
    made = refused(HandMade().start(), status, body, error).exit()
    [failure] = found(made)
    assert (failure.type, failure.code, failure.step) == ("model", code, 1)
    assert (failure.source, failure.recovered) == ("status", False)
    assert failure.evidence.startswith(error.partition(":")[0])


def test_a_failed_attempt_of_a_step_that_succeeded_is_recovered():
    made = HandMade().start()
    model = {a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_REQUEST_MODEL: "gpt-4o"}
    call = made.begin("chat gpt-4o", kind=3, **model)
    for status in (429, 429, 200):
        attempt = made.begin("POST", parent=call, kind=3, **{a.HTTP_REQUEST_METHOD: "POST"})
        made.exchange(
            request=request(QUESTION), chunks=(said(content="yes"),), span=attempt, status=status
        )
        error = "429" if status == 429 else ""
        made.finish(attempt, error=error, **{a.HTTP_RESPONSE_STATUS_CODE: status})
    made.finish(call)
    [failure] = found(made.exit())
    assert (failure.code, failure.times, failure.recovered) == ("rate_limit", 2, True)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("builtins.TimeoutError: no answer", "timeout"),
        ("httpx.ConnectError: [Errno 111] Connection refused", "connection_error"),
        ("json.decoder.JSONDecodeError: Expecting value", "invalid_response"),
        ("builtins.PermissionError: permission denied", "auth_error"),
        ("builtins.ValueError: no order", "api_error"),
    ],
)
def test_a_failed_tool_has_the_code_of_its_exception(error: str, code: str):
    made = HandMade().start()
    made.tool("refund", '{"order": 81}', error=error)
    assert told(made.exit()) == [("tool", code, "1", False)]
    made = HandMade().start()
    made.tool("refund", '{"order": 81}', error=error)
    made.tool("refund", '{"order": 81}')
    assert told(made.exit()) == [("tool", code, "1", True)]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('{"q": "order', "the arguments are not a JSON object"),
        ('{"limit": 3}', "'q' is a required property"),
        ('{"q": "x", "limit": "many"}', "'many' is not of type 'integer'"),
        ('{"q": "x", "page": 2}', "'page' was unexpected"),
    ],
)
def test_arguments_that_do_not_fit_the_offered_tool_are_invalid_output(arguments: str, problem: str):
    [failure] = found(rounds(("refund", arguments, {"ok": True})))
    assert (failure.type, failure.code, failure.place) == ("model", "invalid_output", "1.1")
    assert problem in failure.evidence and not failure.recovered
    again = found(rounds(("refund", arguments, {}), ("refund", '{"q": "x"}', {"ok": True})))
    assert [one.recovered for one in again] == [True]


def test_a_call_of_a_tool_that_is_not_offered_is_invalid_output():
    [failure] = found(rounds(("delete_all", "{}", {"ok": True})))
    assert (failure.code, failure.name) == ("invalid_output", "delete_all")


def test_a_search_without_results_is_told_until_one_has_some():
    empty = ("search", '{"q": "x"}', {"query": "x", "found": [], "count": 0})
    assert told(rounds(empty, empty)) == [
        ("retrieval", "no_results", "1.1", False),
        ("retrieval", "no_results", "2.1", False),
    ]
    assert told(rounds(empty, ("search", '{"q": "y"}', {"found": ["y"]}))) == [
        ("retrieval", "no_results", "1.1", True)
    ]


def test_a_result_that_reports_an_error_is_a_failure_of_the_tool():
    failing = ("refund", '{"q": "x"}', {"error": "request timed out"})
    assert told(rounds(failing)) == [("tool", "timeout", "1.1", False)]


def test_a_structured_output_is_held_against_its_schema():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    for content, problem in [
        ('{"n": "one"}', "'one' is not of type"),
        ("{", "not JSON"),
        ('{"n": 1}', ""),
    ]:
        made = HandMade().start()
        talk(made, asked(QUESTION, response_format=form), said(content=content))
        evidence = [one.evidence for one in found(made.exit()) if one.code == "invalid_output"]
        assert len(evidence) == bool(problem) and all(problem in one for one in evidence)


@pytest.mark.parametrize(
    ("exception", "code"),
    [
        ("GraphRecursionError", "max_retries_exceeded"),
        ("InputGuardrailTripwireTriggered", "constraint_violation"),
        ("InvalidUpdateError", "invalid_state"),
        ("KeyError", "uncaught_exception"),
    ],
)
def test_the_exception_that_ended_the_program_is_a_failure_of_the_run(exception: str, code: str):
    made = HandMade().start().exit(1)
    error = ErrorRecord("agent", exception, "no way")
    made.facts[-1].attributes.update(
        {
            a.PLAYHEAD_ERROR_MODULE: error.module,
            a.PLAYHEAD_ERROR_QUALNAME: error.qualname,
            a.PLAYHEAD_ERROR_MESSAGE: error.message,
        }
    )
    [failure] = found(made)
    assert (failure.type, failure.code, failure.step) == ("orchestration", code, None)


def test_the_exception_of_the_failed_step_is_not_told_twice():
    made = HandMade().start()
    made.tool("refund", "{}", error="builtins.ValueError: no order")
    made.exit(1).facts[-1].attributes.update(
        {a.PLAYHEAD_ERROR_QUALNAME: "ValueError", a.PLAYHEAD_ERROR_MESSAGE: "no order"}
    )
    assert told(made) == [("tool", "api_error", "1", False)]


def test_a_cancelled_call_is_no_failure():
    made = HandMade().start()
    made.tool("refund", "{}", error="asyncio.exceptions.CancelledError: ")
    assert told(made.exit()) == []


def test_every_code_is_known():
    assert code_of("retrieval", "syntax error at 3", 400) in CODES["retrieval"]
    derived = derive("openai.chat", asked(QUESTION), WireResponse(200, (), (said(),), True))
    assert a.GEN_AI_RESPONSE_FINISH_REASONS in derived.attributes
