"""The answers of the demo's provider: pure functions from a request body to an answer.

The answer depends on the conversation. A question that names cities gets one ``weather`` call per city;
tool results get a summary. A repeated question gets a different draft each time (models are not
deterministic, so the demo's is not either).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from playhead_cli.demo.shapes import anthropic_messages, openai_chat, openai_responses
from playhead_cli.demo.shapes.sse import Json

WEATHER: dict[str, Json] = {
    "Oslo": {"city": "Oslo", "celsius": -4, "sky": "snow"},
    "Rome": {"city": "Rome", "celsius": 17, "sky": "clear"},
    "Lima": {"city": "Lima", "celsius": 22, "sky": "mist"},
}
ORDERS: dict[str, Json] = {
    "81": {"order": "81", "item": "tea kettle", "paid_cents": 4900, "delivered": True, "broken": True},
    "82": {"order": "82", "item": "umbrella", "paid_cents": 1900, "delivered": True, "broken": False},
}
MAIL: dict[str, Json] = {
    "order 83": {"query": "order 83", "found": []},
    "order 81": {"query": "order 81", "found": ["Order 81 was delivered on Monday."]},
}
DRAFTS = (
    "A flight recorder keeps the last moments of a flight, so that the cause of an accident is found.",
    "Flight recorders exist because a crash leaves no witness: the record is the witness.",
    "The recorder answers one question: what did the crew and the machine know, and when?",
)


def chat(body: Json, times: int) -> Json:
    """Return a chat completion. ``times``: how often this same request was answered before."""
    messages: list[Json] = body["messages"]
    model = str(body["model"])
    tokens = _tokens(json.dumps(messages))
    results = [json.loads(one["content"]) for one in messages if one["role"] == "tool"]
    if any(tool["function"]["name"] == "search" for tool in body.get("tools", ())):
        return _refund(messages, results, model)
    if results:
        text = _packing(results)
        usage = openai_chat.usage(tokens, _tokens(text), cached=tokens // 2)
        return openai_chat.completion(text, id=f"chatcmpl-{len(messages)}", model=model, usage=usage)
    cities = [city for city in WEATHER if city in str(messages[-1]["content"])]
    if cities and body.get("tools"):
        calls = [
            openai_chat.tool_call(f"call_{number}", "weather", {"city": city})
            for number, city in enumerate(cities, 1)
        ]
        usage = openai_chat.usage(tokens, 18 * len(calls))
        return openai_chat.completion(
            tool_calls=calls, id=f"chatcmpl-{len(messages)}", model=model, usage=usage
        )
    text = DRAFTS[times % len(DRAFTS)]
    return openai_chat.completion(text, model=model, usage=openai_chat.usage(tokens, _tokens(text)))


def _refund(messages: list[Json], results: list[Json], model: str) -> Json:
    """Search until something is found, unless the request says when to stop."""
    usage = openai_chat.usage(_tokens(json.dumps(messages)), 22)
    id = f"chatcmpl-{len(messages)}"
    found = [mail for one in results for mail in one["found"]]
    told_to_stop = "nothing" in str(messages[0]["content"])
    order = _first(re.findall(r"order \d+", str(messages[1]["content"])), "")
    if not found and not (results and told_to_stop):
        calls = [openai_chat.tool_call(f"call_{len(results) + 1}", "search", {"query": order})]
        return openai_chat.completion(tool_calls=calls, id=id, model=model, usage=usage)
    text = found[0] if found else f"No mail tells of {order}. I pass this on to a colleague."
    return openai_chat.completion(text, id=id, model=model, usage=usage)


def response(body: Json, times: int) -> Json:
    """Return a response: look the order up, then decide."""
    given = body["input"]
    items: list[Json] = [{"role": "user", "content": given}] if isinstance(given, str) else given
    model = str(body["model"])
    tokens = _tokens(json.dumps(items))
    results = [
        json.loads(item["output"]) for item in items if item.get("type") == "function_call_output"
    ]
    if results:
        text = _verdict(results[-1])
        output = [openai_responses.message(text, id=f"msg_{len(items)}")]
        usage = openai_responses.usage(tokens, _tokens(text), cached=tokens // 2)
    else:
        order = _first(re.findall(r"\d+", str(items[-1]["content"])), "0")
        output = [
            openai_responses.reasoning(
                "The customer wants money back; look at the order first.", encrypted_content="Z0FBQUE="
            ),
            openai_responses.function_call("call_1", "lookup_order", {"order": order}),
        ]
        usage = openai_responses.usage(tokens, 44, reasoning=26)
    return openai_responses.response(output, id=f"resp_{len(items)}", model=model, usage=usage)


def message(body: Json, times: int) -> Json:
    """Return a message: a draft; given several drafts, their summary."""
    text = _text(body["messages"][-1]["content"])
    tokens = _tokens(json.dumps(body["messages"]))
    drafts = [draft for draft in DRAFTS if draft in text]
    if drafts:
        content = [
            anthropic_messages.thinking(f"{len(drafts)} drafts, one thought: the record is evidence."),
            anthropic_messages.text("A flight recorder turns an accident into evidence."),
        ]
    else:
        content = [anthropic_messages.text(DRAFTS[times % len(DRAFTS)])]
    usage = anthropic_messages.usage(tokens, sum(_tokens(json.dumps(block)) for block in content))
    return anthropic_messages.message(content, id=f"msg_{times}", model=str(body["model"]), usage=usage)


def _packing(results: list[Json]) -> str:
    advice = {"snow": "a warm coat", "clear": "sunglasses", "mist": "a light jacket"}
    lines = [
        f"For {one['city']} ({one['celsius']} °C, {one['sky']}) pack {advice[one['sky']]}."
        for one in results
    ]
    return " ".join(lines)


def _verdict(order: Json) -> str:
    if order.get("broken"):
        euros = order["paid_cents"] / 100
        return f"Order {order['order']}: the {order['item']} arrived broken. Refund {euros:.2f} EUR."
    return f"Order {order.get('order', '?')}: nothing is wrong with it. No refund."


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks: list[Json] = content
    return "\n".join(str(block.get("text", "")) for block in blocks)


def _first(found: Iterable[str], otherwise: str) -> str:
    return next(iter(found), otherwise)


def _tokens(text: str) -> int:
    return max(1, len(text) // 4)
