"""Folds a run's spans and processes into its summary. Engine-neutral and pure.

The part that comes from the spans is a `SpanFold`, which engines store. The part that comes from the
processes changes with every sign of life, and is computed at query time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from playhead_core.reports import WORD_FIELDS
from playhead_core.untrusted.spans import opened_rings
from playhead_genai.run_fields import CONVERSATION
from playhead_genai.steps import CallTime, Nesting, Role
from playhead_genai.tool_reports import ToolTime
from playhead_receiver.storage.runs.costs import MOST, NANO, cost_of
from playhead_receiver.storage.runs.listing import FAILED, RECOVERED
from playhead_receiver.storage.spans.span_view import ResourceSummary
from playhead_receiver.storage.values.run_summaries import RunStatus, RunSummary
from playhead_receiver.storage.values.span_labels import SpanRow, Usage

HEARTBEAT_NS = 5_000_000_000
"""Default heartbeat interval of a process, if its tape does not state one."""

MISSED_HEARTBEATS = 3
"""A process that was silent for this many intervals counts as dead."""

FOREIGN_PATIENCE_NS = 300_000_000_000
"""How long a trace without a tape counts as running while its root span has not arrived.

After that it has the status of its outermost span: a gateway or a filter may have kept the root.
"""


class RunRow(msgspec.Struct, frozen=True):
    """What a store keeps about a run in addition to its facts and spans."""

    trace_id: bytes
    name: str
    agent: str
    mode: str
    origin: str
    started_ns: int
    arrived_ns: int
    """When something of it last arrived, by the receiver's clock."""
    conversation: str = ""
    """The first one."""
    marks: Sequence[str] = ()
    words: Mapping[str, Sequence[str]] = {}
    """Values of the fields of `playhead_genai.run_fields`, in any order."""


class SpanFold(msgspec.Struct, frozen=True, array_like=True):
    """Aggregates over the spans of a run, stored so that the spans need not be read again.

    Add fields at the end only, with a default.
    """

    root: bytes
    """Span id of the root; empty if no root is known."""
    root_ended: bool
    root_failed: bool
    last_ns: int
    """Latest end or start of the spans; 0 without spans."""
    spans: int
    steps: int
    errors: int
    usage: Usage
    cost: int | None
    """Billionths of a dollar; see `RunSummary.cost_usd`."""
    unpriced: list[str]
    models: list[str]
    providers: list[str]
    tools: list[str]
    error_types: list[str]
    version: str
    resource: int
    """Row of the resource of the root, else of the first span with a known resource."""
    request_failed: bool = False
    """Whether a service failed to answer a request of the run, and the root leaves its status unset."""
    top_failed: bool | None = None
    """Without a root: whether the outermost span that ended last failed.

    None if an outermost span has not ended, or if its parent belongs to the same process.
    """
    first_step: bytes = b""
    """Span id; see `RunSummary.first_step`."""
    last_step: bytes = b""


class InstanceRow(msgspec.Struct, frozen=True):
    """What is known about a process instance, for summaries."""

    instance: bytes
    trace_id: bytes
    """Trace id of the process's own run; empty while its first fact has not arrived."""
    span_id: bytes
    """Span id of its run root."""
    started_ns: int
    seen_ns: int
    """Last sign of life: the time of its last fact, or the time of that fact's arrival if earlier."""
    heartbeat_ns: int
    exited: bool
    failed: bool
    """Exit status other than 0, or an exception."""
    last_seq: int
    """The last sequence number that is known to have been assigned."""
    ranges: list[tuple[int, int]]
    """The numbers of the stored facts: first and last of each range, ascending."""
    lives: bool | None = None
    """Whether the process is known to be alive, or to have ended without a report; None: unknown."""

    def alive(self, now_ns: int) -> bool:
        """Whether the process counts as running."""
        if self.exited:
            return False
        silent_ns = now_ns - self.seen_ns
        return silent_ns < MISSED_HEARTBEATS * self.heartbeat_ns if self.lives is None else self.lives

    def missing(self) -> list[tuple[int, int]]:
        """Ranges of numbers that were assigned and are missing, first and last included."""
        missing: list[tuple[int, int]] = []
        expected = 0
        for first, last in self.ranges:
            if first > expected:
                missing.append((expected, first - 1))
            expected = last + 1
        if self.last_seq >= expected:
            missing.append((expected, self.last_seq))
        return missing


