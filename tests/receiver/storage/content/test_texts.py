"""Large values are stored once, and every span comes back byte for byte."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.letters import LETTERS
from support.tapes.odd_spans import field, texts

from playhead_core.otlp import set_attributes
from playhead_receiver.storage import Batch, Store, StoredSpan, open_store
from playhead_receiver.storage.content.cut_points import bodies, list_end, plain_bodies, seams
from playhead_receiver.storage.spans.span_view import open_frame

STEPS = 60
WORDS = [f"{number:x}ab" for number in range(4000, 9000)]


def prose(rng: random.Random, size: int) -> str:
    return " ".join(rng.choices(WORDS, k=size // 6))


def message(rng: random.Random, size: int = 1200) -> dict[str, Any]:
    return {"role": "user", "parts": [{"type": "text", "content": prose(rng, size)}]}


def span_with(trace_id: bytes, number: int, attributes: dict[str, Any]) -> StoredSpan:
    envelope = ResourceSpans()
    set_attributes(envelope.resource.attributes, {"service.name": "shop"})
    span = envelope.scope_spans.add().spans.add(
        trace_id=trace_id,
        span_id=number.to_bytes(8, "big"),
        name="chat gpt-4o",
        start_time_unix_nano=number,
        end_time_unix_nano=number + 1,
    )
    set_attributes(span.attributes, attributes)
    return StoredSpan(trace_id, span.span_id, envelope.SerializeToString())


def stored_bytes(store: Any) -> int:
    """Bytes of all frames of spans."""
    return sum(len(row[0]) for row in store._reader.all("SELECT data FROM bundle"))


def committed(place: Path, spans: list[StoredSpan]) -> tuple[Store, int]:
    """A store with ``spans``, each in a commit of its own, that gives them back; bytes of its frames."""
    store = open_store(place)
    for span in spans:
        store.commit(Batch([span]))
    by_trace: dict[bytes, list[StoredSpan]] = {}
    for span in spans:
        by_trace.setdefault(span.trace_id, []).append(span)
    for trace_id, expected in by_trace.items():
        assert list(store.spans(trace_id)) == expected
    assert [change.item for change in store.changes(0, 10_000)] == spans
    return store, stored_bytes(store)


def as_text(history: list[dict[str, Any]], step: int) -> dict[str, Any]:
    return {"gen_ai.input.messages": json.dumps(history), "app.step": step}


def as_compact_text(history: list[dict[str, Any]], step: int) -> dict[str, Any]:
    text = json.dumps(history, separators=(",", ":"), ensure_ascii=False)
    return {"app.step": step, "gen_ai.input.messages": text, "z": "after"}


def as_structure(history: list[dict[str, Any]], step: int) -> dict[str, Any]:
    return {"app.step": step, "gen_ai.input.messages": history}


def as_openinference(history: list[dict[str, Any]], step: int) -> dict[str, Any]:
    flat: dict[str, Any] = {"llm.model_name": "gpt-4o", "app.step": step}
    for place, one in enumerate(history):
        flat[f"llm.input_messages.{place}.message.role"] = one["role"]
        flat[f"llm.input_messages.{place}.message.content"] = one["parts"][0]["content"]
    return flat | {"llm.output_messages.0.message.role": "assistant", "output.value": "x" * 50}


def as_traceloop(history: list[dict[str, Any]], step: int) -> dict[str, Any]:
    flat: dict[str, Any] = {"gen_ai.system": "openai", "app.step": step}
    for place, one in enumerate(history):
        flat[f"gen_ai.prompt.{place}.role"] = one["role"]
        flat[f"gen_ai.prompt.{place}.content"] = one["parts"][0]["content"]
    return flat | {"gen_ai.completion.0.role": "assistant"}


def as_entity_input(history: list[dict[str, Any]], step: int) -> dict[str, Any]:
    return {"traceloop.entity.input": json.dumps({"inputs": {"messages": history}, "tags": []})}


def as_pretty_text(history: list[dict[str, Any]], step: int) -> dict[str, Any]:
    return {"gen_ai.input.messages": json.dumps(history, indent=2) + "\n"}


def as_prompt(history: list[dict[str, Any]], step: int) -> dict[str, Any]:
    return {"prompt": "\n\n".join(f"Human: {one['parts'][0]['content']}" for one in history)}


FORMS = (
    as_text,
    as_compact_text,
    as_structure,
    as_openinference,
    as_traceloop,
    as_entity_input,
    as_pretty_text,
    as_prompt,
)


def growing(form: Any, steps: int = STEPS, trace_of: Any = lambda step: b"t" * 16) -> list[StoredSpan]:
    rng = random.Random(7)
    history: list[dict[str, Any]] = []
    spans: list[StoredSpan] = []
    for step in range(steps):
        history += (message(rng), message(rng, 200))
        spans.append(span_with(trace_of(step), step + 1, form(history, step)))
    return spans


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_a_growing_history_is_stored_once(tmp_path: Path, form: Any):
    spans = growing(form)
    store, kept = committed(tmp_path, spans)
    said = len(spans[-1].otlp)
    assert sum(len(span.otlp) for span in spans) > 25 * said
    assert kept < 2 * said
    store.close()


@pytest.mark.parametrize("form", FORMS[:5], ids=lambda form: form.__name__)
def test_turns_that_are_traces_of_their_own_cost_no_more(tmp_path: Path, form: Any):
    _, together = committed(tmp_path / "together", growing(form))
    store, apart = committed(
        tmp_path / "apart", growing(form, trace_of=lambda step: (step + 1).to_bytes(16, "little"))
    )
    assert apart < 1.3 * together
    links = set(store._reader.all("SELECT target, bundle FROM text_link"))  # type: ignore[attr-defined]
    assert len({bundle for _, bundle in links}) >= STEPS - 2
    store.close()


def test_a_history_is_found_again_after_a_restart(tmp_path: Path):
    spans = growing(as_compact_text)
    for span in spans:
        store = open_store(tmp_path)
        store.commit(Batch([span]))
        store.close()
    store = open_store(tmp_path)
    assert list(store.spans(b"t" * 16)) == spans
    assert stored_bytes(store) < 2 * len(spans[-1].otlp)
    store.close()


def test_histories_that_are_trimmed_and_edited_are_stored_once_too(tmp_path: Path):
    rng = random.Random(3)
    system, messages = message(rng), [message(rng) for _ in range(STEPS + 20)]
    spans: list[StoredSpan] = []
    for step in range(STEPS):
        window = [system, *messages[step : step + 20]]
        if step % 5 == 0:
            window[3] = message(rng)
        spans.append(span_with(b"t" * 16, step + 1, as_text(window, step)))
    store, kept = committed(tmp_path, spans)
    said = len(json.dumps([system, *messages])) + 12 * 1300
    assert sum(len(span.otlp) for span in spans) > 10 * said
    assert kept < 2 * said
    store.close()


def test_what_two_agents_say_alike_is_stored_once(tmp_path: Path):
    rng = random.Random(3)
    tools = json.dumps(
        [{"name": f"tool-{number}", "description": prose(rng, 800)} for number in range(30)]
    )
    system = prose(rng, 5000)
    spans = [
        span_with(
            number.to_bytes(16, "big"),
            number,
            {"gen_ai.tool.definitions": tools, "gen_ai.system_instructions": system},
        )
        for number in range(1, 21)
    ]
    store, kept = committed(tmp_path, spans)
    assert kept < 1.2 * (len(tools) + len(system))
    store.close()


def test_a_batch_that_failed_leaves_nothing_to_refer_to(tmp_path: Path):
    spans = growing(as_compact_text, 4)
    store: Any = open_store(tmp_path)
    store.commit(Batch(spans[:1]))
    rows = store._writer._backend._rows
    finish = rows._tables.finish
    rows._tables.finish = lambda *_: 1 / 0
    with pytest.raises(ZeroDivisionError):
        store.commit(Batch(spans[1:2]))
    rows._tables.finish = finish
    for span in spans[2:]:
        store.commit(Batch([span]))
    assert list(store.spans(b"t" * 16)) == [spans[0], *spans[2:]]
    store.close()


def test_resending_stores_nothing(tmp_path: Path):
    spans = growing(as_text, 10)
    store, kept = committed(tmp_path, spans)
    for span in spans:
        assert store.commit(Batch([span])).spans_new == 0
    assert stored_bytes(store) == kept
    store.close()


def test_a_span_of_many_megabytes(tmp_path: Path):
    text = os.urandom(6_000_000).hex()
    spans = [
        span_with(b"t" * 16, number, {"gen_ai.input.messages": json.dumps([{"a": text}] * number)})
        for number in (1, 2)
    ]
    store, kept = committed(tmp_path, spans)
    assert kept < 2.5 * 6_000_000
    store.close()


@given(text=st.one_of(texts, st.binary(max_size=200).map(lambda data: data.decode("latin-1"))))
def test_seams_lie_in_the_text(text: str):
    body = text.encode()
    body = body[: list_end(body, 0, len(body))] if body else body
    found = seams(body, 1)
    assert found == sorted(set(found))
    assert all(0 < one <= len(body) for one in found)


def test_seams_of_a_list_are_the_ends_of_its_elements():
    text = b'[ {"a": "}, {"} ,[1,{}], "x"\n ]'
    body = text[: list_end(text, 0, len(text))]
    ends = seams(body, 1)
    assert [body[begin:end] for begin, end in zip([0, *ends], ends, strict=False)] == [
        b'[ {"a": "}, {"}',
        b" ,[1,{}]",
        b', "x"',
    ]
    assert ends[-1] == len(body)


def test_bytes_that_are_no_span_have_no_large_values():
    for found in (bodies, plain_bodies):
        for data in (b"\x12\xff\xff", os.urandom(500)):
            assert found(data, 0, len(data)) == []
    for data in (b"\x4a\xff\xff\xff\xff\x7f\x0a\x01k", b"\x4a\x80\x01\x0a\x7f"):
        assert plain_bodies(data, 0, len(data)) == []
    nested = field(9, field(1, b"k") + field(2, field(1, b"x" * 200)))
    for front, back in ((b"J", b""), (b"J", b"J"), (b"", b"")):
        data = front + nested + back
        found = plain_bodies(data, 0, len(data) - len(back))
        assert [(one.key, data[one.begin : one.end]) for one in found] == [(b"k", b"x" * 200)]
    assert plain_bodies(nested, 0, len(nested) - 1) == []


@given(
    attributes=st.dictionaries(
        st.text(LETTERS, max_size=140),
        st.one_of(
            st.integers(0, 40_000).map(lambda size: "J\n" * (size // 2)),
            st.binary(max_size=300),
            st.lists(st.text(LETTERS, max_size=120), max_size=4),
            st.integers(-5, 1 << 40),
            st.booleans(),
        ),
        max_size=12,
    )
)
def test_large_attributes_are_found_without_a_walk(attributes: dict[str, Any]):
    otlp = span_with(b"t" * 16, 1, attributes).otlp
    span = open_frame(otlp)[1]
    place = otlp.index(span), otlp.index(span) + len(span)
    short_keys = [one for one in bodies(otlp, *place) if 0 < len(one.key) < 128]
    assert [one for one in plain_bodies(otlp, *place) if one.key] == short_keys
    assert AnyValue.FromString(field(1, b"x")).string_value == "x"
