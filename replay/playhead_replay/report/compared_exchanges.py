"""What a replay asked and was answered, against its tape."""

from __future__ import annotations

from collections.abc import Iterator

from playhead_core.difference import Difference, body_difference
from playhead_core.facts import Fidelity, digest_of
from playhead_replay.report.comparison import AT_THE_END, Comparison, named_exchange
from playhead_replay.report.matching import MESSAGES, Match
from playhead_replay.report.report import Divergence, DivergenceKind
from playhead_replay.run.exchanges import RecordedExchange

_KINDS: dict[Fidelity, DivergenceKind] = {
    Fidelity.MOVED: "moved",
    Fidelity.CHANGED: "request",
    Fidelity.BLOCKED: "blocked",
    Fidelity.LIVE: "live",
}

_AGREE = (Fidelity.EXACT, Fidelity.VOLATILE, Fidelity.SEMANTIC, Fidelity.LIVE)
"""Fidelities of requests that do not differ. Live ones were allowed; differences that result from them
are found elsewhere."""

_WORSE = (
    Fidelity.EXACT,
    Fidelity.VOLATILE,
    Fidelity.SEMANTIC,
    Fidelity.LIVE,
    Fidelity.MOVED,
    Fidelity.UNUSED,
    Fidelity.CHANGED,
    Fidelity.BLOCKED,
)
"""Fidelities, the best first."""


def requests(comparison: Comparison) -> Iterator[Divergence]:
    """Requests that differ from the recorded ones, that were blocked, or that were not made."""
    for found in comparison.matching.matches:
        if found.fidelity not in _AGREE:
            yield _request(comparison, found)
    for kind, target, who, seq in comparison.refused():
        yield Divergence(
            "blocked",
            f"blocked {kind} {target}",
            comparison.step_before(seq),
            after=True,
            detail=f"{who}the tape has no answer to it",
            seq=seq,
        )
    for recorded in comparison.matching.unused:
        yield Divergence(
            "unused",
            f"{named_exchange(recorded)} was not requested",
            comparison.step_of(recorded),
            seq=AT_THE_END,
        )


def _request(comparison: Comparison, found: Match) -> Divergence:
    now, kind = found.now, _KINDS[found.fidelity]
    near = found.recorded or found.nearest
    detail = ""
    if found.fidelity is Fidelity.MOVED and found.recorded is not None:
        detail = f"answered by {found.recorded.name}, but requested in another lane or order"
    elif found.exhausted and found.nearest is not None:
        detail = f"{found.nearest.name} matches; {_why_unused(now)}"
    elif found.fidelity is Fidelity.BLOCKED and now.end is not None and now.end.error is not None:
        detail = "" if found.nearest is not None else now.end.error.message.splitlines()[0]
    nearest = found.nearest.name if found.nearest is not None and found.difference else ""
    step = comparison.step_of(near)
    same_place = near is not None and near.id == now.id
    if found.fidelity is Fidelity.BLOCKED and not same_place:
        step = comparison.step_before(now.first_seq - 1)
    return Divergence(
        kind,
        f"{found.fidelity} {named_exchange(now)}",
        step,
        after=found.fidelity is Fidelity.BLOCKED and not same_place,
        difference=found.difference,
        nearest=nearest,
        changed=bool(nearest)
        and near is not None
        and near.id.kind == now.id.kind
        and near.key == now.key,
        detail=detail,
        seq=now.first_seq,
    )


def _why_unused(now: RecordedExchange) -> str:
    """Why a matching recording did not answer a blocked request."""
    error = None if now.end is None else now.end.error
    if error is not None and error.qualname == "PipeBlocked":
        return error.message.rpartition("cause: ")[2]
    return "every recording of it was already used"