def without_rings(spans: list[SpanRow]) -> list[SpanRow]:
    """These spans, each below a root: `opened_rings` have no parent."""
    began = {span.span_id: span.start_ns for span in spans}
    if all(began.get(span.parent, -1) < span.start_ns for span in spans):
        return spans  # each after its parent: the way up ends
    in_order = sorted(spans, key=lambda span: (span.start_ns, span.span_id))
    opened = opened_rings({span.span_id: span.parent for span in in_order})
    if not opened:
        return spans
    return [
        msgspec.structs.replace(span, parent=b"") if span.span_id in opened else span for span in spans
    ]


def fold_spans(spans: Sequence[SpanRow]) -> SpanFold:
    """Aggregate the spans of a run, finished and pending ones, without rings."""
    root = _root(spans)
    by_time = sorted(spans, key=lambda span: span.start_ns)
    nesting = nesting_of(spans)
    steps = counted_steps(spans, nesting)
    counted = token_bearers(spans, nesting)
    cost, unpriced = cost_of((span.label, span.usage, span.start_ns) for span in counted)
    wrong = [
        span
        for span in by_time
        if (span.failed or span.label.error_type)  # the label may know it from the answer's bytes
        and (not span.label.attempt or span.span_id in steps)
    ]
    telling = [span for span in by_time if span.span_id in steps]
    telling = [span for span in telling if role_of(span) >= Role.CALL] or telling
    telling = [span for span in telling if span.usage.output] or telling  # not embeddings
    last = max(telling, key=lambda span: span.end_ns or 0, default=None)
    named = next((span for span in by_time if span.resource), None)
    if root is not None and root.resource:
        named = root
    return SpanFold(
        root=b"" if root is None else root.span_id,
        root_ended=root is not None and root.end_ns is not None,
        root_failed=root is not None and root.failed,
        last_ns=max(
            (span.start_ns if span.end_ns is None else span.end_ns for span in spans), default=0
        ),
        spans=len(spans),
        steps=len(steps),
        errors=sum(span is not root for span in wrong),
        usage=Usage(
            _most(sum(span.usage.input for span in counted)),
            _most(sum(span.usage.cached for span in counted)),
            _most(sum(span.usage.cache_write for span in counted)),
            _most(sum(span.usage.output for span in counted)),
            _most(sum(span.usage.reasoning for span in counted)),
        ),
        cost=None if cost is None else _most(cost),
        unpriced=unpriced,
        models=_distinct(span.label.model for span in by_time),
        providers=_distinct(span.label.provider for span in by_time),
        tools=_distinct(name for span in by_time for name in (span.label.tool, *span.label.called)),
        error_types=_distinct(span.label.error_type for span in wrong),
        version=next((span.label.version for span in by_time if span.label.version), ""),
        resource=0 if named is None else named.resource,
        request_failed=root is not None and _has_failed_request(root, spans),
        top_failed=_top_failed(spans) if root is None else None,
        first_step=telling[0].span_id if telling else b"",
        last_step=b"" if last is None else last.span_id,
    )


def _has_failed_request(root: SpanRow, spans: Sequence[SpanRow]) -> bool:
    """Whether a service failed to answer a request of a run whose root leaves its status unset.

    Instrumentations of servers set the status of each request, so unset means success for such a root.
    Of requests inside each other the outermost counts.
    """
    if root.label.ok or root.label.served:
        return False
    above = {span.span_id: span.parent for span in spans}
    served = {span.span_id for span in spans if span.label.served}  # and what is inside of one
    for span in spans:
        if span.failed and span.label.served:
            one = span.parent
            while one in above and one not in served:
                one = above[one]
            if one not in served:
                return True
            one = span.parent
            while one not in served:  # so that each span is passed once
                served.add(one)
                one = above[one]
    return False


