"""The span of an attempt: stable HTTP conventions, ended with the body, told to the logical call."""

import httpx
import httpx2
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from support.servers.scripted import Gate, ScriptedServer, hang_up, json_reply, sse_reply
from support.tapes.sessions import recording

from playhead_instrumentation.session.options import Tracing
from playhead_instrumentation.session.session import current
from playhead_instrumentation.tracing.attempts import current_call
from playhead_semconv import events as e


class Traced:
    def __init__(self):
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("test")

    @property
    def spans(self):
        return self.exporter.get_finished_spans()


@pytest.fixture
def traced():
    return Traced()


@pytest.fixture
def server():
    with ScriptedServer() as running:
        yield running


def test_an_answer(traced, server):
    server.script([json_reply({"a": 1})])
    with recording(tracing=Tracing(traced.tracer)) as sink:
        with traced.tracer.start_as_current_span("parent") as parent:
            httpx2.post(f"{server.url}/v1?api_key=abcdefgh12", json={})
    [span, _] = traced.spans
    [(id, exchange)] = sink.tape().exchanges().items()
    assert (span.name, span.kind) == ("POST", SpanKind.CLIENT)
    assert span.parent.span_id == parent.get_span_context().span_id
    assert dict(span.attributes) == {
        "http.request.method": "POST",
        "url.full": f"{server.url}/v1?api_key=[redacted]",
        "server.address": "127.0.0.1",
        "server.port": server.port,
        "playhead.exchange.id": str(id),
        "http.response.status_code": 200,
        "network.protocol.version": "1.1",
    }
    assert span.status.status_code is StatusCode.UNSET
    assert exchange.span_id == span.context.span_id.to_bytes(8)
    assert exchange.trace_id == span.context.trace_id.to_bytes(16)
    [end] = sink.named(e.PLAYHEAD_EXCHANGE_END)
    assert span.end_time == end.time_ns


def test_a_refusal(traced, server):
    server.script([json_reply({}, 404)])
    with recording(tracing=Tracing(traced.tracer)):
        httpx.get(server.url)
    [span] = traced.spans
    assert span.attributes["error.type"] == "404"
    assert span.status.status_code is StatusCode.ERROR


def test_no_answer(traced, server):
    server.script([hang_up()])
    with recording(tracing=Tracing(traced.tracer)), pytest.raises(httpx.RemoteProtocolError):
        httpx.get(server.url)
    [span] = traced.spans
    assert span.attributes["error.type"] == "httpx.RemoteProtocolError"
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == "Server disconnected without sending a response."


def test_the_span_goes_on_until_the_body_ends(traced, server):
    gate = Gate()
    server.script([sse_reply([b"one", gate, b"two"])])
    with recording(tracing=Tracing(traced.tracer)):
        with httpx2.stream("GET", server.url) as response:
            parts = response.iter_raw()
            assert next(parts) == b"one"
            assert traced.spans == ()
            gate.open()
            list(parts)
            assert len(traced.spans) == 1


def test_what_nobody_closed_ends_with_the_process(traced, server):
    server.script([sse_reply([b"one", Gate()])])
    client = httpx2.Client()
    with recording(tracing=Tracing(traced.tracer)) as sink:
        response = client.send(client.build_request("GET", server.url), stream=True)
        parts = response.iter_raw()
        next(parts)
        current().abandon()
        [span] = traced.spans
    assert span.attributes["playhead.end.how"] == "abandoned"
    assert [fact.attributes["playhead.end.how"] for fact in sink.named(e.PLAYHEAD_EXCHANGE_END)] == [
        "abandoned"
    ]
    response.close()
    client.close()


class Observer:
    def __init__(self):
        self.attempts, self.closed = [], []

    def attempt_closed(self, attempt):
        self.closed.append(attempt)


def test_the_logical_call_is_told_of_its_attempts(traced, server):
    server.script([json_reply({}, 429), json_reply({"a": 1}, gzip=True)])
    observer = Observer()
    token = current_call.set(observer)
    try:
        with recording(tracing=Tracing(traced.tracer)) as sink:
            for _ in range(2):
                httpx2.post(server.url, content=b'{"q": 1}')
    finally:
        current_call.reset(token)
    first, second = observer.attempts
    assert observer.closed == [first, second]
    assert (first.status_code, second.status_code) == (429, 200)
    assert first.request_body == b'{"q": 1}'
    assert first.instance == sink.instance
    assert b"".join(first.chunks) == b"{}"
    assert ("content-encoding", "gzip") in second.response_headers
    assert second.end.how == "complete"
    ends = sink.named(e.PLAYHEAD_EXCHANGE_END)
    assert [one.last_seq for one in observer.closed] == [fact.seq for fact in ends]
    assert first.started_ns < first.first_chunk_ns <= first.ended_ns
    assert "http.request.resend_count" not in traced.spans[0].attributes
    assert traced.spans[1].attributes["http.request.resend_count"] == 1
    assert traced.spans[1].context == second.span_context


def test_the_span_is_ended_off_the_callers_path(traced, server):
    server.script([json_reply({})])
    jobs = []
    with recording(tracing=Tracing(traced.tracer, jobs.append)):
        httpx2.get(server.url)
        assert traced.spans == ()
        [job] = jobs
        job.finish()
        assert len(traced.spans) == 1


def test_a_failure_of_ours_leaves_the_request_alone(server, monkeypatch):
    server.script([json_reply({"a": 1})])
    with recording() as sink:
        monkeypatch.setattr(current().redactor, "url", lambda url: 1 / 0)
        assert httpx2.get(server.url).json() == {"a": 1}
    assert not sink.tape().exchanges()
