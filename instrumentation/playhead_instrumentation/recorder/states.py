"""States that the program reports: recorded, and replaced if a fork edits one.

A state has an id like an exchange: its lane and its number there. Equal content is stored once on a
tape; content that extends an earlier one is stored as its tail.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opentelemetry import trace

from playhead_core.errors import TapeError, UsageError
from playhead_core.facts import Content, ExchangeId, Fact, digest_of
from playhead_core.tape.protocols import Sink
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.recorder.bodies import Bodies
from playhead_instrumentation.redaction import Redactor
from playhead_semconv import attributes as a
from playhead_semconv import events as e

if TYPE_CHECKING:
    from playhead_core.normalize import ComparedRequest
    from playhead_core.rerun.plans import Edit
    from playhead_core.tape.indexed_tapes import IndexedTape

KIND = "state"


class States:
    """Records states. Usable from any thread."""

    def __init__(
        self,
        sink: Sink,
        redactor: Redactor,
        declare: Callable[[lanes.Lane], None],
        tape: IndexedTape | None = None,
        edits: Mapping[str, Sequence[Edit]] | None = None,
        *,
        linked: bool = False,
    ) -> None:
        """``tape``: the played tape; it may be of a fork that had edited states.

        ``edits``: of this fork, by id. ``linked``: content that is on ``tape`` is not stored again.
        """
        self._sink = sink
        self._redactor = redactor
        self._declare = declare
        self._tape = tape
        self._edits = edits or {}
        self._edited: dict[ExchangeId, int] = {}
        """Numbers of the facts with edited states on the played tape."""
        self._held: set[bytes] = set()
        self._recorded: dict[ExchangeId, Content] = {}
        """The states on the played tape."""
        self.varied: Callable[[ComparedRequest, ComparedRequest], str | None] = lambda recorded, now: (
            None
        )
        """The volatile values in which two states differ, as on a tape; None: they differ in more."""
        self._bodies = Bodies(redactor.body)
        self._instance = sink.instance
        for fact in () if tape is None else tape.named(e.PLAYHEAD_STATE):
            if fact.exchange is not None and a.PLAYHEAD_EDITED_DIGEST in fact.attributes:
                self._edited[fact.exchange] = fact.seq
            if fact.exchange is not None and fact.body is not None and fact.body.digest and not linked:
                self._recorded[fact.exchange] = fact.body
            if linked and fact.body is not None and fact.body.digest:
                self._held.add(fact.body.digest)

    def said(
        self, name: str, state: bytes, span: trace.Span, edits: Sequence[Edit] = ()
    ) -> bytes | None:
        """The program reports ``state`` (JSON) in ``span``. ``edits``: by an operator.

        Returns the state that an operator or a fork puts in its place, or None.
        """
        lane = lanes.current()
        if lane is lanes.UNRECORDED or lane is lanes.GC:
            return None
        if self._instance != self._sink.instance:  # after `os.fork` there is a new tape
            self._instance, self._held = self._sink.instance, set()
            self._bodies.forget()
            self._edited, self._edits, self._recorded = {}, {}, {}
        if lane.declared_on != self._sink.instance:
            self._declare(lane)
        id = ExchangeId(lane.hash, KIND, lane.next_ordinal(KIND))
        attributes: dict[str, Any] = {a.PLAYHEAD_STATE_NAME: name}
        changed = self._instead(id, state, attributes, edits)
        if changed is None:
            content = self._written(id, state, attributes)
        else:
            kept, _ = self._redactor.body(changed, 0)
            content = Content(digest_of(kept), len(kept), kept)
        self._keep(lane, id, attributes, content, span)
        return changed

    def _instead(
        self, id: ExchangeId, state: bytes, attributes: dict[str, Any], given: Sequence[Edit]
    ) -> bytes | None:
        edits, seq = given or self._edits.get(str(id)), self._edited.get(id)
        if edits is None and seq is None:
            return None
        changed: bytes | None = None
        own = digest_of(self._redactor.body(state, 0)[0]).hex()
        if edits is not None:
            # Imported late: a recording does not need it.
            from playhead_core.rerun.state_documents import edited

            try:
                document = edited(json.loads(state), edits)
            except UsageError:  # this is not the state that was edited
                return None
            changed = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        elif seq is not None and self._tape is not None:
            fact = self._tape.fact(seq)
            if fact is None or fact.body is None:
                return None
            if fact.attributes.get(a.PLAYHEAD_EDITED_DIGEST) == own:
                changed = self._tape.read(fact.body)
        if changed is not None:
            attributes[a.PLAYHEAD_EDITED_DIGEST] = own
        return changed

    def _written(self, id: ExchangeId, state: bytes, attributes: dict[str, Any]) -> Content:
        if not self._redactor.content:
            return Content(b"", len(state))
        kept, content, count = self._bodies.written(state)
        if pairs := self._pairs(id, kept, content):
            attributes[a.PLAYHEAD_VOLATILE_PAIRS] = pairs
        if count:
            attributes[a.PLAYHEAD_REDACTED_COUNT] = count
        if content.digest in self._held:
            return Content(content.digest, content.size)
        self._held.add(content.digest)
        return content

    def _pairs(self, id: ExchangeId, kept: bytes, content: Content) -> str | None:
        """Replay: volatile values paired with the recorded ones, if nothing else differs."""
        recorded = self._recorded.get(id)
        if recorded is None or self._tape is None or recorded.digest == content.digest:
            return None
        from playhead_core.normalize import ComparedRequest  # lazy: recordings do not need it

        try:
            before = self._tape.read(recorded)
        except TapeError:
            return None  # the report compares the states as they are
        return self.varied(ComparedRequest.of(before), ComparedRequest.of(kept))

    def _keep(
        self,
        lane: lanes.Lane,
        id: ExchangeId,
        attributes: dict[str, Any],
        content: Content,
        span: trace.Span,
    ) -> None:
        context = span.get_span_context()
        if span.is_recording():
            said = {a.PLAYHEAD_STATE_NAME: attributes[a.PLAYHEAD_STATE_NAME]}
            span.add_event(e.PLAYHEAD_STATE, {**said, a.PLAYHEAD_STATE_DIGEST: content.digest.hex()})
        self._sink.append(
            Fact(
                REAL.time_ns(),
                lane.hash,
                e.PLAYHEAD_STATE,
                context.trace_id.to_bytes(16) if context.is_valid else b"",
                context.span_id.to_bytes(8) if context.is_valid else b"",
                id,
                attributes=attributes,
                body=content,
            )
        )
