"""The command line in this process, and a data directory with hand-made runs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.printed_json import kinds_of
from support.tapes.handmade import SECOND, TRACE, HandMade

from playhead_cli.app import run
from playhead_receiver.storage import Batch, open_store
from playhead_semconv import attributes as a

MINUTE_AGO_S = 60


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class CommandLine:
    """``playhead`` with one data directory."""

    def __init__(self, data_dir: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.data_dir, self._capture = data_dir, capture

    def __call__(self, *words: str) -> Done:
        self._capture.readouterr()
        status = run([*words, "--data-dir", str(self.data_dir), "--no-config"])
        captured = self._capture.readouterr()
        list(kinds_of(words, captured.out, captured.err))  # whatever a test asks: it is described
        return Done(status, captured.out, captured.err)

    def captured(self) -> str:
        """Output on stdout since the last command."""
        return self._capture.readouterr().out


def store_run(data_dir: Path, made: HandMade) -> str:
    """Store a hand-made run. Returns the name that the store gave it."""
    store = open_store(data_dir)
    try:
        store.commit(Batch(made.spans, made.facts, {}))
        return store.resolve(made.trace_id.hex()).name
    finally:
        store.close()


def refund(trace_id: bytes = TRACE, instance: bytes = bytes(range(16)), **start: Any) -> HandMade:
    """A failed run of eleven steps: a search in circles, a retry, a refund without an order."""
    made = HandMade(instance, trace_id)
    made.at_ns = time.time_ns() - MINUTE_AGO_S * SECOND
    made.start(**start)
    question = b'{"model":"gpt-4o","messages":[{"role":"user","content":"order 81?"}]}'
    made.chat(question, (b'{"id":', b'"1"}'))
    for _ in range(4):
        made.wait(1).tool("search", '{"q":"order 81"}')
        made.chat()
    call = made.begin("chat gpt-4o", kind=3, **{a.GEN_AI_OPERATION_NAME: "chat"})
    for attempt, status in enumerate((429, 200)):
        http = made.begin(
            "POST",
            parent=call,
            kind=3,
            **{
                a.HTTP_REQUEST_METHOD: "POST",
                a.HTTP_REQUEST_RESEND_COUNT: attempt,
                a.HTTP_RESPONSE_STATUS_CODE: status,
            },
        )
        made.exchange(request=b"{}", span=http, status=status)
        made.finish(http, error="" if attempt else "429")
    made.finish(call, **{a.GEN_AI_USAGE_INPUT_TOKENS: 8, a.GEN_AI_USAGE_OUTPUT_TOKENS: 2})
    made.tool("refund", "{}", error="ValueError: no order")
    made.say("done\n")
    return made.exit(1)
