"""The lines of ``playhead blame``."""

from __future__ import annotations

from collections.abc import Iterator

from playhead_cli.output.styles import FAINT, NUMBER, TITLE, StyledLine
from playhead_replay.derived.blame import Blame, BlamedValue
from playhead_replay.derived.value_origins import ValueOrigin

MOST_CHARS = 80
MOST_LATER = 3
"""Later sources of a value that are listed."""
MOST_RUNS = 10
"""Other runs that hold a value that are listed."""
WORDS = {
    "argument": "the command line",
    "environment": "the environment variable",
    "request": "the request",
    "input": "standard input",
    "file": "the file",
    "database": "the database",
    "response": "the response to",
    "result": "the result of",
    "system": "the system message",
    "message": "a message of the user",
    "answer": "an answer of the model",
}

UNKNOWN = "in no recorded source: the model wrote it, or the program computed it"


def blame_lines(found: Blame) -> Iterator[StyledLine]:
    """Yield each call with its arguments, and below each what held it before, the earliest first."""
    for call in found.calls:
        yield StyledLine([(f"{found.run}:{call.place}", NUMBER), (f"  {call.name}", TITLE)])
        for value in call.values:
            yield from _value_lines(value)


def _value_lines(value: BlamedValue) -> Iterator[StyledLine]:
    text = " ".join(value.value.split())
    text = text if len(text) <= MOST_CHARS else f"{text[: MOST_CHARS - 1]}…"
    part = " (a part of it)" if value.is_part else ""
    yield StyledLine([(f"  {value.path}", ""), (part, FAINT), (f"  {text}" if value.path else text, "")])
    yield from _origin_lines(value)
    if value.runs:
        more = f", and {len(value.runs) - MOST_RUNS} more" if len(value.runs) > MOST_RUNS else ""
        yield StyledLine([(f"      also in {', '.join(value.runs[:MOST_RUNS])}{more}", FAINT)])


def _origin_lines(value: BlamedValue) -> Iterator[StyledLine]:
    if not value.origins:
        yield StyledLine([(f"      {UNKNOWN}", FAINT)])
        return
    first, *later = value.origins
    yield StyledLine([(f"      {_source(first)}", NUMBER), (_spelling(first), FAINT)])
    if later:
        more = f", and {len(later) - MOST_LATER} more" if len(later) > MOST_LATER else ""
        names = "; ".join(map(_source, later[:MOST_LATER]))
        yield StyledLine([(f"      then {names}{more}", FAINT)])


def _source(origin: ValueOrigin) -> str:
    where = f" at step {origin.place}" if origin.place else ""
    return f"{WORDS[origin.kind]} {origin.name}".rstrip() + where


def _spelling(origin: ValueOrigin) -> str:
    if origin.exact and origin.kind != "database":
        return ""
    return f"  {origin.quote}" if origin.exact else f"  in another spelling: {origin.quote}"
