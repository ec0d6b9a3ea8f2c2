"""TraceQL: what parses, what does not, and what it finds in a trace."""

from __future__ import annotations

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.tapes.batches import span_of

from playhead_core.errors import UsageError
from playhead_receiver.api.compatibility.spans import SeenTrace, seen_of
from playhead_receiver.api.tempo.traceql import Calculation, Matcher, parse, parse_metric

TRACE = b"t" * 16
SECOND = 10**9


def trace() -> SeenTrace:
    """1 run ─ 2 chat ─ 3 POST (failed); 1 ─ 4 execute_tool; 9 of another service, its parent unknown."""
    start = 1_700_000_000 * SECOND
    spans = [
        span_of(TRACE, 1, name="run", service="helper", end_ns=start + 9 * SECOND, turn=1),
        span_of(TRACE, 2, parent=1, service="helper", end_ns=start + 2 * SECOND, tokens=120, cached=0.5),
        span_of(
            TRACE, 3, parent=2, name="POST", service="helper", error=True, code=503, url="https://a/b"
        ),
        span_of(TRACE, 4, parent=1, name="execute_tool", service="helper", ok=True, many=["x", "y"]),
        span_of(TRACE, 9, parent=8, name="other", service="far", **{"a b": "quoted"}),
    ]
    return SeenTrace(TRACE, (seen_of(ResourceSpans.FromString(one.otlp)) for one in spans))


def found(query: str) -> str:
    sets = Matcher(trace()).find(parse(query))
    return "|".join("".join(str(span.span_id[-1]) for span in one.spans) for one in sets)


@pytest.mark.parametrize(
    ("query", "spans"),
    [
        ("{}", "12349"),
        ("{ true }", "12349"),
        ("{ false }", ""),
        ('{ name = "run" }', "1"),
        ('{ name =~ "ru.|PO.*" }', "13"),
        ('{ name =~ "u" }', ""),
        ('{ name !~ "ru.|POST" }', "249"),
        ("{ status = error }", "3"),
        ("{ status != error }", "1249"),
        ("{ kind = client && duration > 1s }", "12"),
        ("{ duration > 1s && duration < 5s }", "2"),
        ('{ resource.service.name = "far" }', "9"),
        ('{ .service.name = "far" }', "9"),
        ("{ span.tokens >= 100 }", "2"),
        ("{ .tokens > 119.5 && .cached = 0.5 }", "2"),
        ("{ .cached = .5 && .cached > -.5 && .cached < .75e1 }", "2"),
        ("{ duration > .5s && duration < 2.5s }", "2"),
        ("{.cached>.4}", "2"),
        ('{ span.tokens = "120" }', ""),
        ("{ span.tokens + 3 = 123 }", "2"),
        ("{ -span.tokens < -100 }", "2"),
        ("{ 2 * 3 + 1 = 7 }", "12349"),
        ("{ span.tokens / 0 = 1 }", ""),
        ("{ .ok }", "4"),
        ("{ !.ok }", ""),
        ("{ .ok != true }", ""),
        ("{ .code != nil }", "3"),
        ("{ .code = nil }", "1249"),
        ('{ .many = "y" }', "4"),
        ('{ .many != "y" }', ""),
        ('{ span."a b" = "quoted" }', "9"),
        ("{ .url = `https://a/b` }", "3"),
        ('{ .code = 503 || name = "run" && false }', "3"),
        ('{ (.code = 503 || name = "run") && status = error }', "3"),
        ("{ nestedSetParent < 0 }", "19"),
        ("{ nestedSetLeft = 1 }", "1"),
        ("{ span:childCount = 2 }", "1"),
        ("{ parent.turn = 1 }", "24"),
        ('{ trace:rootName = "run" && rootServiceName = "helper" }', "12349"),
        ("{ traceDuration > 8s }", "12349"),
        (f'{{ trace:id = "{TRACE.hex()}" }}', "12349"),
        (f'{{ span:id = "{3:016x}" }}', "3"),
        ('{ name = "run" } >> { status = error }', "3"),
        ('{ name = "run" } > { status = error }', ""),
        ('{ name = "run" } > { true }', "24"),
        ('{ name = "run" } !> { true }', "139"),
        ('{ name = "run" } &>> { status = error }', "13"),
        ("{ status = error } << { true }", "12"),
        ("{ status = error } < { true }", "2"),
        ('{ name = "execute_tool" } ~ { true }', "2"),
        ('{ name = "run" } && { status = error }', "13"),
        ('{ name = "run" } && { name = "nothing" }', ""),
        ('{ name = "run" } || { name = "nothing" }', "1"),
        ('({ name = "run" } >> { .code = 503 }) || { .ok }', "34"),
        ("{ true } | count() > 4", "12349"),
        ("{ true } | count() > 5", ""),
        ("{ true } | max(duration) > 8s", "12349"),
        ("{ true } | avg(.tokens) = 120", "12349"),
        ("{ true } | sum(.nothing) > 0", ""),
        ("{ true } | { status = error }", "3"),
        ("max(duration) > 8s | { status = error }", "3"),
        ("by(resource.service.name)", "1234|9"),
        ("{ true } | by(resource.service.name)", "1234|9"),
        ("{ true } | by(resource.service.name) | count() > 1", "1234"),
        ("{ true } | by(resource.service.name) | coalesce()", "12349"),
        ("{ .code = 503 } | select(name, .url)", "3"),
        ("{nestedSetParent<0 && true} | rate()  with(sample=true)", "19"),
        ("({ true } | count() > 4 | { status = error }) || { .ok }", "34"),
        ('({ name = "run" } | count() > 1) || { .ok }', "4"),
        ('{ name = "run" } >> ({ true } | max(duration) > 8s | { status = error })', "3"),
        ("(by(resource.service.name) | count() > 1) && { .ok }", "1234"),
        ("{ true } | count() > 8 / 2", "12349"),
        ("{ true } | count() > 2 + 3", ""),
    ],
)
def test_what_a_query_finds(query: str, spans: str):
    assert found(query) == spans


