"""A history that grows by about two kilobytes a step, sent whole with every step."""

import random
import sys

from openai import OpenAI

words = random.Random(7)
client = OpenAI()
history = [{"role": "system", "content": "You are thorough."}]
for step in range(int(sys.argv[1])):
    text = " ".join(f"{words.getrandbits(40):x}" for _ in range(180))
    history.append({"role": "user", "content": f"step {step}: {text}"})
    answer = client.chat.completions.create(model="gpt-5.5", messages=history)
    history.append({"role": "assistant", "content": answer.choices[0].message.content})
