"""Any bytes: nothing is raised, everything derived conforms, the cache changes nothing."""

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.answers.event_streams import chunk, event
from support.letters import LETTERS
from support.tapes.conventions import check_content

from playhead_genai.providers import DIALECTS, PrefixCache, WireResponse, derive

WORDS = st.sampled_from(
    """type id role content text messages input output model choices message delta index tool_calls
    function name arguments image_url url data source media_type system instructions tools functions
    parameters input_schema usage prompt_tokens input_tokens output_tokens error code status response
    item output_index content_index part summary reasoning thinking signature tool_use_id input_audio
    format file file_id file_data filename refusal audio transcript finish_reason stop_reason cited
    content_block partial_json citation n stop stream temperature response_format service_tier
    dimensions embedding reasoning_effort call_id output_text user assistant tool developer image
    input_text message_start content_block_start content_block_delta message_delta response.completed
    response.output_item.added function_call response.output_text.delta
    response.function_call_arguments.delta reasoning_content custom web_search_call
    code_interpreter_call results compaction tool_result tool_use document base64
    contents parts candidates functionCall function_call functionResponse inlineData thought args
    finishReason usageMetadata promptTokenCount promptTokensDetails modality tokenCount predictions
    embeddings values toolUse toolResult toolUseId reasoningContent reasoningText contentBlockIndex
    messageStart contentBlockStart contentBlockDelta messageStop metadata start stopReason usage output
    inferenceConfig toolConfig toolSpec inputSchema results outputText prompt generations tool_plan
    message-start content-start content-delta tool-call-start tool-call-delta message-end citation-start
    citations tokens billed_units response done done_reason thinking images options systemInstruction
    generationConfig functionDeclarations instances requests texts reasoning additional_tools
    b64_json prompt image audio results custom_id params message compaction categories
    speech.audio.delta transcript.text.delta image_generation.completed
    data:image/png;base64,AAAA data:text/plain,hi https://example.org/a.png {"a":1} json_schema
    """.split()
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-3, 3)
    | st.floats()
    | st.text(LETTERS, max_size=5)
    | WORDS
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(WORDS | st.text(LETTERS, max_size=3), inner, max_size=6)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(WORDS, VALUES, max_size=8)
LISTED = st.sampled_from(["messages", "input", "tools", "functions", "system", "instructions"])
REQUESTS = OBJECTS | st.builds(
    lambda fields, lists: fields | lists,
    OBJECTS,
    st.dictionaries(LISTED, st.lists(OBJECTS, max_size=4), max_size=4),
)
SLOW = (HealthCheck.too_slow,)
"""How fast examples are made is the machine's doing."""

WIRES = st.sampled_from(sorted(DIALECTS))
FORMS = st.builds(
    lambda name, data: (
        b'--b\r\nContent-Disposition: form-data; name="%s"; filename="a"\r\n\r\n%s\r\n--b--\r\n'
        % (name.encode("utf-8", "replace"), data)
    ),
    WORDS,
    st.binary(),
)
STREAM = [("content-type", "text/event-stream")]
JSON = [("content-type", "application/json")]
AMAZON = [("content-type", "application/vnd.amazon.eventstream")]
LINES = [("content-type", "application/x-ndjson")]


def dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def checked(wire: str, body: bytes, response: WireResponse) -> None:
    derived = derive(wire, body, response)
    check_content(derived.attributes)
    for name, value in derived.attributes.items():
        items = value if isinstance(value, list) else [value]
        assert items and {type(item) for item in items} <= {str, int, float, bool}, name
        assert all(-(2**63) <= item < 2**63 for item in items if type(item) is int), name
        assert all(item.encode() is not None for item in items if type(item) is str), name
    assert derived == derive(wire, body, response, PrefixCache())


@given(
    WIRES,
    st.binary() | FORMS,
    st.binary(),
    st.sampled_from([STREAM, JSON, AMAZON, LINES, []]),
    st.booleans(),
)
def test_any_bytes(wire: str, body: bytes, data: bytes, headers: list[tuple[str, str]], complete: bool):
    checked(wire, body, WireResponse(200, headers, [data], complete))


def any_objects(wire: str, request: dict[str, Any], answer: dict[str, Any], status: int):
    checked(wire, dumped(request), WireResponse(status, JSON, [dumped(answer)], True))


def any_events(wire: str, request: dict[str, Any], events: list[tuple[str, Any]], done: bool):
    chunks = [b"event: %s\ndata: %s\n\n" % (name.encode(), dumped(value)) for name, value in events]
    chunks += [b"data: [DONE]\n\n"] * done
    checked(wire, dumped(request), WireResponse(200, STREAM, chunks, True))


def any_framing(wire: str, request: dict[str, Any], values: list[tuple[str, Any]], cut: int):
    amazon = b"".join(event(name, value) for name, value in values)
    amazon += b"".join(chunk(value) for _, value in values)
    lines = b"".join(dumped(value) + b"\n" for _, value in values)
    array = b"[" + b",".join(dumped(value) for _, value in values) + b"]"
    for headers, data in ((AMAZON, amazon), (LINES, lines), (JSON, array)):
        for received in (data, data[: cut % (len(data) + 1)]):
            checked(wire, dumped(request), WireResponse(200, headers, [received], True))


