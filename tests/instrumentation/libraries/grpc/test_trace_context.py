"""The trace context in the metadata of gRPC calls: of the span of the call, once."""

import asyncio

import grpc
import grpc.aio
import pytest
from msgspec.structs import replace
from opentelemetry.instrumentation.utils import suppress_instrumentation
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from support.servers.grpc_server import GrpcServer
from support.tapes.sessions import CAUSAL, record, recording, replay

from playhead_core.rerun.plans import Plan
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_instrumentation.session.options import Tracing
from playhead_semconv import attributes as a

OWN = "00-11111111111111111111111111111111-2222222222222222-01"
QUESTION = b"context"


class Traced:
    def __init__(self):
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracing = Tracing(self.provider.get_tracer("test"))

    @property
    def headers(self):
        """The header of each finished span, as a server receives it."""
        found = [span.get_span_context() for span in self.exporter.get_finished_spans()]
        return [f"traceparent 00-{one.trace_id:032x}-{one.span_id:016x}-03" for one in found]


@pytest.fixture
def traced():
    return Traced()


@pytest.fixture(scope="module")
def target():
    with GrpcServer() as server:
        yield server.target


def blocking(target, metadata=None):
    with grpc.insecure_channel(target) as channel:
        got = [
            channel.unary_unary("/test.Service/Ask")(QUESTION, metadata=metadata),
            channel.unary_unary("/test.Service/Ask").future(QUESTION, metadata=metadata).result(),
            *channel.unary_stream("/test.Service/List")(QUESTION, metadata=metadata),
            channel.stream_unary("/test.Service/Collect")(iter([QUESTION]), metadata=metadata),
            *channel.stream_stream("/test.Service/Chat")(iter([QUESTION]), metadata=metadata),
        ]
    return [one.decode() for one in got]


def asynchronous(target, metadata=None):
    async def ask():
        async with grpc.aio.insecure_channel(target) as channel:
            listed = channel.unary_stream("/test.Service/List")(QUESTION, metadata=metadata)
            chat = channel.stream_stream("/test.Service/Chat")(iter([QUESTION]), metadata=metadata)
            return [
                await channel.unary_unary("/test.Service/Ask")(QUESTION, metadata=metadata),
                *[one async for one in listed],
                await channel.stream_unary("/test.Service/Collect")(iter([QUESTION]), metadata=metadata),
                *[one async for one in chat],
            ]

    return [one.decode() for one in asyncio.run(ask())]


BOTH = pytest.mark.parametrize("ask", [blocking, asynchronous])


@BOTH
def test_the_span_of_each_call_goes_out(ask, target, traced):
    got, tape = record(lambda: ask(target), tracing=traced.tracing)
    assert sorted(got) == sorted(traced.headers)
    again, now = replay(lambda: ask(target), tape, tracing=Traced().tracing)
    assert again == got
    for one in (*tape.exchanges().values(), *now.exchanges().values()):
        assert "traceparent" not in one.ask.details[a.PLAYHEAD_GRPC_METADATA]
    assert {one.ask.details[a.PLAYHEAD_FIDELITY] for one in now.exchanges().values()} == {"exact"}


@BOTH
def test_the_metadata_of_the_program_wins(ask, target, traced):
    got, _ = record(lambda: ask(target, (("traceparent", OWN), ("x", "1"))), tracing=traced.tracing)
    assert set(got) == {f"traceparent {OWN}"}


@BOTH
def test_suppressed_and_excluded_calls_send_nothing(ask, target, traced):
    with recording(tracing=traced.tracing), suppress_instrumentation():
        assert set(ask(target)) == {""}
    settings = replace(CAUSAL, propagation_excluded_urls="/test.Service/")
    got, _ = record(lambda: ask(target), tracing=traced.tracing, settings=settings)
    assert set(got) == {""}


@BOTH
def test_a_fork_that_goes_live_sends_its_own_spans(ask, target, traced):
    _, tape = record(lambda: ask(target), tracing=traced.tracing)
    first = min(one.first_seq for one in tape.exchanges().values())
    cut = MemoryTape([fact for fact in tape.facts() if fact.seq < first], tape.instance)
    fork = Traced()
    got, _ = replay(lambda: ask(target), cut, plan=Plan("fork"), tracing=fork.tracing)
    assert sorted(got) == sorted(fork.headers)
