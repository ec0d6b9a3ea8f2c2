"""Steps of every kind that a fork may edit: a chat, a streamed chat, a tool of ours, a tool by hand."""

import json
import sys

from asking import answered, streamed

import playhead

STEPS = int(sys.argv[1])


@playhead.tool(effect="write")
def look_up(word: str) -> dict[str, str]:
    with open("calls.txt", "a") as file:
        file.write(f"{word}\n")
    return {"word": word, "means": f"meaning of {word}"}


history = [{"role": "system", "content": "You are terse."}]
for step in range(0, STEPS, 4):
    history.append({"role": "user", "content": f"question {step}"})
    text = answered(messages=history)["content"]
    found = look_up(text.split()[-1])
    call = {
        "id": f"call_{step}",
        "type": "function",
        "function": {"name": "look_up", "arguments": "{}"},
    }
    history.append({"role": "assistant", "content": text, "tool_calls": [call]})
    content = json.dumps(found)
    history.append({"role": "tool", "tool_call_id": f"call_{step}", "content": content})
    said = "".join(streamed(messages=history))
    history.append({"role": "assistant", "content": said})
    look_up(f"again{step}")
    with open("log.txt", "a") as log:
        log.write(f"{step} {text} {found['means']} {said}\n")
    print(step, text, found["means"], said, flush=True)
