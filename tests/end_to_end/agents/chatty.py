"""A few steps of every kind: a chat, a stream, a retry after a 429, a tool over HTTP."""

import os

import httpx
from openai import OpenAI

client = OpenAI(max_retries=2)
history = [{"role": "system", "content": "You are terse."}]
for question in ("one", "two", "three"):
    history.append({"role": "user", "content": question})
    answer = client.chat.completions.create(model="gpt-5.5", messages=history, temperature=0.5)
    history.append({"role": "assistant", "content": answer.choices[0].message.content})
stream = client.chat.completions.create(
    model="gpt-5.5", messages=history, stream=True, stream_options={"include_usage": True}
)
print("".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices))
print(httpx.get(os.environ["OPENAI_BASE_URL"].removesuffix("/v1") + "/tool", timeout=60).json())
