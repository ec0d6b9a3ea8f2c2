"""Says what spans hold of a case: each fact is looked for by a word that occurs nowhere else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from support.servers.scripted import Reply

from covered import words

Spans = list[dict[str, Any]]
Judge = Callable[[Spans, list[Reply]], bool]

_FINISHED = re.compile(r"(?i)(?:finish|stop|done)_?reasons?\W+(?:\w+[._])?(?:stop|end_turn|complete)\b")
CHUNKS = 4
"""Chunks with content in each stream."""


RAW = ("raw", "data")
"""Where bytes are, which count for the facts that are about bytes, and for no others."""


def values(value: Any) -> Iterator[Any]:
    """All values within spans but bytes; texts that are JSON are looked into, too."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name not in RAW:
                yield from values(item)
    elif isinstance(value, list):
        for item in value:
            yield from values(item)
    else:
        yield value
        if isinstance(value, str) and value[:1] in ("{", "["):
            try:
                yield from values(json.loads(value))
            except ValueError:
                pass


def says(word: str) -> Judge:
    """Whether a value contains the word, in one piece."""
    return lambda spans, _: any(word in value for value in values(spans) if isinstance(value, str))


def counts(*numbers: int) -> Judge:
    """Whether all numbers are there."""
    return lambda spans, _: set(numbers) <= {one for one in values(spans) if isinstance(one, int)}


def there(spans: Spans, replies: list[Reply]) -> bool:
    """Whether there is any span."""
    return any(span["name"] for span in spans)


def failed(spans: Spans, replies: list[Reply]) -> bool:
    """Whether a span says that the call failed."""
    return any(span["status"] == "ERROR" for span in spans)


def finished(spans: Spans, replies: list[Reply]) -> bool:
    """Whether the reason why the model stopped is there."""
    told = [
        {name: item for name, item in span.items() if name not in ("raw", "events")} for span in spans
    ]
    return _FINISHED.search(json.dumps(told, default=str).replace("\\", "")) is not None


def verbatim(spans: Spans, replies: list[Reply]) -> bool:
    """Whether the bytes of the answer are there as they came."""
    body = b"".join(part for part in replies[-1].parts if isinstance(part, bytes))
    return _anywhere(body.decode("latin-1"), spans)


def _anywhere(text: str, spans: Spans) -> bool:
    raw = [one for span in spans for one in span.get("raw", ())]
    return any(text in one for one in [*raw, *values(spans)] if isinstance(one, str))


def kept(word: str) -> Judge:
    """Whether the word is there, be it in the bytes alone: no attribute is for it."""
    return lambda spans, _: _anywhere(word, spans)


def timed(spans: Spans, replies: list[Reply]) -> bool:
    """Whether each chunk is there with its time and what it said."""
    for span in spans:
        told = [event for event in span["events"] if event.get("time")]
        pieces = words.cut(words.ANSWER)
        if all(any(piece in str(event) for event in told) for piece in pieces) and len(told) >= CHUNKS:
            return True
    return False


def attempts(spans: Spans, replies: list[Reply]) -> bool:
    """Whether the attempt that failed is there."""
    return any(value in (429, 503, "429", "503") for value in values(spans))


CONVERSATION: dict[str, Judge] = {
    "span": there,
    "system prompt": says(words.SYSTEM),
    "question": says(words.ASKED),
    "earlier tool call": says(words.HISTORY),
    "tool result": says(words.RESULT),
    "tool definition": says(words.DEFINED),
    "answer": says(words.ANSWER),
    "tokens": counts(words.INPUT, words.OUTPUT),
    "finish reason": finished,
    "response bytes": verbatim,
}
LEFT: dict[str, Judge] = {"span": there, "partial response": says(words.BEGUN)}
SHORT: dict[str, Judge] = {"span": there, "question": says(words.ASKED), "answer": says(words.ANSWER)}
RETRY: dict[str, Judge] = {"span": there, "answer": says(words.ANSWER), "failed attempt": attempts}
JUDGES: dict[str, dict[str, Judge]] = {
    "call": CONVERSATION,
    "stream": CONVERSATION | {"chunk times": timed},
    "tools": {
        "span": there,
        "tool arguments": says(words.ARGUMENT),
        "tokens": counts(words.INPUT, words.OUTPUT),
    },
    "retry": RETRY,
    "error": {"span": there, "status error": failed, "question": says(words.ASKED)},
    "truncated": {"span": there, "status error": failed, "partial response": says(words.BEGUN)},
    "abandoned": LEFT,
    "closed": LEFT,
    "embeddings": {"span": there, "text": says(words.ASKED), "tokens": counts(words.INPUT)},
    "two choices": {
        "span": there,
        "first choice": says(words.ANSWER),
        "second choice": says(words.SECOND),
    },
    "refusal": {"span": there, "refusal text": says(words.REFUSED)},
    "image": {"span": there, "image": says(words.IMAGE)},
    "structured": {"span": there, "answer": says(words.ANSWER), "schema": kept(words.SCHEMA)},
    "reasoning": {"span": there, "reasoning": says(words.THOUGHT), "answer": says(words.ANSWER)},
    "responses": SHORT | {"tokens": counts(words.INPUT, words.OUTPUT), "finish reason": finished},
    "responses stream": SHORT | {"tokens": counts(words.INPUT, words.OUTPUT)},
    "to anthropic": SHORT | {"tokens": counts(words.INPUT, words.OUTPUT), "finish reason": finished},
    "to anthropic stream": SHORT | {"tokens": counts(words.INPUT, words.OUTPUT)},
    "to anthropic retry": RETRY,
    "to gemini": SHORT | {"tokens": counts(words.INPUT, words.OUTPUT), "finish reason": finished},
    "to gemini stream": SHORT | {"tokens": counts(words.INPUT, words.OUTPUT)},
    "invoked": SHORT | {"tokens": counts(words.INPUT, words.OUTPUT)},
}
"""By case: what is looked for."""
