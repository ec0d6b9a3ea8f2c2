"""Rows of spans: bundles with their frames, the spans in them, texts of other traces that they need."""

from __future__ import annotations

from playhead_receiver.storage.content.packing import Frame, TextIndex
from playhead_receiver.storage.content.texts import frame_of
from playhead_receiver.storage.sql.reading.summaries import span_row
from playhead_receiver.storage.sql.writing.draft import RowDraft, SpanId
from playhead_receiver.storage.sql.writing.known_rows import KnownRows, KnownSpan
from playhead_receiver.storage.sql.writing.runs import RunRows
from playhead_receiver.storage.writing.prepare import Bundle, PreparedSpan


class SpanRows:
    """Drafts the rows of spans in one transaction."""

    def __init__(self, known: KnownRows, draft: RowDraft, runs: RunRows, texts: TextIndex) -> None:
        self._known = known
        self._draft = draft
        self._runs = runs
        self._texts = texts

    def add(self, bundle: Bundle) -> int:
        """Store those spans of a bundle that no stored one outlasts; return how many are new."""
        draft = self._draft
        number = draft.bundle + 1
        frame = Frame(self._texts, number)
        new = 0
        for span in bundle.spans:
            while (other := self._known.apart(span)) is not span:
                span = other
            id = bundle.trace_id, span.summary.span_id
            before = self._known.spans.get(id)
            if before is None:
                new += 1
            elif span.summary.end_ns <= before.end_ns:
                continue
            else:
                self._replace(id, before)
            self._insert(span, number, frame.next_place)
            frame.add_span(span.cut)
        if not frame.next_place:
            return 0
        draft.bundle = number
        draft.bundles.append((number, bundle.trace_id, frame.data()))
        self._link(number, bundle.trace_id, frame.refers_to)
        self._touch_run(bundle)
        return new

    def _replace(self, id: SpanId, before: KnownSpan) -> None:
        if id not in self._draft.spans:
            self._draft.replaced.append(id)
        self._draft.use(before.resource, before.label, -1)

    def _insert(self, span: PreparedSpan, bundle: int, place: int) -> None:
        draft = self._draft
        resource, label = self._known.resource(span.resource), self._known.label(span.label)
        draft.use(resource, label, 1)
        draft.position += 1
        about = span.summary
        id = about.trace_id, about.span_id
        self._known.spans[id] = KnownSpan(
            about.end_ns, resource, label, about.start_ns, about.label.served
        )
        draft.spans[id] = span_row(draft.position, span, label, resource, bundle, place)
        if span.about.instance:
            draft.come.append(id)

    def _link(self, bundle: int, trace_id: bytes, texts: set[int]) -> None:
        """Store which texts of other traces a bundle refers to."""
        self._known.add_bundle(bundle, trace_id)
        owners = self._known.owners(texts)
        for address in texts:
            if owners.get(frame_of(address)) != trace_id:
                self._draft.text_links[address, bundle] = None

    def _touch_run(self, bundle: Bundle) -> None:
        agent = ""
        talks: dict[str, None] = {}
        for span in bundle.spans:
            talks |= dict.fromkeys(span.summary.conversations)
            if span.about.instance:
                known = self._known.instances[span.about.instance]
                self._runs.join(bundle.trace_id, known)
                agent = agent or known.name()
        started_ns = min(span.summary.start_ns for span in bundle.spans)
        self._runs.touch(bundle.trace_id, bundle.agent(agent), started_ns)
        run = self._draft.run(bundle.trace_id)
        run.stale = self._draft.position
        run.conversation = run.conversation or next(iter(talks), "")
        self._draft.add_conversations(bundle.trace_id, talks, started_ns)
        run.loose += 1