def _top_failed(spans: Sequence[SpanRow]) -> bool | None:
    """`SpanFold.top_failed` of spans without a root."""
    known = {span.span_id for span in spans}
    tops = [span for span in spans if span.parent not in known]
    if not tops or any(span.end_ns is None or span.label.inner for span in tops):
        return None
    return max(tops, key=lambda span: span.end_ns or 0).failed


def _most(number: int) -> int:
    """Clamp absurd numbers of tokens or dollars to what a table can hold."""
    return min(max(number, -MOST), MOST)


def summary_of(
    run: RunRow,
    spans: SpanFold,
    resource: ResourceSummary | None,
    instances: Sequence[InstanceRow],
    now_ns: int,
) -> RunSummary:
    """The summary of ``run``. ``instances``: all participating processes, in order of their start."""
    own = [instance for instance in instances if instance.trace_id == run.trace_id]
    leader = next((one for one in own if not spans.root or one.span_id == spans.root), None)
    if own and not own[0].exited:
        leader = own[0]  # a child may deliver its spans and its end before the root of the run
    if leader is None and own and not any(one.trace_id != run.trace_id for one in instances):
        leader = own[0]
    status = _status(run, spans, leader, instances, now_ns)
    last_ns = spans.last_ns if spans.spans else 0
    if own or not spans.root_ended:
        # A service continues after a request has ended, so it does not extend the request's run.
        last_ns = max([last_ns, *(instance.seen_ns for instance in (own or instances))])
    root = spans.root or (b"" if leader is None else leader.span_id)
    last_ns = last_ns or run.started_ns
    failures, stuck = run.words.get("failure", ()), run.words.get("stuck", ())
    return RunSummary(
        name=run.name,
        trace_id=run.trace_id.hex(),
        root_span_id=root.hex(),
        agent=run.agent,
        status=status,
        started_ns=run.started_ns,
        ended_ns=None if status == "running" else last_ns,
        steps=spans.steps,
        errors=spans.errors,
        input_tokens=spans.usage.input,
        output_tokens=spans.usage.output,
        models=spans.models,
        instances=[instance.instance.hex() for instance in instances],
        missing=[
            (instance.instance.hex(), first, last)
            for instance in instances
            for first, last in instance.missing()
        ],
        mode=run.mode,
        origin=run.origin,
        spans=spans.spans,
        last_ns=last_ns,
        cached_tokens=spans.usage.cached,
        cache_write_tokens=spans.usage.cache_write,
        reasoning_tokens=spans.usage.reasoning,
        cost_usd=None if spans.cost is None else spans.cost / NANO,
        unpriced=spans.unpriced,
        providers=spans.providers,
        tools=spans.tools,
        error_types=spans.error_types,
        version=spans.version or ("" if resource is None else resource.version),
        environment="" if resource is None else resource.environment,
        conversation=run.conversation,
        conversations=_distinct((run.conversation, *run.words.get(CONVERSATION, ()))),
        users=list(run.words.get("user", ())),
        tags=list(run.words.get("tag", ())),
        prompts=list(run.words.get("prompt", ())),
        prompt_versions=list(run.words.get("prompt_version", ())),
        releases=list(run.words.get("release", ())),
        reported={field: list(run.words[field]) for field in WORD_FIELDS if field in run.words},
        failure_codes=[one.removesuffix(FAILED) for one in failures if one.endswith(FAILED)],
        recovered_codes=[one.removesuffix(RECOVERED) for one in failures if one.endswith(RECOVERED)],
        loop_names=[one for one in run.words.get("loop", ()) if one != "yes"],
        stuck=next((one for one in stuck if one != "yes"), "") if status == "running" else "",
        first_step=spans.first_step.hex(),
        last_step=spans.last_step.hex(),
        arrived_ns=run.arrived_ns,
        marks=list(run.marks),
        is_process=bool(own),
    )


