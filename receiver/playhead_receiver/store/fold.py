"""The fold of a run's facts and spans into its summary. Engine-neutral and pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from playhead_receiver.store.protocol import RunStatus, RunSummary

HEARTBEAT_NS = 5_000_000_000
"""How often a process says that it lives, where it does not say how often."""

MISSED_HEARTBEATS = 3
"""A process that has said nothing for so many intervals is taken to be dead."""

FOREIGN_PATIENCE_NS = 300_000_000_000
"""How long a trace without a tape, whose root has not come, counts as running."""


class RunRow(msgspec.Struct, frozen=True):
    """What a store keeps of a run beside its facts and spans."""

    trace_id: bytes
    name: str
    agent: str
    mode: str
    origin: str
    started_ns: int
    arrived_ns: int
    """When something of it last came in, by the receiver's clock."""


class SpanRow(msgspec.Struct, frozen=True):
    """A finished span in a fold; ``end_ns`` None: started and not ended."""

    span_id: bytes
    parent: bytes
    start_ns: int
    end_ns: int | None
    failed: bool = False
    local_root: bool = False
    attempt: bool = False
    step: bool = False
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0


class InstanceRow(msgspec.Struct, frozen=True):
    """A process instance in a fold."""

    instance: bytes
    trace_id: bytes
    """Trace of the run that the process is; empty while its first fact has not come."""
    span_id: bytes
    """Its run root."""
    started_ns: int
    seen_ns: int
    """Last sign of life: the time of its last fact, or of that fact's arrival where that was earlier."""
    heartbeat_ns: int
    exited: bool
    failed: bool
    """Exit status other than 0, or an exception."""
    last_seq: int
    """The last number that is known to have been given."""
    ranges: list[tuple[int, int]]
    """What is there: first and last number of each stretch, ascending."""

    def alive(self, now_ns: int) -> bool:
        """Whether the process is to be taken as running."""
        return not self.exited and now_ns - self.seen_ns < MISSED_HEARTBEATS * self.heartbeat_ns

    def missing(self) -> list[tuple[int, int]]:
        """Ranges of numbers that were given and are not there, first and last included."""
        missing: list[tuple[int, int]] = []
        expected = 0
        for first, last in self.ranges:
            if first > expected:
                missing.append((expected, first - 1))
            expected = last + 1
        if self.last_seq >= expected:
            missing.append((expected, self.last_seq))
        return missing


def fold_run(
    run: RunRow, spans: Sequence[SpanRow], instances: Sequence[InstanceRow], now_ns: int
) -> RunSummary:
    """The summary of ``run``.

    ``spans``: finished and pending ones. ``instances``: all that took part, in order of their start.
    """
    root = _root(spans)
    own = [instance for instance in instances if instance.trace_id == run.trace_id]
    leader = next((one for one in own if root is None or one.span_id == root.span_id), None)
    if leader is None and own and not any(one.trace_id != run.trace_id for one in instances):
        leader = own[0]
    status = _status(run, root, leader, instances, now_ns)
    ends = [span.end_ns for span in spans if span.end_ns is not None]
    ends += [span.start_ns for span in spans if span.end_ns is None]
    if own or root is None or root.end_ns is None:
        # A process that serves goes on when a request is over.
        ends += [instance.seen_ns for instance in (own or instances)]
    last_ns = max(ends, default=run.started_ns)
    models = dict.fromkeys(
        span.model for span in sorted(spans, key=lambda span: span.start_ns) if span.model
    )
    counted = _token_bearers(spans)
    bare = _bare_requests(spans)
    root_id = root.span_id if root is not None else leader.span_id if leader is not None else b""
    return RunSummary(
        name=run.name,
        trace_id=run.trace_id.hex(),
        root_span_id=root_id.hex(),
        agent=run.agent,
        status=status,
        started_ns=run.started_ns,
        ended_ns=None if status == "running" else last_ns,
        steps=sum(span.step or span.span_id in bare for span in spans),
        errors=sum(
            span.failed and (not span.attempt or span.span_id in bare) and span is not root
            for span in spans
        ),
        input_tokens=sum(span.input_tokens for span in counted),
        output_tokens=sum(span.output_tokens for span in counted),
        models=list(models),
        instances=[instance.instance.hex() for instance in instances],
        missing=[
            (instance.instance.hex(), first, last)
            for instance in instances
            for first, last in instance.missing()
        ],
        mode=run.mode,
        origin=run.origin,
        spans=len(spans),
        last_ns=last_ns,
    )


def _root(spans: Iterable[SpanRow]) -> SpanRow | None:
    """The run root: the parentless span, else the earliest whose parent is in another process."""
    roots = [span for span in spans if span.local_root]
    return min(roots, key=lambda span: (bool(span.parent), span.start_ns), default=None)


def _status(
    run: RunRow,
    root: SpanRow | None,
    leader: InstanceRow | None,
    instances: Sequence[InstanceRow],
    now_ns: int,
) -> RunStatus:
    if leader is not None:
        if not leader.exited:
            return "running" if leader.alive(now_ns) else "interrupted"
        return "failure" if leader.failed or (root is not None and root.failed) else "success"
    if root is not None and root.end_ns is not None:
        return "failure" if root.failed else "success"
    if instances:
        alive = any(instance.alive(now_ns) for instance in instances)
    else:
        alive = now_ns - run.arrived_ns < FOREIGN_PATIENCE_NS
    return "running" if alive else "interrupted"


def _bare_requests(spans: Sequence[SpanRow]) -> set[bytes]:
    """HTTP requests that are steps of their own: no call, tool or other request encloses them."""
    known = {span.span_id: span for span in spans}
    bare: set[bytes] = set()
    for span in spans:
        if not span.attempt or span.local_root:
            continue
        above, seen = known.get(span.parent), {span.span_id}
        while above is not None and above.span_id not in seen and not above.step and not _inside(above):
            seen.add(above.span_id)
            above = known.get(above.parent)
        if above is None or above.span_id in seen:
            bare.add(span.span_id)
    return bare


def _inside(span: SpanRow) -> bool:
    return span.attempt and not span.local_root


def _token_bearers(spans: Sequence[SpanRow]) -> list[SpanRow]:
    """Spans with usage, without those whose descendants report it already."""
    bearing = {span.span_id: span for span in spans if span.input_tokens or span.output_tokens}
    if not bearing:
        return []
    parents = {span.span_id: span.parent for span in spans}
    covered: set[bytes] = set()
    for span in bearing.values():
        above = span.parent
        while above and above not in covered:
            covered.add(above)
            above = parents.get(above, b"")
    return [span for span_id, span in bearing.items() if span_id not in covered]
