"""A refund desk: looks an order up, then decides.

Shows the Responses API with reasoning, a function call answered over HTTP, and a streamed decision.
"""

import json
import os
import sys

import httpx
from openai import OpenAI

TOOLS = [
    {
        "type": "function",
        "name": "lookup_order",
        "description": "What is known about an order.",
        "parameters": {
            "type": "object",
            "properties": {"order": {"type": "string"}},
            "required": ["order"],
            "additionalProperties": False,
        },
        "strict": True,
    }
]
ASK = {
    "model": "gpt-5.5",
    "instructions": "You decide refunds. Refund what arrived broken.",
    "tools": TOOLS,
    "reasoning": {"effort": "low", "summary": "auto"},
    "include": ["reasoning.encrypted_content"],
    "store": False,
}


def lookup_order(order: str) -> str:
    answer = httpx.get(f"{os.environ['TOOLS_URL']}/orders", params={"order": order})
    return answer.raise_for_status().text


def main(order: str) -> None:
    client = OpenAI()
    history = [{"role": "user", "content": f"Please refund order {order}."}]
    response = client.responses.create(input=history, **ASK)
    while calls := [item for item in response.output if item.type == "function_call"]:
        history += [item.to_dict() for item in response.output]
        for call in calls:
            result = lookup_order(**json.loads(call.arguments))
            history.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
        with client.responses.stream(input=history, **ASK) as stream:
            for event in stream:
                if event.type == "response.output_text.delta":
                    print(event.delta, end="", flush=True)
            response = stream.get_final_response()
    print()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "81")
