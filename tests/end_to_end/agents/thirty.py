"""Thirty steps: a chat each, a tool that appends to a file, a file of its own, a clock, a draw."""

import json
import random
import sys
import time

from asking import answered

import playhead

STEPS = int(sys.argv[1])


@playhead.tool(effect="write")
def note(text: str) -> int:
    with open("notes.txt", "a") as file:
        file.write(f"{text}\n")
    with open("notes.txt") as file:
        return len(file.readlines())


history = [{"role": "system", "content": "You count."}]
with open("log.txt", "a", buffering=1) as log:
    for step in range(STEPS):
        history.append({"role": "user", "content": f"step {step}, {random.random():.6f}"})
        text = answered(messages=history)["content"]
        log.write(f"{step} {text}\n")
        history.append({"role": "assistant", "content": text})
        lines = note(f"note {step}")
        print(step, text, lines, flush=True)
        with open("state.json", "w") as file:
            json.dump({"step": step, "lines": lines}, file)
        time.time()
print("done", random.random() < 2)
