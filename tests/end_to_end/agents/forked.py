"""Steps of every kind that a fork may edit: a chat, a streamed chat, a tool of ours, a tool by hand."""

import json
import sys

from openai import OpenAI

import playhead

STEPS = int(sys.argv[1])


@playhead.tool(effect="write")
def look_up(word: str) -> dict[str, str]:
    with open("calls.txt", "a") as file:
        file.write(f"{word}\n")
    return {"word": word, "means": f"meaning of {word}"}


client = OpenAI(max_retries=0)
history = [{"role": "system", "content": "You are terse."}]
for step in range(0, STEPS, 4):
    history.append({"role": "user", "content": f"question {step}"})
    answer = client.chat.completions.create(model="gpt-5.5", messages=history)
    text = answer.choices[0].message.content
    found = look_up(text.split()[-1])
    call = {
        "id": f"call_{step}",
        "type": "function",
        "function": {"name": "look_up", "arguments": "{}"},
    }
    history.append({"role": "assistant", "content": text, "tool_calls": [call]})
    content = json.dumps(found)
    history.append({"role": "tool", "tool_call_id": f"call_{step}", "content": content})
    stream = client.chat.completions.create(model="gpt-5.5", messages=history, stream=True)
    said = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
    history.append({"role": "assistant", "content": said})
    look_up(f"again{step}")
    with open("log.txt", "a") as log:
        log.write(f"{step} {text} {found['means']} {said}\n")
    print(step, text, found["means"], said, flush=True)
