"""The source of a semantic replay: answers that are rebuilt from spans.

Its tape holds no bytes of a provider, but a `RebuildableCall` for each call of a
model that spans describe. A request is answered by the call that asks most alike
(`playhead_genai.rebuilding.matching`), in the wire form of the request. Tools are answered by spans
that have their arguments and results (`semantic_tools`); a marked tool without one runs for real, within
the limits of every replay. All else is refused unless the user allows it.
"""

from __future__ import annotations

from playhead_core.errors import ExchangeExhausted, ExchangeUnmatched
from playhead_core.facts import Ask, Content, End, Exchange, ExchangeId, Fidelity, Part
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_genai.rebuilding import rebuilt
from playhead_genai.rebuilding.calls import RebuildableCall, asked_in
from playhead_genai.rebuilding.matching import RecordedCalls
from playhead_genai.rebuilding.rendering import NotRebuilt
from playhead_genai.rebuilding.tools import KIND as TOOL
from playhead_instrumentation.recorder.decision import LIVE, Decision, Played, Refused
from playhead_instrumentation.recorder.options import NOTHING, Allowed
from playhead_instrumentation.replayer.matching import host_of
from playhead_instrumentation.replayer.player import Player
from playhead_instrumentation.replayer.semantic_tools import AnsweredTools, read_inline
from playhead_semconv import attributes as a


class SemanticPlayer(Player):
    """Answers model calls from what spans say. Safe from any thread."""

    def __init__(self, tape: IndexedTape, allowed: Allowed = NOTHING) -> None:
        super().__init__(tape, allowed)
        recorded = list(self.exchanges())
        self._tools = AnsweredTools(tape, [one for one in recorded if one.id.kind == TOOL])
        self._recorded = [one for one in recorded if one.id.kind != TOOL]
        self._answers = [RebuildableCall.decoded(tape.read(one.ask.body)) for one in self._recorded]
        self._calls = RecordedCalls([(one.asked, bool(one.answer.error_type)) for one in self._answers])

    def decide(self, id: ExchangeId, ask: Ask, body: bytes) -> Decision:
        """See `Source.decide`."""
        if ask.kind == "tool":
            played = None if ask.key in self._allowed.tools else self._tools.marked(ask, body)
            return played or LIVE
        if ask.kind == "mcp" and (answer := self._tools.of_server(id, ask, body)) is not None:
            return answer
        asked = asked_in(ask.key, body) if ask.kind == "http" else None
        if asked is None:
            if ask.kind == "http" and self._allowed.reaches(host_of(ask.key)):
                return LIVE
            served = self._tools.of_http(id, ask, body) if ask.kind == "http" else None
            if served is not None:
                return served
            return Refused(
                ExchangeUnmatched(
                    f"no span answers {ask.key}",
                    cause="only model calls and tools are answered from spans; "
                    f"those of other requests ({ask.kind}) have no bodies",
                    hint="to make it for real: playhead replay RUN --allow HOST",
                )
            )
        if self._allowed.model:
            return LIVE
        wire, request = asked
        found = self._calls.take(request)
        if found is None:
            return Refused(
                ExchangeExhausted(
                    f"no span answers {ask.key}",
                    cause=f"the {len(self._answers)} calls of the run have answered already",
                    hint="the program asks once more than its spans",
                )
            )
        if self._answers[found[0]].answer.is_empty:
            cause = "the span of this call has no answer"
            return Refused(ExchangeUnmatched(f"no span answers {ask.key}", cause=cause))
        return self._rebuilt(found[0], wire, ask, body)

    def _rebuilt(self, number: int, wire: str, ask: Ask, body: bytes) -> Decision:
        recorded, url = self._recorded[number], ask.key.partition(" ")[2]
        try:
            response, _ = rebuilt(wire, self._answers[number].answer, body, url)
        except NotRebuilt as problem:
            return Refused(
                ExchangeUnmatched(f"no answer to {ask.key} could be rebuilt", cause=str(problem))
            )
        self._use(number)
        self.on_match(recorded)
        headers = [word for pair in response.headers for word in pair]
        exchange = Exchange(
            recorded.id,
            recorded.ask,
            recorded.time_ns,
            head={a.HTTP_RESPONSE_STATUS_CODE: response.status_code, a.PLAYHEAD_HTTP_HEADERS: headers},
            parts=[Part(Content.chunk(data), recorded.time_ns, None) for data in response.chunks],
            end=End("complete"),
            first_seq=recorded.first_seq,
            last_seq=recorded.last_seq,
        )
        return Played(
            exchange,
            self._tape.instance,
            read_inline,
            fidelity=Fidelity.SEMANTIC,
            elsewhere=False,
            made=True,
        )
