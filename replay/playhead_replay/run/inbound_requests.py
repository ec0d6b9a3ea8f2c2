"""Requests that the program received, and its answers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, cast

from playhead_core.difference import Difference, body_difference
from playhead_core.errors import CorruptTape
from playhead_core.facts import Exchange, Part
from playhead_core.normalize import compared_answer, pairs_of, verify
from playhead_core.rerun.headers import withheld_headers
from playhead_core.tape.folds import fold_exchanges
from playhead_core.tape.protocols import Tape
from playhead_semconv import attributes as a

END = "end"
REFUSALS = (401, 403)
"""Status codes of answers to unauthorized requests."""
MARKED = "run"


@dataclass(slots=True, eq=False)
class InboundRequest:
    """One request and its answer."""

    exchange: Exchange
    tape: Tape

    @property
    def key(self) -> str:
        """Method and path with query; or the name of a function."""
        return self.exchange.ask.key

    @property
    def application(self) -> str:
        """What was called, as ``module:attribute``; empty if it cannot be found again."""
        return str(self.exchange.ask.details.get(a.PLAYHEAD_INBOUND_APPLICATION, ""))

    @property
    def folder(self) -> str:
        """Folder in which its module was found: below the working folder, or absolute."""
        return str(self.exchange.ask.details.get(a.PLAYHEAD_INBOUND_FOLDER, ""))

    @property
    def is_marked(self) -> bool:
        """Whether it is a call of a function marked with `playhead.run`."""
        return self.exchange.ask.details.get(a.PLAYHEAD_INBOUND_INTERFACE) == MARKED

    @property
    def status_code(self) -> int | None:
        """HTTP status; None if there was no answer."""
        status = self.exchange.head.get(a.HTTP_RESPONSE_STATUS_CODE)
        return None if status is None else int(status)

    @property
    def headers(self) -> list[str]:
        """Headers of the answer: name, value, name, value, …"""
        flat = self.exchange.head.get(a.PLAYHEAD_HTTP_HEADERS)
        return [str(one) for one in cast("list[Any]", flat)] if isinstance(flat, list) else []

    @property
    def withheld(self) -> list[str]:
        """Names of request headers whose value the tape does not hold."""
        flat = self.exchange.ask.details.get(a.PLAYHEAD_HTTP_HEADERS)
        return withheld_headers(cast("list[Any]", flat)) if isinstance(flat, list) else []

    @property
    def body(self) -> bytes:
        """The body of the request, as far as the program read it. `TapeError`."""
        return b"".join(self.tape.read(part.data) for part in self.exchange.parts)

    @property
    def pieces(self) -> list[bytes]:
        """The body of the answer, as it was sent."""
        return [self.tape.read(part.data) for part in self._body()]

    @property
    def how(self) -> str:
        """How it ended; ``killed`` if the tape ends before it did."""
        end = self.exchange.end
        if end is None:
            return "killed"
        error = end.error
        if end.how == "abandoned" and self._whole:
            return "complete"  # no client waited for the program's cleanup after the answer
        return end.how if error is None else f"{end.how}: {error.qualname}: {error.message}"

    @property
    def failed(self) -> bool:
        """Whether it ended in an error, or was answered with a server error."""
        end = self.exchange.end
        return (end is not None and end.error is not None) or (self.status_code or 0) >= 500

    @property
    def _whole(self) -> bool:
        sent = self.exchange.sent
        return bool(sent) and sent[-1].attributes.get(a.PLAYHEAD_INBOUND_MESSAGE) == END

    def _body(self) -> list[Part]:
        return [part for part in self.exchange.sent if part.data.size or _is_message(part)]

    def __str__(self) -> str:
        pieces = self.exchange.sent
        size = sum(part.data.size for part in pieces)
        count = sum(1 for part in pieces if part.data.size)
        start = self.how if self.status_code is None else str(self.status_code)
        return f"{start}, {size} bytes in {count} piece{'' if count == 1 else 's'}"


def requests_of(tape: Tape) -> list[InboundRequest]:
    """The requests on a tape, in order."""
    return [
        InboundRequest(exchange, tape)
        for exchange in fold_exchanges(tape.facts()).values()
        if exchange.ask.direction == "in"
    ]


def answer_difference(tape: InboundRequest, now: InboundRequest) -> Difference | None:
    """Difference from the recorded answer; if an answer was cut, only the existing part counts."""
    cut = tape.exchange.end is None
    if cut and tape.status_code is None:
        return None
    if tape.status_code != now.status_code:
        return Difference("status", str(tape.status_code), str(now.status_code))
    for one, other in _pairs(tape.headers, now.headers):
        if one != other:
            return Difference("header", one, other)
    pieces, pieces_now = tape.pieces, now.pieces
    if cut:
        pieces_now = pieces_now[: len(pieces)]
    sizes = [" ".join(str(len(piece)) for piece in some) or "(none)" for some in (pieces, pieces_now)]
    found = body_difference(b"".join(pieces), b"".join(pieces_now))
    if found is None and sizes[0] != sizes[1]:
        found = Difference("sizes of pieces", *sizes)
    if found is None and not cut and tape.how != now.how:
        found = Difference("end", tape.how, now.how)
    return found


def differs_in_pairs(tape: InboundRequest, now: InboundRequest) -> bool:
    """Whether two answers differ only in values that the replay handed out."""
    end = now.exchange.end
    stated = None if end is None else end.values.get(a.PLAYHEAD_VOLATILE_PAIRS)
    if stated is None or (tape.status_code, tape.how) != (now.status_code, now.how):
        return False
    sides = compared_answer(tape.headers, tape.pieces), compared_answer(now.headers, now.pieces)
    try:
        return verify(*sides, pairs_of(str(stated))) is None
    except CorruptTape:
        return False


def turned_away(
    tape: Sequence[InboundRequest], now: Sequence[InboundRequest], given: Collection[str]
) -> list[str]:
    """A sentence for each request that is refused now and had a credential that the tape withholds.

    ``given``: lower-case names of headers that were provided.
    """
    others = {one.exchange.id: one for one in now}
    said: list[str] = []
    for one in tape:
        other = others.get(one.exchange.id)
        lacking = [header for header in one.withheld if header.lower() not in given]
        if other is None or other.status_code not in REFUSALS or not lacking:
            continue
        if one.status_code != other.status_code:
            said.append(
                f"{one.key} is answered with {other.status_code}: it came with {', '.join(lacking)},"
                f" which the tape does not hold; give it: --header '{lacking[0]}: …'"
            )
    return said


def _pairs(tape: list[str], now: list[str]) -> Iterator[tuple[str, str]]:
    """Header lines of both sides, in pairs."""
    sides = [
        [f"{name}: {value}" for name, value in zip(flat[::2], flat[1::2], strict=False)]
        for flat in (tape, now)
    ]
    yield from zip_longest(sides[0], sides[1], fillvalue="(absent)")


def _is_message(part: Part) -> bool:
    return part.attributes.get(a.PLAYHEAD_INBOUND_MESSAGE, END) != END
