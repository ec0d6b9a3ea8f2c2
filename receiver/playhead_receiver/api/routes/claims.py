"""``/v1/claims``: effects that agents on several machines do once, for `RemoteClaims`.

What is said is MessagePack, in the words of `playhead_checkpoint.claims.messages`.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from playhead_checkpoint.claims import messages
from playhead_core.errors import UsageError
from playhead_receiver.api.asked import Ingesting
from playhead_receiver.api.problems import BodyTooLarge

_CONTENT: dict[str, Any] = {messages.MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}

router = APIRouter(tags=["claims"])


async def _body(request: Request) -> bytes:
    """The body, as far as it is taken. `BodyTooLarge`."""
    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > messages.LARGEST_BODY_BYTES:
            raise BodyTooLarge(f"a request has at most {messages.LARGEST_BODY_BYTES} bytes")
    return bytes(found)


@router.post(
    "/v1/claims",
    response_class=Response,
    responses={200: {"content": _CONTENT}},
    openapi_extra={"requestBody": {"required": True, "content": _CONTENT}},
)
def claim(asked: Ingesting, body: Annotated[bytes, Depends(_body)]) -> Response:
    """Claim a side effect for an attempt, report how an attempt ended, or renew claims.

    Of all that claim the same key of a lineage, one attempt gets `ours`. The same question with the same
    attempt has the same answer.
    """
    try:
        said = messages.decode_message.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as problem:
        raise UsageError("this is no claim", cause=str(problem)[:300]) from None
    answer = asked.claims.answer(said)
    return Response(messages.encode(answer), media_type=messages.MEDIA_TYPE)