def _distinct(words: Iterable[str]) -> list[str]:
    return [word for word in dict.fromkeys(words) if word]


def _root(spans: Iterable[SpanRow]) -> SpanRow | None:
    """The run root: a span without a parent, else the earliest whose parent is in another process."""
    roots = [span for span in spans if span.local_root]
    return min(roots, key=lambda span: (bool(span.parent), span.start_ns), default=None)


def _status(
    run: RunRow,
    spans: SpanFold,
    leader: InstanceRow | None,
    instances: Sequence[InstanceRow],
    now_ns: int,
) -> RunStatus:
    if leader is not None:
        if not leader.exited:
            return "running" if leader.alive(now_ns) else "interrupted"
        return "failure" if leader.failed or spans.root_failed else "success"
    if spans.root_ended:
        return "failure" if spans.root_failed or spans.request_failed else "success"
    if instances:
        alive = any(instance.alive(now_ns) for instance in instances)
    else:
        alive = now_ns - run.arrived_ns < FOREIGN_PATIENCE_NS
    if alive:
        return "running"
    if instances or spans.top_failed is None:
        return "interrupted"
    return "failure" if spans.top_failed else "success"


def nesting_of(spans: Sequence[SpanRow]) -> Nesting[bytes]:
    """How the spans of a run enclose each other."""
    return Nesting(
        ((span.span_id, span.parent, role_of(span)) for span in spans),
        lambda: [time_of(span) for span in spans if role_of(span) >= Role.CALL],
        [
            ToolTime(
                span.span_id,
                span.label.tool,
                span.start_ns,
                span.end_ns,
                span.label.sources,
                span.resource or None,
            )
            for span in spans
            if span.label.tool
        ],
    )


def time_of(call: SpanRow) -> CallTime[bytes]:
    """When a call of a model was."""
    models = frozenset(name for name in (call.label.model, call.label.asked_model) if name)
    return CallTime(call.span_id, call.start_ns, call.end_ns, models, call.resource or None)


def role_of(span: SpanRow) -> Role:
    """What a span is for the count of steps."""
    label = span.label
    if not label.step:
        if label.served:
            return Role.SERVED
        return Role.REQUEST if label.attempt and not span.local_root else Role.OTHER
    if label.tool or not (label.model or label.call):
        return Role.STEP
    return Role.OWN_CALL if label.own or label.wire else Role.CALL


def bare_requests(spans: Sequence[SpanRow]) -> set[bytes]:
    """Ids of requests that count as steps: no call, tool or other request encloses them.

    Of the attempts of one call that is the last.
    """
    steps = counted_steps(spans)
    return {span.span_id for span in spans if span.label.attempt and span.span_id in steps}


def counted_steps(spans: Sequence[SpanRow], nesting: Nesting[bytes] | None = None) -> set[bytes]:
    """Ids of the spans that are steps: calls, tools and bare requests, each call of a model once."""
    nesting = nesting or nesting_of(spans)
    resent = {span.span_id for span in spans if span.label.resent}
    return nesting.steps() - resent


def token_bearers(spans: Sequence[SpanRow], nesting: Nesting[bytes] | None = None) -> list[SpanRow]:
    """Spans whose tokens count: each token once, and without those that a tape answered."""
    bearing = [span for span in spans if span.usage]
    if not bearing:
        return []
    counted = (nesting or nesting_of(spans)).bearers({span.span_id for span in bearing})
    fetched: dict[str, bytes] = {}
    for span in sorted(bearing, key=lambda span: (not span.label.call, span.start_ns)):
        if span.label.fetched and span.span_id in counted and not span.label.played:
            fetched.setdefault(span.label.fetched, span.span_id)
    return [
        span
        for span in bearing
        if span.span_id in counted
        and not span.label.played
        and (span.label.call or fetched.get(span.label.fetched, span.span_id) == span.span_id)
    ]