def of_steps(comparison: Comparison) -> dict[int, Fidelity]:
    """The worst fidelity among the requests of each recorded step.

    What was blocked counts for the step of the recording that is most like it.
    """
    matching = comparison.matching
    judged = [(found.recorded or found.nearest, found.fidelity) for found in matching.matches]
    judged += [(recorded, Fidelity.UNUSED) for recorded in matching.unused]
    worst: dict[int, Fidelity] = {}
    for recorded, fidelity in judged:
        step = comparison.step_of(recorded)
        if step is not None:
            worst[step] = max(worst.get(step, Fidelity.EXACT), fidelity, key=_WORSE.index)
    return worst


def responses(comparison: Comparison) -> Iterator[Divergence]:
    """Answers that did not reach the program as they were recorded."""
    for found in comparison.matching.matches:
        recorded = found.recorded
        if recorded is None:
            continue
        difference = _answer_difference(recorded, found.now, imported=comparison.is_imported)
        if difference is not None:
            yield Divergence(
                "response",
                f"response of {named_exchange(found.now)}",
                comparison.step_of(recorded),
                difference=difference,
                seq=found.now.first_seq,
            )


def response_bytes(comparison: Comparison) -> tuple[str, str]:
    """Sizes of the recorded answers, and of what the program was given."""
    played = [(one.recorded, one.now) for one in comparison.matching.matches if one.recorded is not None]
    sides: list[str] = []
    for exchanges in ([one for one, _ in played], [one for _, one in played]):
        sizes = [size for one in exchanges for size in one.chunk_sizes]
        sides.append(f"{sum(sizes)} bytes in {len(sizes)} chunks")
    return sides[0], sides[1]


def counts(comparison: Comparison) -> dict[str, dict[Fidelity, int]]:
    """How many exchanges of each boundary have which fidelity."""
    counts: dict[str, dict[Fidelity, int]] = {}

    def add(kind: str, fidelity: Fidelity) -> None:
        of_kind = counts.setdefault(kind, {})
        of_kind[fidelity] = of_kind.get(fidelity, 0) + 1

    for found in comparison.matching.matches:
        add(found.now.id.kind, found.fidelity)
    for recorded in comparison.matching.unused:
        add(recorded.id.kind, Fidelity.UNUSED)
    for kind, *_ in comparison.refused():
        add(kind, Fidelity.BLOCKED)
    return counts


def _answer_difference(
    tape: RecordedExchange, now: RecordedExchange, *, imported: bool
) -> Difference | None:
    if tape.status_code != now.status_code:
        return Difference("status", str(tape.status_code), str(now.status_code))
    if tape.chunk_sizes != now.chunk_sizes:
        sizes = [" ".join(map(str, one.chunk_sizes)) or "(none)" for one in (tape, now)]
        return Difference("chunk sizes", *sizes)
    if tape.end is not None and tape.end.digest and digest_of(tape.response) != tape.end.digest:
        # The cause does not matter: the program did not get what was recorded, whether it noticed or
        # not.
        sides = [digest.hex()[:16] for digest in (tape.end.digest, digest_of(tape.response))]
        return Difference("digest of the recorded bytes", *sides)
    if tape.response != now.response:
        return body_difference(tape.response, now.response)
    if _how(tape) != _how(now) and not _let_go(now, imported):
        return Difference("end", _how(tape), _how(now))
    return None


def _let_go(now: RecordedExchange, imported: bool) -> bool:
    """Whether the program did not wait for the end of an exchange that it need not wait for.

    That is an exchange of messages, and one that another tool recorded, which does not say whether the
    program read to the end.
    """
    may_be_left = imported or now.id.kind in MESSAGES
    return may_be_left and now.end is not None and now.end.how == "abandoned"


def _how(one: RecordedExchange) -> str:
    if one.end is None:
        return "unanswered"
    error = one.end.error
    if error is not None and error.qualname == "CancelledError":
        return f"{one.end.how}: {error.qualname}"  # its message contains memory addresses
    if error is not None:
        return f"{one.end.how}: {error.qualname}: {error.message}"
    return one.end.how
