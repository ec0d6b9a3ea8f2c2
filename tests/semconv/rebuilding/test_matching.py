from playhead_genai.messages import InputMessage, Text, ToolCall, ToolCallResponse
from playhead_genai.rebuilding.calls import Asked, asked
from playhead_genai.rebuilding.matching import (
    BY_MESSAGES,
    BY_MODEL,
    BY_ORDER,
    EXACTLY,
    RecordedCalls,
    likeness,
    same_model,
)


def of(text: str, model: str = "m", tools: str = "") -> Asked:
    return Asked(False, model, text, tools)


def test_conventions_that_say_the_same_agree():
    one = asked(
        "chat",
        "m",
        [Text(content="Be brief.")],
        [
            InputMessage(role="user", parts=[Text(content="Hi")]),
            InputMessage(role="assistant", parts=[ToolCall(id="1", name="f", arguments='{"a": 1}')]),
            InputMessage(role="user", parts=[ToolCallResponse(id="1", response='{"result": "x"}')]),
        ],
        [],
    )
    other = asked(
        "generate_content",
        "m",
        [],
        [
            InputMessage(role="developer", parts=[Text(content="Be brief.")]),
            InputMessage(role="user", parts=[Text(content=" Hi ")]),
            InputMessage(role="model", parts=[ToolCall(name="f", arguments={"a": 1})]),
            InputMessage(role="tool", parts=[ToolCallResponse(response=[{"text": "x"}])]),
        ],
        [],
    )
    assert likeness(one, other) == EXACTLY


def test_ways_of_agreement():
    assert likeness(of("a", tools="f"), of("a")) == BY_MODEL
    assert likeness(of("a", "n"), of("a")) == BY_MESSAGES
    assert likeness(of("b"), of("a")) == BY_ORDER
    assert likeness(of(""), of("")) == BY_ORDER
    assert likeness(Asked(True, "m", "a", ""), of("a")) is None


def test_names_of_a_model():
    assert same_model("openai/gpt-4o", "gpt-4o-2024-08-06")
    assert not same_model("gpt-4o", "gpt-4.1")
    assert not same_model("", "gpt-4o")


def test_each_call_answers_once_and_the_most_alike_first():
    calls = RecordedCalls([(of("a", "n"), False), (of("a"), False), (of("c"), False)])
    assert calls.take(of("a")) == (1, EXACTLY)
    assert calls.take(of("a")) == (0, BY_MESSAGES)
    assert calls.take(of("z"), by_order=False) is None
    assert calls.take(of("z")) == (2, BY_ORDER)
    assert calls.take(of("a")) is None


def test_a_failed_call_answers_the_repetitions_of_an_sdk():
    calls = RecordedCalls([(of("a"), True), (of("b"), False)])
    assert [calls.take(of("a")) for _ in range(3)] == [(0, EXACTLY)] * 3
    assert calls.take(of("b")) == (1, EXACTLY)
