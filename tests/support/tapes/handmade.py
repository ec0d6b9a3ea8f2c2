"""Tapes and a store built fact by fact, for tests that need no agent."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_core.errors import RunUnknown
from playhead_core.facts import Content, Delivery, ErrorRecord, ExchangeId, Fact, digest_of
from playhead_core.integrity import Link
from playhead_core.otlp import set_attributes
from playhead_core.otlp.log_records import ALL_LOGS, LogQuery
from playhead_core.tape import span_starts
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_receiver.storage.values.run_summaries import Query, RunSummary
from playhead_receiver.storage.values.stored import Batch, Change, Receipt, StoredLog, StoredSpan
from playhead_semconv import attributes as a
from playhead_semconv import events as e

INSTANCE = bytes(range(16))
NOW_INSTANCE = bytes(range(16, 32))
TRACE = bytes.fromhex("4f2a1111111111111111111111111111")
NOW_TRACE = bytes.fromhex("4f2b2222222222222222222222222222")
MAIN = 1
START_NS = 1_700_000_000_000_000_000
SECOND = 1_000_000_000
ROOT = 0xA0


def span_id(number: int) -> bytes:
    return number.to_bytes(8, "big")


def carried_start(
    span_id: int, parent_id: int, name: str, kind: int, time_ns: int, attributes: dict[str, Any]
) -> dict[str, Any]:
    """Return one start, as an ask carries it in ``playhead.ask.spans``.

    ``parent_id``: 0 for a root. ``kind``: as OTLP numbers it.
    """
    return {
        "span_id": f"{span_id:016x}",
        "parent_id": f"{parent_id:016x}" if parent_id else "",
        "name": name,
        "kind": kind,
        "time_ns": time_ns,
        "attributes": attributes,
    }


class HandMade:
    """Writes a tape fact by fact, and its spans."""

    def __init__(self, instance: bytes = INSTANCE, trace_id: bytes = TRACE) -> None:
        self.instance, self.trace_id = instance, trace_id
        self.facts: list[Fact] = []
        self.spans: list[StoredSpan] = []
        self.at_ns = START_NS
        self._ordinals: dict[tuple[int, str], int] = {}
        self._batch = 0
        self._numbers = (number for number in itertools.count(1) if number != ROOT)
        self._started: dict[int, tuple[int, str, int, int, dict[str, Any]]] = {}
        self._untold: list[dict[str, Any]] = []

    def fact(self, name: str, lane: int = MAIN, span: int = 0, **fields: Any) -> Fact:
        fact = Fact(
            time_ns=self.at_ns,
            lane=lane,
            name=name,
            trace_id=self.trace_id,
            span_id=span_id(span) if span else b"",
            instance=self.instance,
            seq=len(self.facts),
            **fields,
        )
        self.facts.append(fact)
        return fact

    def start(self, script: Path | str = "agent.py", cwd: str = "", **attributes: Any) -> HandMade:
        path = Path(script)
        digest = digest_of(path.read_bytes()).hex() if path.is_file() else ""
        self.fact(
            e.PLAYHEAD_PROCESS_START,
            span=ROOT,
            attributes={
                a.PLAYHEAD_RUN_ARGV: [str(script), "--order", "81"],
                a.PLAYHEAD_RUN_SCRIPT: str(script),
                a.PLAYHEAD_RUN_SCRIPT_DIGEST: digest,
                a.PLAYHEAD_RUN_CWD: cwd,
                a.PLAYHEAD_RUN_INTERPRETER: sys.executable,
                a.PLAYHEAD_RUN_HASH_SEED: "0",
                a.PLAYHEAD_RUN_LEVEL: "strict",
                a.PLAYHEAD_RUN_AGENT: "refund",
                a.PLAYHEAD_RUN_MODE: "record",
                a.PLAYHEAD_PROCESS_PID: 4242,
                **attributes,
            },
        )
        self.fact(e.PLAYHEAD_LANE, attributes={a.PLAYHEAD_LANE_NAME: "main", a.PLAYHEAD_LANE_PARENT: ""})
        self.begin("run agent.py", number=ROOT, parent=0, kind=1)
        return self

    def begin(
        self,
        name: str,
        *,
        number: int = 0,
        parent: int = ROOT,
        kind: int = 1,
        carried: bool = False,
        **attributes: Any,
    ) -> int:
        """Start a span. Returns its number. ``carried``: its start is part of the next ask."""
        number = number or next(self._numbers)
        at = {key.replace("__", "."): value for key, value in attributes.items()}
        self._started[number] = (self.at_ns, name, parent, kind, at)
        if carried:
            ids = (int.from_bytes(span_id(one)) if one else 0 for one in (number, parent))
            self._untold.insert(0, carried_start(*ids, name, kind, self.at_ns, at))
            return number
        self.fact(
            e.PLAYHEAD_SPAN_START,
            span=number,
            attributes={
                a.PLAYHEAD_SPAN_NAME: name,
                a.PLAYHEAD_SPAN_KIND: kind,
                a.PLAYHEAD_SPAN_PARENT: span_id(parent).hex() if parent else "",
                **at,
            },
        )
        return number

    def finish(self, number: int, *, error: str = "", **attributes: Any) -> None:
        """End a span."""
        started_ns, name, parent, kind, at = self._started[number]
        envelope = ResourceSpans()
        set_attributes(envelope.resource.attributes, {a.PLAYHEAD_INSTANCE: self.instance.hex()})
        span = envelope.scope_spans.add().spans.add()
        span.trace_id, span.span_id = self.trace_id, span_id(number)
        span.parent_span_id = span_id(parent) if parent else b""
        span.name, span.kind = name, kind
        span.start_time_unix_nano, span.end_time_unix_nano = started_ns, self.at_ns
        if error:
            span.status.code, span.status.message = 2, error
        added = {key.replace("__", "."): value for key, value in attributes.items()}
        set_attributes(span.attributes, {**at, **added})
        self.spans.append(StoredSpan(self.trace_id, span_id(number), envelope.SerializeToString()))

    def wait(self, seconds: float) -> HandMade:
        self.at_ns += int(seconds * SECOND)
        return self

    def exchange(
        self,
        key: str = "POST http://provider/v1/chat/completions",
        request: bytes = b"{}",
        chunks: tuple[bytes, ...] = (b"{}",),
        *,
        status: int = 200,
        how: str = "complete",
        error: ErrorRecord | None = None,
        lane: int = MAIN,
        span: int = 0,
        answered: bool = True,
        headers: tuple[str, ...] = ("content-type", "application/json"),
        kind: str = "http",
        **stated: Any,
    ) -> ExchangeId:
        """A complete exchange; ``headers``: of the answer; ``kind``: of its id.

        ``stated``: fidelity and origin, as a player states them.
        """
        place = (lane, kind)
        ordinal = self._ordinals.get(place, 0)
        self._ordinals[place] = ordinal + 1
        call = ExchangeId(lane, kind, ordinal)
        if self._untold:
            stated[a.PLAYHEAD_ASK_SPANS] = self._untold
            self._untold = []
        self.fact(
            e.PLAYHEAD_EXCHANGE_REQUEST,
            lane,
            span,
            exchange=call,
            attributes={a.PLAYHEAD_ASK_KEY: key, a.PLAYHEAD_ASK_EFFECT: "read", **stated},
            body=Content.of(request),
        )
        if not answered:
            return call
        self.wait(0.1)
        if status:
            self.fact(
                e.PLAYHEAD_EXCHANGE_RESPONSE,
                lane,
                span,
                exchange=call,
                delivery=self._deliver(),
                attributes={
                    a.HTTP_RESPONSE_STATUS_CODE: status,
                    a.PLAYHEAD_HTTP_HEADERS: list(headers),
                },
            )
        for chunk in chunks if status else ():
            self.wait(0.1)
            self.fact(
                e.PLAYHEAD_EXCHANGE_DATA,
                lane,
                span,
                exchange=call,
                delivery=self._deliver(),
                body=Content.chunk(chunk),
            )
        failure = (
            {
                a.PLAYHEAD_ERROR_MODULE: error.module,
                a.PLAYHEAD_ERROR_QUALNAME: error.qualname,
                a.PLAYHEAD_ERROR_MESSAGE: error.message,
            }
            if error
            else {}
        )
        self.fact(
            e.PLAYHEAD_EXCHANGE_END,
            lane,
            span,
            exchange=call,
            delivery=self._deliver(),
            attributes={a.PLAYHEAD_END_HOW: how, **failure},
        )
        return call

    def chat(
        self,
        request: bytes = b'{"model":"gpt-4o"}',
        chunks: tuple[bytes, ...] = (b"{}",),
        *,
        name: str = "chat gpt-4o",
        tokens: tuple[int, int] = (812, 64),
        **fields: Any,
    ) -> int:
        """A logical call with one attempt. Returns the number of its span."""
        call = self.begin(
            name, kind=3, **{a.GEN_AI_OPERATION_NAME: "chat", "gen_ai.request.model": "gpt-4o"}
        )
        attempt = self.begin("POST", parent=call, kind=3, **{a.HTTP_REQUEST_METHOD: "POST"})
        self.exchange(request=request, chunks=chunks, span=attempt, **fields)
        self.finish(attempt)
        usage = dict(
            zip((a.GEN_AI_USAGE_INPUT_TOKENS, a.GEN_AI_USAGE_OUTPUT_TOKENS), tokens, strict=True)
        )
        self.finish(call, **usage)
        return call

    def stream(self, chunks: tuple[bytes, ...]) -> tuple[int, int]:
        """A call whose spans name their exchange, as recorded ones do. Numbers of call and attempt."""
        call = self.begin("chat gpt-4o", kind=3, **{a.GEN_AI_OPERATION_NAME: "chat"})
        attempt = self.begin("POST", parent=call, kind=3, **{a.HTTP_REQUEST_METHOD: "POST"})
        exchange = self.exchange(chunks=chunks, span=attempt)
        self.finish(attempt, **{a.PLAYHEAD_EXCHANGE_ID: str(exchange)})
        self.finish(call, **{a.PLAYHEAD_EXCHANGE_REF: f"{self.instance.hex()}/{exchange}"})
        return call, attempt

    def tool(self, name: str, arguments: str, *, error: str = "") -> int:
        """A tool execution."""
        number = self.begin(
            f"execute_tool {name}",
            **{
                a.GEN_AI_OPERATION_NAME: "execute_tool",
                a.GEN_AI_TOOL_NAME: name,
                a.GEN_AI_TOOL_CALL_ARGUMENTS: arguments,
            },
        )
        self.wait(0.2)
        self.finish(number, error=error, **({a.ERROR_TYPE: error.split(":")[0]} if error else {}))
        return number

    def say(self, text: str, kind: str = "stdout", target: str = "") -> HandMade:
        self.fact(
            e.PLAYHEAD_EFFECT,
            attributes={a.PLAYHEAD_EFFECT_KIND: kind, a.PLAYHEAD_EFFECT_TARGET: target},
            body=Content.chunk(text.encode()),
        )
        return self

    def exit(self, code: int = 0) -> HandMade:
        if ROOT in self._started:
            self.finish(ROOT)
        self.fact(
            e.PLAYHEAD_PROCESS_EXIT,
            attributes={
                a.PLAYHEAD_PROCESS_EXIT_CODE: code,
                a.PLAYHEAD_PROCESS_LAST_SEQ: len(self.facts),
            },
        )
        return self

    def tape(self, without: tuple[int, ...] = ()) -> MemoryTape:
        return MemoryTape([fact for fact in self.facts if fact.seq not in without], self.instance)

    def _deliver(self) -> Delivery:
        self._batch += 1
        return Delivery(self._batch, 0)


class HandMadeTape(MemoryTape):
    """A memory tape with the additional members of a stored tape."""


class HandMadeStore:
    """A store in memory that holds the given runs."""

    def __init__(self) -> None:
        self.summaries: list[RunSummary] = []
        self.tapes: dict[str, HandMadeTape] = {}
        self.stored: list[StoredSpan] = []
        self.log: list[Change] = []
        self.names: dict[str, RunSummary] = {}

    def add(self, made: HandMade, name: str, **fields: Any) -> RunSummary:
        defaults: dict[str, Any] = {
            "root_span_id": span_id(ROOT).hex(),
            "agent": name.rsplit("-", 1)[0],
            "status": "success",
            "started_ns": made.facts[0].time_ns,
            "ended_ns": made.at_ns,
            "steps": 1,
            "errors": 0,
            "input_tokens": 0,
            "output_tokens": 0,
            "models": [],
            "missing": [],
        }
        summary = RunSummary(
            name=name,
            trace_id=made.trace_id.hex(),
            instances=[made.instance.hex()],
            **{**defaults, **fields},
        )
        self.summaries.insert(0, summary)
        self.tapes[made.instance.hex()] = HandMadeTape(made.facts, made.instance)
        self.stored += made.spans
        for item in [*made.facts, *made.spans]:
            self.log.append(Change(len(self.log) + 1, item))
        return summary

    def commit(self, batch: Batch) -> Receipt:
        raise AssertionError("these tests do not write")

    def tape(self, instance: bytes) -> HandMadeTape:
        return self.tapes.get(instance.hex()) or HandMadeTape([], instance)

    def tape_of(self, instance: bytes, trace_id: bytes) -> HandMadeTape:
        return self.tape(instance)

    def spans(self, trace_id: bytes) -> Iterator[StoredSpan]:
        return (span for span in self.stored if span.trace_id == trace_id)

    def logs(self, trace_id: bytes, wanted: LogQuery = ALL_LOGS) -> Iterator[StoredLog]:
        return iter(())

    def pending(self, trace_id: bytes) -> Iterator[Fact]:
        done = {span.span_id for span in self.stored}
        for tape in self.tapes.values():
            for fact in span_starts.starts_among(tape.facts()):
                if fact.span_id not in done:
                    yield fact

    def chain(self, instance: bytes) -> list[Link]:
        return []

    def resource(self, instance: bytes) -> bytes | None:
        return None

    def runs(self, query: Query) -> Iterator[RunSummary]:
        for summary in self.summaries[: query.limit]:
            if query.mode in (None, summary.mode) and query.status in (None, summary.status):
                yield summary

    def resolve(self, name: str) -> RunSummary:
        if name == "last" and self.summaries:
            return self.summaries[0]
        for summary in self.summaries:
            if name in (summary.name, summary.trace_id):
                return summary
        raise RunUnknown(f"no run {name}", hint="playhead ls")

    def changes(self, after: int, limit: int = 1000) -> Iterator[Change]:
        return iter([change for change in self.log if change.position > after][:limit])

    def position(self) -> int:
        return len(self.log)

    def close(self) -> None:
        pass
