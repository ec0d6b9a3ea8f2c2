"""Streams answer upon answer and writes down, unbuffered, what it asked and what it got."""

import os
import sys

from openai import OpenAI

log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
steps = int(sys.argv[2])
client = OpenAI(max_retries=0)
history = []
for step in range(steps):
    history.append({"role": "user", "content": f"Question {step}: what comes next?"})
    os.write(log, f"ask {step}\n".encode())
    text = ""
    for chunk in client.chat.completions.create(model="gpt-5.5", messages=history, stream=True):
        delta = chunk.choices[0].delta.content if chunk.choices else None
        if delta:
            os.write(log, f"got {delta}\n".encode())
            text += delta
    history.append({"role": "assistant", "content": text})