@pytest.mark.parametrize(
    "query",
    [
        "",
        "{",
        "{ . }",
        "{ name = }",
        "{ nothing = 1 }",
        '{ name = "run }',
        "{ true } | nothing()",
        "{ true } | count()",
        "{ true } | topk(3)",
        "{ true } | rate() | count() > 1",
        "{ true } | rate() | topk(0)",
        "{ true } | rate() > .x",
        "{ true } | rate() > `x`",
        "{ true } | compare({ status = error }, 10, 5)",
        "{ true } | quantile_over_time(duration)",
        '{ name =~ "(" }',
        "{ name =~ .x }",
        "{ true } { true }",
        "{ true } with(x)",
        "(" * 200 + "{}" + ")" * 200,
        "{ " + "!" * 500 + "true }",
        "{ " + "." * 10_001 + " }",
        "({ true } | rate()) || { true }",
        "({ true } | rate()) / ({ true } | rate())",
        "{ true } | compare({ status = error }) | topk(3)",
    ],
)
def test_what_is_no_query(query: str):
    with pytest.raises(UsageError):
        parse(query)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ('{ status = "error" }', 'status = "error" compares a status with text, leave the quotes out'),
        ('{ "server" != kind }', '"server" != kind compares text with a kind'),
        ("{ name = 3 }", "name = 3 compares text with a number"),
        ('{ duration > "1s" }', 'duration > "1s" compares a duration with text'),
        ("{ status > ok }", "status > ok: a status has no order"),
        ('{ duration =~ "1.*" }', 'duration =~ "1.*" compares a duration with text'),
        ("{ name }", "name is text, no condition"),
        ('{ .a && "b" }', '"b" is text, no condition'),
        ("{ !duration }", "! before duration, which is a duration"),
        ("{ name + 1 = 2 }", "name is text, no number"),
        ("{} | max(name) > 1", "name is text, no number"),
        ("{} | avg_over_time(status)", "status is a status, no number"),
    ],
)
def test_what_is_true_of_no_span_is_said(query: str, why: str):
    with pytest.raises(UsageError) as raised:
        parse(query)
    assert raised.value.what == f"invalid TraceQL query: {why}"


@pytest.mark.parametrize(
    "query",
    [
        "(({} | rate()) * ({} | rate())) + 3 / 2",
        "-2 - 20 / ({} | rate())",
        "(1 + 2) * ({} | rate() by(name) | topk(3) > 1) > -3 | bottomk(2) with(sample=0.1)",
        "(({ .a } >> { .b }) | rate()) / 2",
    ],
)
def test_what_is_arithmetic_of_metrics(query: str):
    assert isinstance(parse_metric(query), Calculation)


@pytest.mark.parametrize(
    "query",
    [
        "{} | rate() + 5",
        "5 + {} | rate()",
        "2 * 3",
        "1 / 0 * ({} | rate())",
        "({} | rate()) % 10",
        "({} | rate()) * 10s",
        "({} | rate()) > 10s * 2",
        "({} | rate()) + 5 100",
        "({} | count() > 1) + ({} | rate())",
        "({} | compare({ status = error })) * 2",
        "({} | compare({ status = error })) > 2",
        "({} | rate()) | { true }",
        "(" * 5000 + "{} | rate()" + ")" * 4000,
        "- ({} | rate())",
    ],
)
def test_what_is_no_arithmetic(query: str):
    with pytest.raises(UsageError):
        parse_metric(query)


def test_events_links_and_scopes_are_asked_for():
    envelope = ResourceSpans.FromString(span_of(TRACE, 1, name="run").otlp)
    scoped = envelope.scope_spans[0]
    scoped.scope.name, scoped.scope.version = "playhead", "1"
    span = scoped.spans[0]
    for name, kind in (("exception", "A"), ("exception", "B")):
        event = span.events.add(name=name, time_unix_nano=span.start_time_unix_nano + 5 * SECOND)
        event.attributes.add(key="exception.type").value.string_value = kind
    link = span.links.add(trace_id=b"l" * 16, span_id=b"l" * 8)
    link.attributes.add(key="why").value.string_value = "fork"
    matcher = Matcher(SeenTrace(TRACE, [seen_of(envelope)]))
    for query, there in (
        ('{ event.exception.type = "B" }', True),
        ('{ event:name = "exception" && event:timeSinceStart > 4s }', True),
        ('{ event.exception.type != "B" }', False),
        ('{ link.why = "fork" }', True),
        (f'{{ link:traceID = "{(b"l" * 16).hex()}" }}', True),
        ('{ instrumentation:name = "playhead" && instrumentation:version = "1" }', True),
    ):
        assert bool(matcher.find(parse(query))) == there, query


def test_spans_in_a_ring_are_no_endless_way():
    spans = [span_of(TRACE, 1, parent=2), span_of(TRACE, 2, parent=1)]
    ring = SeenTrace(TRACE, (seen_of(ResourceSpans.FromString(one.otlp)) for one in spans))
    matcher = Matcher(ring)
    assert len(matcher.find(parse("{} >> {}"))[0].spans) == 2
    assert matcher.find(parse("{ nestedSetLeft > 0 }")) == []


def test_a_pattern_takes_no_more_than_linear_time():
    spans = [span_of(TRACE, 1, text="a" * 900 + "!")]
    one = SeenTrace(TRACE, (seen_of(ResourceSpans.FromString(one.otlp)) for one in spans))
    assert Matcher(one).find(parse('{ span.text =~ "(a+)+" }')) == []
