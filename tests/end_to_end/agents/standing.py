"""An agent that searches until the model is content, or that stands still in the way it is told."""

import sys
import threading

import openai

TOOL = {
    "type": "function",
    "function": {
        "name": "search_docs",
        "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
    },
}
client = openai.OpenAI(max_retries=0)
how = sys.argv[1]
messages = [{"role": "user", "content": f"{how}: what is the refund policy?"}]


def search_docs() -> str:
    if how == "tool":
        threading.Event().wait()
    return "[]"


while True:
    if how == "stream":
        for _ in client.chat.completions.create(model="gpt-4o", messages=messages, stream=True):
            pass
    answer = client.chat.completions.create(model="gpt-4o", messages=messages, tools=[TOOL])
    message = answer.choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    if not message.tool_calls:
        break
    for call in message.tool_calls:
        print("searched", flush=True)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": search_docs()})
if how == "person":
    input()
