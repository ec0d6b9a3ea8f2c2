"""The trace context of outgoing requests: sent once, of the span of the attempt, unseen by programs."""

import asyncio
import http.client
import io
import urllib.request

import aiohttp
import boto3
import httpx
import httpx2
import pytest
import requests
import urllib3
from botocore.config import Config
from msgspec.structs import replace
from opentelemetry import baggage, context, propagate, trace
from opentelemetry.instrumentation.utils import suppress_http_instrumentation
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags, TraceState
from support.servers.scripted import ScriptedServer, json_reply
from support.tapes.sessions import CAUSAL, record, recording, replay

from playhead_core.rerun.plans import Plan
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_instrumentation.session.options import Tracing
from playhead_semconv import attributes as a

FIELDS = {"traceparent", "tracestate", "baggage"}
OWN = "00-11111111111111111111111111111111-2222222222222222-01"


def by_httpx(url, headers=None):
    with httpx.Client() as client:
        request = client.build_request("GET", url, headers=headers)
        response = client.send(request)
        return dict(request.headers), dict(response.request.headers)


def by_httpx2(url, headers=None):
    async def ask():
        async with httpx2.AsyncClient() as client:
            request = client.build_request("POST", url, headers=headers, content=b"{}")
            response = await client.send(request)
            return dict(request.headers), dict(response.request.headers)

    return asyncio.run(ask())


def by_requests(url, headers=None):
    return dict(requests.get(url, headers=headers).request.headers)


def by_urllib3(url, headers=None):
    given = dict(headers or {})
    with urllib3.PoolManager() as pool:
        pool.request("POST", url, body=b"{}", headers=given)
    return given


def by_urllib(url, headers=None):
    request = urllib.request.Request(url, headers=headers or {})
    urllib.request.urlopen(request).read()
    return dict(request.header_items())


def by_http_client(url, headers=None):
    connection = http.client.HTTPConnection(url.partition("//")[2])
    connection.putrequest("PUT", "/")
    for name, value in {**(headers or {}), "Content-Length": "4"}.items():
        connection.putheader(name, value)
    connection.endheaders()
    connection.send(io.BytesIO(b"body"))
    connection.getresponse().read()
    connection.close()


def by_aiohttp(url, headers=None):
    told = []

    async def sent(session, around, details):
        told.append(dict(details.headers))

    async def ask():
        watched = aiohttp.TraceConfig()
        watched.on_request_headers_sent.append(sent)
        async with (
            aiohttp.ClientSession(trace_configs=[watched]) as client,
            client.post(url, headers=headers, data=b"{}") as answer,
        ):
            await answer.read()
            return told, dict(answer.request_info.headers)

    return asyncio.run(ask())


def by_botocore(url, headers=None):
    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="AKIAIOSFODNN7EXAMPLE",
        aws_secret_access_key="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        config=Config(retries={"max_attempts": 1}),
    )
    seen = []

    def sign(request, **_):
        for name, value in (headers or {}).items():
            request.headers[name] = value

    client.meta.events.register("before-sign", sign)
    client.meta.events.register("before-send", lambda request, **_: seen.append(request.headers))
    client.converse(modelId="m", messages=[{"role": "user", "content": [{"text": "hi"}]}])
    return [name for name in seen[0] if name.lower() in FIELDS]


CLIENTS = [
    by_httpx, by_httpx2, by_requests, by_urllib3, by_urllib, by_http_client, by_aiohttp, by_botocore,
]  # fmt: skip


class Traced:
    def __init__(self, **provider):
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(**provider)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("test")
        self.tracing = Tracing(self.tracer)

    @property
    def clients(self):
        """The contexts of the spans of attempts."""
        spans = self.exporter.get_finished_spans()
        return [span.get_span_context() for span in spans if span.kind is SpanKind.CLIENT]


@pytest.fixture
def traced():
    return Traced()


@pytest.fixture
def server():
    with ScriptedServer() as running:
        running.script(
            [json_reply({"output": {"message": {"role": "assistant", "content": []}}})], repeat=True
        )
        yield running


def header(of):
    return f"00-{of.trace_id:032x}-{of.span_id:016x}-{of.trace_flags:02x}"


def sent(server):
    """The trace contexts that arrived, by request."""
    return [
        {name: value for name, value in one.headers.items() if name in FIELDS} for one in server.requests
    ]


@pytest.mark.parametrize("ask", CLIENTS)
def test_the_span_of_the_attempt_goes_out_and_no_one_else_sees_it(ask, server, traced):
    seen, tape = record(lambda: ask(server.url), tracing=traced.tracing)
    [span] = traced.clients
    assert sent(server) == [{"traceparent": header(span)}]
    assert "traceparent" not in str(seen).lower()
    [exchange] = tape.exchanges().values()
    assert not FIELDS & set(exchange.ask.details[a.PLAYHEAD_HTTP_HEADERS])
    again, now = replay(lambda: ask(server.url), tape, tracing=Traced().tracing)
    assert again == seen
    [exchange] = now.exchanges().values()
    assert exchange.ask.details[a.PLAYHEAD_FIDELITY] == "exact"
    assert not FIELDS & set(exchange.ask.details[a.PLAYHEAD_HTTP_HEADERS])
    assert len(server.requests) == 1


