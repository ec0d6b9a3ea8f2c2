"""Requests and answers of a model, as OpenAI writes them."""

import json
from typing import Any

from support.tapes.handmade import HandMade

from playhead_genai.providers import CONTENT_ATTRIBUTES, WireResponse, derive
from playhead_semconv import attributes as a

QUESTION = {"role": "user", "content": "Where is order 81?\nAnd 82?"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {
            "id": "c1",
            "type": "function",
            "function": {"name": "search", "arguments": '{"q": "order 81"}'},
        }
    ],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": '{"found": ["Order 81 is on its way."]}'}


def request(*messages: dict[str, Any]) -> bytes:
    return json.dumps({"model": "gpt-4o", "messages": messages}).encode()


def answer(**message: Any) -> bytes:
    said = {"role": "assistant", "content": None, **message}
    choice = {"index": 0, "message": said, "finish_reason": "stop"}
    return json.dumps({"model": "gpt-4o", "choices": [choice]}).encode()


def talk(made: HandMade, asked: bytes, said: bytes, *, told: bool = True) -> None:
    """One call of a model, whose span refers to its exchange instead of repeating what was said.

    ``told``: the span says which tools the answer calls.
    """
    call = made.begin("chat gpt-4o", kind=3, **{a.GEN_AI_OPERATION_NAME: "chat"})
    attempt = made.begin("POST", parent=call, kind=3, **{a.HTTP_REQUEST_METHOD: "POST"})
    id = made.exchange(request=asked, chunks=(said,), span=attempt)
    made.finish(attempt)
    derived = derive("openai.chat", asked, WireResponse(200, (), (said,), True)).attributes
    left_out = (*CONTENT_ATTRIBUTES, *(() if told else (a.PLAYHEAD_TOOL_CALLED,)))
    kept = {name: value for name, value in derived.items() if name not in left_out}
    refers = {
        a.PLAYHEAD_WIRE: "openai.chat",
        a.PLAYHEAD_DERIVED: [name for name in derived if name in CONTENT_ATTRIBUTES],
        a.PLAYHEAD_EXCHANGE_REF: f"{made.instance.hex()}/{id}",
        a.PLAYHEAD_RESTS_ON: made.facts[-1].seq,
    }
    made.finish(call, **kept, **refers)
