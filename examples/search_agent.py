"""A help desk: searches for an order until it knows where it is.

It gets stuck. What it searches for is not there, it is told to be sure, and so it searches again.
`playhead demo incident` shows how that is found, understood and mended.
"""

import json
import os
import sys

import httpx
from openai import OpenAI

INSTRUCTIONS = "You find out where orders are. Search until you are sure."
LIMIT = 12
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "search",
            "description": "What the shop's mail says.",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
        },
    }
]


def search(query: str) -> str:
    answer = httpx.get(f"{os.environ['TOOLS_URL']}/search", params={"query": query})
    return answer.raise_for_status().text


def main(order: str) -> None:
    client = OpenAI()
    history = [
        {"role": "system", "content": INSTRUCTIONS},
        {"role": "user", "content": f"Where is order {order}?"},
    ]
    for _ in range(LIMIT):
        asked = client.chat.completions.create(model="gpt-5.5", messages=history, tools=TOOLS)
        message = asked.choices[0].message
        if not message.tool_calls:
            print(message.content)
            return
        history.append(message.to_dict())
        for call in message.tool_calls:
            found = search(**json.loads(call.function.arguments))
            history.append({"role": "tool", "tool_call_id": call.id, "content": found})
    raise RuntimeError(f"no answer after {LIMIT} searches")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "83")
