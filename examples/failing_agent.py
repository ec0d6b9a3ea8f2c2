"""An agent to which all four types of failures happen: model, tool, retrieval, orchestration.

playhead derives a failure, its code and its step from what happened. The agent adds what it decided, and
a signal of its quality. `playhead show` prints both, and `playhead ls failure:` finds them.
"""

import json
import os
import sys

import httpx
from openai import OpenAI, RateLimitError

import playhead

SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Search the mail.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
    },
}


@playhead.tool
def lookup_order(order: str) -> str:
    answer = httpx.get(f"{os.environ['TOOLS_URL']}/orders", params={"order": order})
    return answer.raise_for_status().text


@playhead.tool
def search(query: str) -> str:
    return httpx.get(f"{os.environ['TOOLS_URL']}/search", params={"query": query}).text


def ask(messages: list[dict]):
    client = OpenAI(max_retries=0)
    try:
        answer = client.chat.completions.create(model="gpt-5.5", messages=messages, tools=[SEARCH])
    except RateLimitError:
        playhead.decision("what to do about the rate limit", ["ask again", "give up"], "ask again")
        answer = client.chat.completions.create(model="gpt-5.5", messages=messages, tools=[SEARCH])
    return answer.choices[0].message


def main(order: str) -> None:
    try:
        known = lookup_order(order)
    except httpx.HTTPStatusError:
        known = "The order is not in the database."
        playhead.decision("where to look for the order", ["database", "mail"], "mail")
    messages = [
        {"role": "system", "content": f"Answer the customer. {known}"},
        {"role": "user", "content": f"Where is order {order}?"},
    ]
    searched: list[str] = []
    while calls := (message := ask(messages)).tool_calls:
        messages.append(message.to_dict())
        for call in calls:
            query = json.loads(call.function.arguments)["query"]
            if query in searched:
                playhead.failure("orchestration", "step_repetition", step="search", message=query)
                raise RuntimeError("gave up: the model repeats its search")
            searched.append(query)
            found = search(query)
            playhead.signal("empty_retrieval", "search", not json.loads(found)["found"])
            messages.append({"role": "tool", "tool_call_id": call.id, "content": found})
    print(message.content)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "83")
