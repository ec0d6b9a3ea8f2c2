"""The spans of the example agents follow the GenAI and HTTP conventions, messages by their schemas."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from support.servers.otlp_server import attributes
from support.starting.home import Home
from support.tapes.conventions import check_content, check_registered

from playhead_receiver.storage import open_store
from playhead_receiver.storage.spans.whole_spans import span_of, whole_span
from playhead_semconv import attributes as a

INTERNAL, CLIENT = 1, 3
ERROR = 2


@pytest.fixture(scope="module", params=("weather_agent", "research_agent", "refund_agent"))
def spans(request: pytest.FixtureRequest, examples: Home) -> list[Any]:
    """The whole spans of one recorded agent."""
    with closing(open_store(examples.data_dir, read_only=True)) as store:
        run = store.resolve(f"{request.param}-1")
        return [span_of(whole_span(store, one)) for one in store.spans(bytes.fromhex(run.trace_id))]


def test_the_tree_is_whole(spans: list[Any]):
    ids = {span.span_id for span in spans}
    roots = [span for span in spans if span.parent_span_id not in ids]
    assert len(roots) == 1
    assert roots[0].name.startswith("run ")
    assert roots[0].kind == INTERNAL
    assert len({span.trace_id for span in spans}) == 1
    for span in spans:
        assert span.start_time_unix_nano < span.end_time_unix_nano


def test_messages_validate_against_the_schemas(spans: list[Any]):
    checked = [check_content(attributes(span)) for span in spans]
    assert sum(count >= 2 for count in checked) >= 2


def test_attributes_are_those_of_the_release(spans: list[Any]):
    assert sum(check_registered(attributes(span)) for span in spans) > 10


def test_logical_calls_carry_what_the_conventions_require(spans: list[Any]):
    calls = [span for span in spans if a.GEN_AI_OPERATION_NAME in attributes(span)]
    assert calls
    for span in calls:
        at = attributes(span)
        assert span.kind == CLIENT
        assert span.name == f"{at[a.GEN_AI_OPERATION_NAME]} {at[a.GEN_AI_REQUEST_MODEL]}"
        claude = at[a.GEN_AI_REQUEST_MODEL].startswith("claude")
        assert at[a.GEN_AI_PROVIDER_NAME] == ("anthropic" if claude else "openai")  # its answer tells
        assert at[a.SERVER_ADDRESS] == "127.0.0.1"
        assert at[a.GEN_AI_USAGE_INPUT_TOKENS] > 0
        assert at[a.GEN_AI_USAGE_OUTPUT_TOKENS] > 0
        assert at[a.GEN_AI_RESPONSE_ID]
        assert at[a.GEN_AI_RESPONSE_FINISH_REASONS]
        if at.get(a.GEN_AI_REQUEST_STREAM):
            assert at[a.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK] > 0
        assert len(span.attributes) <= 128


def test_attempts_are_children_with_http_attributes(spans: list[Any]):
    names = {span.span_id: span for span in spans}
    attempts = [span for span in spans if a.HTTP_REQUEST_METHOD in attributes(span)]
    assert attempts
    for span in attempts:
        at = attributes(span)
        assert span.kind == CLIENT
        assert span.name == at[a.HTTP_REQUEST_METHOD]
        assert at[a.URL_FULL].startswith("http://127.0.0.1:")
        assert span.parent_span_id in names
        status = at[a.HTTP_RESPONSE_STATUS_CODE]
        assert (span.status.code == ERROR) == (status >= 400)
        assert at.get(a.ERROR_TYPE) == (str(status) if status >= 400 else None)
