"""The spans of the example agents follow the GenAI and HTTP conventions, messages by their schemas."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.conventions import check_content
from support.otlp_server import attributes
from support.running import agent_environment, only_run, receiver, record_words

from playhead_cli.demo.provider import Provider
from playhead_receiver.store.spans.whole_spans import span_of, whole_span
from playhead_semconv import attributes as a

EXAMPLES = Path(__file__).parents[2] / "examples"
AGENTS = ("weather_agent.py", "research_agent.py", "refund_agent.py")
INTERNAL, CLIENT = 1, 3
ERROR = 2


@pytest.fixture(scope="module", params=AGENTS)
def spans(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Any]]:
    """The whole spans of one recorded agent."""
    folder = tmp_path_factory.mktemp("run")
    with Provider() as provider, receiver(folder / "data") as running:
        environ = agent_environment(running.http_endpoint, folder / "spool", "", **provider.environment)
        words = record_words(EXAMPLES / request.param)
        done = subprocess.run(words, env=environ, cwd=folder, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        run = only_run(running.store)
        stored = running.store.spans(bytes.fromhex(run.trace_id))
        yield [span_of(whole_span(running.store, one)) for one in stored]


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


def test_logical_calls_carry_what_the_conventions_require(spans: list[Any]):
    calls = [span for span in spans if a.GEN_AI_OPERATION_NAME in attributes(span)]
    assert calls
    for span in calls:
        at = attributes(span)
        assert span.kind == CLIENT
        assert span.name == f"{at[a.GEN_AI_OPERATION_NAME]} {at[a.GEN_AI_REQUEST_MODEL]}"
        assert at[a.GEN_AI_PROVIDER_NAME] in ("openai", "anthropic")
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