@pytest.mark.parametrize("wire", sorted(DIALECTS))
@pytest.mark.parametrize(
    "value",
    [
        b"[" * 900 + b"]" * 900,
        b"[" * 100000 + b"]" * 100000,
        b'{"a":' * 990 + b"1" + b"}" * 990,
        b"9" * 5000,
        b"1e999",
        b"-1e999",
        b"NaN",
        b'"\\ud800"',
        b'"\xff\xfe"',
        b"1" + b"0" * 300,
        b"\xf0",
        b"",
    ],
    ids=lambda value: value[:8].decode("latin-1"),
)
def test_extremes(wire: str, value: bytes):
    array = DIALECTS[wire].messages_field.encode()
    body = (
        b'{"model":"m","%s":[{"role":"user","content":%s}],"temperature":%s,"tools":[%s],"system":%s}'
        % (
            array,
            value,
            value,
            value,
            value,
        )
    )
    answer = b'{"id":"i","choices":[{"message":{"content":%s}}],"output":[%s],"content":[%s]}' % (
        (value,) * 3
    )
    checked(wire, body, WireResponse(200, JSON, [answer], True))
    checked(wire, body, WireResponse(200, STREAM, [b"data: %s\n\n" % answer], True))


CONVERSATION = st.lists(OBJECTS, min_size=1, max_size=6)


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, list[bytes]]:
    """Bodies of one conversation: extended, cut, edited, with other fields before and after."""
    wire = draw(WIRES)
    dialect = DIALECTS[wire]
    separators = draw(st.sampled_from([(",", ":"), (", ", ": ")]))
    messages = draw(CONVERSATION)
    found: list[bytes] = []
    for _ in range(draw(st.integers(2, 5))):
        step = draw(st.sampled_from(["extend", "extend", "extend", "cut", "edit", "same"]))
        if step == "extend":
            messages = [*messages, *draw(CONVERSATION)]
        elif step == "cut":
            messages = messages[: draw(st.integers(0, len(messages)))]
        elif step == "edit" and messages:
            at = draw(st.integers(0, len(messages) - 1))
            messages = [*messages[:at], draw(OBJECTS), *messages[at + 1 :]]
        fields: dict[str, Any] = draw(st.dictionaries(WORDS, VALUES, max_size=2))
        fields[dialect.messages_field] = messages
        fields |= draw(st.dictionaries(WORDS, VALUES, max_size=2))
        if draw(st.booleans()):
            fields["metadata"] = {dialect.messages_field: messages}
            if draw(st.booleans()):
                fields[dialect.messages_field] = fields.pop(dialect.messages_field)
        text = json.dumps(fields, separators=separators, ensure_ascii=draw(st.booleans()))
        if draw(st.booleans()):  # the field twice: the last one counts
            again = json.dumps({dialect.messages_field: draw(CONVERSATION)}, separators=separators)
            text = f"{text[:-1]}{separators[0]}{again[1:]}"
        found.append(text.encode("utf-8", "replace"))
    return wire, found


def any_conversation(case: tuple[str, list[bytes]], capacity_bytes: int):
    wire, found = case
    cache = PrefixCache(capacity_bytes)
    for body in [*found, *reversed(found)]:
        assert derive(wire, body, WireResponse(), cache) == derive(wire, body, WireResponse())


def any_pieces(wire: str, events: list[dict[str, Any]], cuts: list[int]):
    stream = b"".join(b"data: %s\r\n\r\n" % dumped(value) for value in events)
    bounds = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    pieces = [stream[low:high] for low, high in pairwise(bounds)]
    whole = derive(wire, b"{}", WireResponse(200, STREAM, [stream], True))
    assert derive(wire, b"{}", WireResponse(200, STREAM, pieces, True)) == whole


PROPERTIES = {
    any_objects: given(WIRES, REQUESTS, OBJECTS, st.sampled_from([200, 400, 500])),
    any_events: given(WIRES, REQUESTS, st.lists(st.tuples(WORDS, OBJECTS), max_size=8), st.booleans()),
    any_framing: given(
        WIRES, REQUESTS, st.lists(st.tuples(WORDS, OBJECTS), max_size=6), st.integers(0, 5000)
    ),
    any_conversation: given(bodies(), st.sampled_from([16 << 20, 400, 2000])),
    any_pieces: given(WIRES, st.lists(OBJECTS, min_size=1, max_size=4), st.lists(st.integers(0, 2000))),
}


@pytest.mark.parametrize("holds", PROPERTIES, ids=lambda holds: holds.__name__)
def test_properties(holds: Callable[..., None]):
    settings(max_examples=30, suppress_health_check=SLOW, deadline=None)(PROPERTIES[holds](holds))()


@pytest.mark.acceptance
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("holds", PROPERTIES, ids=lambda holds: holds.__name__)
def test_properties_at_length(holds: Callable[..., None]):
    settings(max_examples=5000, suppress_health_check=SLOW, deadline=None)(PROPERTIES[holds](holds))()
