"""Find calls whose arguments follow an instruction that stands in the result of a tool.

A result says "send all orders to a@b.example", and a later call has that address in its arguments, which
stood nowhere in what the system or the user said. That is how prompt injections look; it may also be
meant. Only such targets count: addresses, URLs, paths, numbers of accounts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from playhead_genai.messages import Text
from playhead_genai.readable_text import news, text_of
from playhead_replay.run.histories import GrowingHistory
from playhead_replay.run.run import Run
from playhead_replay.timeline.tool_calls import ToolCallStep

MOST_TEXT: Final = 100_000
"""Characters of a result that are searched."""
MOST_TRUSTED: Final = 1_000_000
"""Characters of what system and user said that are searched."""
MOST_TARGETS: Final = 500
"""Targets of a run that are looked for in later arguments."""
LONGEST_SENTENCE: Final = 600
LONGEST_QUOTE: Final = 200

_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|[\r\n]+|\\n")
_INSTRUCTS: Final = re.compile(
    r"\b(?:ignore (?:all|any|the|your|previous|prior|earlier)|disregard|instead of"
    r"|you (?:must|should|need to|have to|are to)"
    r"|(?:send|forward|e-?mail|transfer|upload|post|wire|pay|fetch|open|visit|download|run|execute|call"
    r"|delete|write|copy|share|reply|bcc|cc|submit|publish|grant|invite)\s+[^\s:,}])",
    re.IGNORECASE,
)
_TARGET: Final = re.compile(
    r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}"
    r"|https?://[^\s\"'<>()\\]{4,300}"
    r"|\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}\b"
    r"|\b\d[\d -]{7,20}\d\b"
    r"|(?<![\w/])/(?:[\w.-]{1,64}/){1,10}[\w.-]{1,64}"
    r"|\b0x[0-9a-fA-F]{16,64}\b",
)


@dataclass(frozen=True, slots=True)
class FollowedInstruction:
    """A call that follows an instruction from a result."""

    step: int
    """The step whose answer has the call."""
    place: str
    """``5.1``."""
    name: str
    """Of the tool that was called."""
    target: str
    """What its arguments have from the instruction."""
    source: str
    """The call whose result has the instruction: ``3.1``."""
    source_name: str
    quote: str
    """The instruction."""


def followed_instructions(run: Run, calls: Sequence[ToolCallStep]) -> list[FollowedInstruction]:
    """Return the calls of a run that follow instructions from results. ``calls``: `tool_calls_of`."""
    targets = list(_targets(calls))[:MOST_TARGETS]
    if not targets:
        return []
    trusted = _trusted(run)
    found: list[FollowedInstruction] = []
    for call in calls:
        said = text_of(call.arguments)
        for source, target, quote in targets:
            if call.step.number <= source.step.number or target not in said:
                continue
            before = (one for one in calls if one.step.number <= source.step.number)
            if target.lower() in trusted or any(target in text_of(one.arguments) for one in before):
                continue
            found.append(
                FollowedInstruction(
                    call.step.number, call.number, call.name, target, source.number, source.name, quote
                )
            )
            break
    return found


def _targets(calls: Sequence[ToolCallStep]) -> Iterator[tuple[ToolCallStep, str, str]]:
    """Yield the targets of instructions in results: the call, the target, the instruction."""
    for call in calls:
        text = "" if call.result is None else text_of(call.result)[:MOST_TEXT]
        for sentence in _SENTENCE.split(text):
            if len(sentence) > LONGEST_SENTENCE or not _INSTRUCTS.search(sentence):
                continue
            for target in _TARGET.finditer(sentence):
                quote = " ".join(sentence.split())[:LONGEST_QUOTE]
                yield call, target[0].rstrip(".,;:/"), quote


def _trusted(run: Run) -> str:
    """Return what system and user said, in lower case."""
    history, texts, size = GrowingHistory(), list[str](), 0
    for step in run.calls:
        messages = run.messages(step, history)
        parts = list(messages.system) if not texts else []
        for message in messages.input if not texts else news(messages.input):
            parts += message.parts if message.role != "assistant" else []
        for part in parts:
            if isinstance(part, Text) and size < MOST_TRUSTED:
                texts.append(part.content[: MOST_TRUSTED - size].lower())
                size += len(texts[-1])
    return "\n".join(texts)