@pytest.mark.parametrize("ask", CLIENTS)
def test_the_header_of_the_program_wins(ask, server, traced):
    # Of a header that is sent twice the server keeps the second, which would be that of playhead.
    given = {"Traceparent": OWN, "x-other": "1"}
    record(lambda: ask(server.url, given), tracing=traced.tracing)
    assert sent(server) == [{"traceparent": OWN}]


@pytest.mark.parametrize("ask", CLIENTS)
def test_a_fork_that_goes_live_sends_its_own_span(ask, server, traced):
    _, tape = record(lambda: ask(server.url), tracing=traced.tracing)
    [exchange] = tape.exchanges().values()
    cut = MemoryTape([fact for fact in tape.facts() if fact.seq < exchange.first_seq], tape.instance)
    fork = Traced()
    replay(lambda: ask(server.url), cut, plan=Plan("fork"), tracing=fork.tracing)
    [span] = fork.clients
    assert sent(server)[1:] == [{"traceparent": header(span)}]


@pytest.mark.parametrize("ask", [by_httpx, by_requests])
def test_baggage_and_trace_state_go_along(ask, server, traced):
    outer = SpanContext(
        1, 2, is_remote=True, trace_flags=TraceFlags(1), trace_state=TraceState([("v", "1")])
    )
    around = trace.set_span_in_context(trace.NonRecordingSpan(outer), baggage.set_baggage("user", "7"))

    def program():
        token = context.attach(around)
        try:
            ask(server.url)
            ask(server.url, {"baggage": "own=1"})
        finally:
            context.detach(token)

    record(program, tracing=traced.tracing)
    first, second = traced.clients
    assert first.trace_id == 1
    assert sent(server) == [
        {"traceparent": header(first), "tracestate": "v=1", "baggage": "user=7"},
        {"traceparent": header(second), "tracestate": "v=1", "baggage": "own=1"},
    ]


@pytest.mark.parametrize("ask", [by_httpx, by_requests, by_aiohttp])
def test_a_span_that_is_not_sampled_goes_out_as_such(ask, server):
    traced = Traced(sampler=ALWAYS_OFF)
    record(lambda: ask(server.url), tracing=traced.tracing)
    assert not int(sent(server)[0]["traceparent"][-2:], 16) & TraceFlags.SAMPLED


def test_what_is_suppressed_gets_nothing(server, traced):
    with recording(tracing=traced.tracing), suppress_http_instrumentation():
        for ask in CLIENTS:
            ask(server.url)
    assert sent(server) == [{}] * len(CLIENTS)


@pytest.mark.parametrize("ask", CLIENTS)
def test_excluded_urls_get_nothing(ask, server, traced):
    settings = replace(CAUSAL, propagation_excluded_urls=r"example\.com, ://127\.0\.0\.1")
    record(lambda: ask(server.url), settings=settings, tracing=traced.tracing)
    assert sent(server) == [{}]


def test_urls_that_an_instrumentor_excludes_get_nothing(server, traced, monkeypatch):
    monkeypatch.setenv("OTEL_PYTHON_HTTPX_EXCLUDED_URLS", "/partner")
    settings = replace(CAUSAL, propagation_excluded_urls="/unused-here")
    asks = [lambda: by_httpx(f"{server.url}/partner"), lambda: by_httpx(f"{server.url}/own")]
    record(lambda: [ask() for ask in asks], settings=settings, tracing=traced.tracing)
    assert [set(one) for one in sent(server)] == [set(), {"traceparent"}]


def test_no_propagator_adds_nothing(server, traced):
    propagator = propagate.get_global_textmap()
    propagate.set_global_textmap(CompositePropagator([]))
    try:
        record(lambda: [ask(server.url) for ask in CLIENTS], tracing=traced.tracing)
    finally:
        propagate.set_global_textmap(propagator)
    assert sent(server) == [{}] * len(CLIENTS)


def test_a_propagator_that_fails_changes_nothing(server, traced):
    class Failing(CompositePropagator):
        def inject(self, *args, **kwargs):
            raise RuntimeError

    propagator = propagate.get_global_textmap()
    propagate.set_global_textmap(Failing([]))
    try:
        _, tape = record(lambda: [ask(server.url) for ask in CLIENTS], tracing=traced.tracing)
    finally:
        propagate.set_global_textmap(propagator)
    assert sent(server) == [{}] * len(CLIENTS)
    assert len(tape.exchanges()) == len(CLIENTS)


def test_a_transport_that_adds_the_context_itself_sends_it_once(server, traced):
    """As the instrumentor of httpx does, below the patch of playhead."""

    class Instrumented(httpx.HTTPTransport):
        def handle_request(self, request):
            with traced.tracer.start_as_current_span("theirs"):
                propagate.inject(request.headers)
                return super().handle_request(request)

    def program():
        with httpx.Client(transport=Instrumented()) as client:
            client.get(server.url)

    record(program, tracing=traced.tracing)
    [theirs] = [one for one in traced.exporter.get_finished_spans() if one.name == "theirs"]
    assert sent(server) == [{"traceparent": header(theirs.get_span_context())}]


def test_each_hop_of_a_redirect_sends_its_own_span(traced):
    with ScriptedServer() as server:
        server.script([json_reply({}, 302, {"location": "/next"}), json_reply({})])
        record(lambda: httpx.get(server.url, follow_redirects=True), tracing=traced.tracing)
    assert [one["traceparent"] for one in sent(server)] == [header(span) for span in traced.clients]
