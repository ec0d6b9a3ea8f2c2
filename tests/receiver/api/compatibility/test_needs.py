"""What the index of attributes is asked for leaves no trace out that a question finds something in."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.tapes.batches import span_of

from playhead_core.otlp import set_attributes
from playhead_receiver.api.compatibility.spans import SeenTrace, seen_of
from playhead_receiver.api.jaeger.finding import Wanted, matches, needs_of_wanted
from playhead_receiver.api.tempo.traceql import Matcher, parse
from playhead_receiver.api.tempo.traceql.needs import needs_of
from playhead_receiver.storage.runs.attribute_keys import FAILED, SPAN_NAME, equals, has
from playhead_receiver.storage.sql.search.searched_span import searched_span
from playhead_semconv import attributes as a

VALUES: list[Any] = ["red", "blue", "1", "", 1, 2, 1.0, 2.5, True, False, ["red", 2], [], "x" * 200]
VALUES += [{"k": 1}, b"\x01", 1234567, None]
LITERALS = ['"red"', '"blue"', '"1"', "1", "2", "2.5", "true", "false", "1234567", "2ns", "nil", "error"]
LITERALS += [f'"{"x" * 200}"']
FIELDS = [
    "span.v",
    ".v",
    "resource.v",
    "event.v",
    "link.v",
    "instrumentation.v",
    "span.w",
    "parent.span.v",
]
FIELDS += ["name", "status", "rootName", "rootServiceName", "resource.service.name", "duration"]
OWN = {"status": ["error", "ok", "nil"], "duration": ["1", "1s", "nil"]}
"""What only a value of its kind is compared with."""
WORDS = ['"red"', '"run"', '"front"', '"unknown_service"']
PATTERNS = ['"red|blue"', '"r.*"', '"run|chat gpt-4o"', '"front"', '"1"', '"x\\\\.y|red"']


def some_trace(draw: Random) -> list[ResourceSpans]:
    made: list[ResourceSpans] = []
    for number in range(1, draw.randint(2, 4)):
        span = span_of(
            b"t" * 16,
            number,
            parent=draw.choice((0, number - 1)),
            name=draw.choice(("run", "red", "chat gpt-4o")),
            service=draw.choice(("front", "red", "")),
            error=draw.random() < 0.3,
        )
        envelope = ResourceSpans.FromString(span.otlp)
        scoped = envelope.scope_spans[0]
        one = scoped.spans[0]
        holders = [one, one, envelope.resource, scoped.scope, one.events.add(), one.links.add()]
        for _ in range(draw.randint(0, 3)):
            holder: Any = draw.choice(holders)
            set_attributes(holder.attributes, {draw.choice("vw"): draw.choice(VALUES)})
        made.append(envelope)
    return made


def some_condition(draw: Random, depth: int = 2) -> str:
    if depth and draw.random() < 0.5:
        left, right = some_condition(draw, depth - 1), some_condition(draw, depth - 1)
        return f"({left} {draw.choice(('&&', '||'))} {right})"
    field = draw.choice(FIELDS)
    kind = draw.random()
    if kind < 0.15 and field not in OWN:
        return f"{field} {draw.choice(('=~', '!~'))} {draw.choice(PATTERNS)}"
    if kind < 0.2:
        return draw.choice(("span.v", "!span.v", "true"))
    named = WORDS if field.endswith(("ame", "Name")) else LITERALS
    literal = draw.choice(OWN.get(field, named))
    signs = ("=", "=", "!=") if literal in ("nil", "error", "ok") else ("=", "=", "=", "!=", ">", "<=")
    sides = [field, literal]
    if draw.random() < 0.1:
        sides.reverse()
    return f" {draw.choice(signs)} ".join(sides)


def some_query(draw: Random) -> str:
    parts = [f"{{ {some_condition(draw)} }}" for _ in range(draw.choice((1, 1, 2)))]
    ops = ("&&", "||", ">>", ">", "~", "!>>", "&>>", "<<")
    if draw.random() < 0.1:
        parts.append(f"({{ {some_condition(draw)} }} | count() > 1 | {{ {some_condition(draw)} }})")
    query = f" {draw.choice(ops)} ".join(parts)
    stages = ("", "", " | count() > 1", f" | {{ {some_condition(draw)} }}", " | by(span.v)")
    return query + draw.choice(stages)


@pytest.mark.parametrize("seed", range(4))
def test_no_trace_is_left_out_of_a_query(seed: int):
    draw = Random(seed)
    found = spared = 0
    for _ in range(500):
        envelopes, text = some_trace(draw), some_query(draw)
        query = parse(text)
        keys = {key for one in envelopes for key in searched_span(one.SerializeToString()).keys}
        met = all(not keys.isdisjoint(need) for need in needs_of(query))
        matched = bool(Matcher(SeenTrace(b"t" * 16, map(seen_of, envelopes))).find(query))
        assert met or not matched, text
        found, spared = found + matched, spared + (not met)
    assert found > 50 and spared > 50


def test_no_trace_is_left_out_of_jaegers_search():
    draw = Random(7)
    texts = [
        "red",
        "1",
        "2.5",
        "true",
        "[]",
        '["red",2]',
        "01",
        "1.23457e+06",
        "1234567",
        '{"k":1}',
        "null",
    ]
    found = spared = 0
    for _ in range(3000):
        envelopes = some_trace(draw)
        names = ["v", "w", "error", "span.kind", "service.name", "otel.scope.name"]
        wanted = Wanted(
            service=draw.choice(("", "", "front", "unknown_service")),
            operation=draw.choice(("", "", "run")),
            attributes={draw.choice(names): draw.choice(texts) for _ in range(draw.randint(0, 2))},
        )
        keys = {key for one in envelopes for key in searched_span(one.SerializeToString()).keys}
        met = all(not keys.isdisjoint(need) for need in needs_of_wanted(wanted))
        matched = any(matches(seen_of(one), wanted) for one in envelopes)
        assert met or not matched, wanted
        found, spared = found + matched, spared + (not met)
    assert found > 100 and spared > 100


def test_what_is_looked_for():
    either = '(span.a = 1 || span.b =~ "x|y\\\\.z")'
    wanted = needs_of(parse(f'{{ resource.service.name = "front" && {either} && status = error }}'))
    assert wanted == {
        equals(a.SERVICE_NAME, "front"),
        equals("a", 1) | equals("b", "x", "y.z"),
        has(FAILED),
    }
    assert needs_of(parse('{ name = "run" } >> { span.a > 3 } | { .b != nil }')) == {
        equals(SPAN_NAME, "run"),
        has("a"),
        has("b"),
    }
    for nothing in ("{}", "{ duration > 1s }", "{ .a = nil }", "{ .a = 1 || kind = server }"):
        assert needs_of(parse(nothing)) == set()
