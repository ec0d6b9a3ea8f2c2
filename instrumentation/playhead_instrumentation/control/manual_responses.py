"""Answers that the world did not give: by hand, or a rejection."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from playhead_core.control.messages import HandAnswer
from playhead_core.errors import UsageError
from playhead_core.facts import Ask, Content, End, ErrorRecord, Exchange, ExchangeId, Fidelity, Part
from playhead_instrumentation.recorder.decision import Played
from playhead_instrumentation.recorder.exceptions import REJECTION
from playhead_semconv import attributes as a

ANSWERED = ("http", "tool")
"""Kinds of exchanges that can be answered by hand."""

BINARY = ("grpc",)
"""Kinds of exchanges whose bodies are no JSON, so that no path leads into them."""

FORBIDDEN = 403
"""HTTP status of a rejection. SDKs do not ask again after it."""

PERMISSION_DENIED = 7
"""Status of gRPC of a rejection."""


def check_answer(kind: str, answer: HandAnswer) -> None:
    """`UsageError` where ``answer`` cannot answer an exchange of this kind."""
    if kind not in ANSWERED:
        raise UsageError(f"an exchange of kind {kind} cannot be answered by hand", hint="reject it")
    if not 100 <= answer.status <= 599:
        raise UsageError(f"{answer.status} is no HTTP status")
    if kind == "tool":
        try:
            json.loads(answer.body)
        except ValueError as problem:
            raise UsageError("what a tool returns is JSON", cause=str(problem)) from None


def check_edit(kind: str) -> None:
    """`UsageError` where the body of an exchange of this kind cannot be edited."""
    if kind in BINARY:
        raise UsageError(
            f"the body of an exchange of kind {kind} is protobuf: it cannot be edited",
            hint="let it go out as it is, or reject it",
        )


def made_answer(kind: str, answer: HandAnswer) -> Played:
    """The decision of an exchange that is answered by hand."""
    if kind == "tool":
        return _made(kind, {}, b'{"return":' + answer.body.encode() + b"}", None)
    body = answer.body.encode()
    streams = answer.body.startswith(("data:", "event:", ":"))
    content_type = "text/event-stream" if streams else "application/json"
    return _made(kind, _head(answer.status, content_type), body, None)


def made_rejection(kind: str, why: str) -> Played:
    """The decision of an exchange that is rejected.

    HTTP: an answer with status 403, of which SDKs make their own error and do not try again. gRPC: the
    status PERMISSION_DENIED. Else the program gets `AskRejected`.
    """
    said = why or "rejected by an operator"
    if kind == "http":
        error = {"type": "error", "error": {"type": "rejected", "code": "rejected", "message": said}}
        return _made(kind, _head(FORBIDDEN, "application/json"), json.dumps(error).encode(), None)
    record = ErrorRecord(*REJECTION, said, [said])
    values = {a.RPC_GRPC_STATUS_CODE: PERMISSION_DENIED, a.PLAYHEAD_GRPC_DETAILS: said}
    return _made(kind, {}, b"", record, values if kind == "grpc" else None)


def _head(status: int, content_type: str) -> dict[str, Any]:
    headers = ["content-type", content_type, "x-should-retry", "false"]
    return {
        a.HTTP_RESPONSE_STATUS_CODE: status,
        a.PLAYHEAD_HTTP_HEADERS: headers,
        a.PLAYHEAD_HTTP_VERSION: "HTTP/1.1",
    }


def _made(
    kind: str,
    head: dict[str, Any],
    body: bytes,
    error: ErrorRecord | None,
    values: Mapping[str, Any] | None = None,
) -> Played:
    """``values``: of the end."""
    id = ExchangeId(0, kind, 0)
    parts = [Part(Content.chunk(body), 0, None)] if body else []
    exchange = Exchange(id, Ask(kind, "", Content.chunk(b"")), 0, head=head, parts=parts)
    exchange.end = End("complete" if error is None else "error", None, error, values=dict(values or {}))
    return Played(
        exchange,
        b"",
        lambda content: content.inline or b"",
        fidelity=Fidelity.CHANGED,
        elsewhere=False,
        made=True,
    )
