"""A service that another one calls; it asks a model."""

import os

import httpx
from fastapi import FastAPI

app = FastAPI()
model = httpx.Client(base_url=os.environ["OPENAI_BASE_URL"], timeout=60)


@app.post("/check")
def check(order: dict):
    question = {
        "model": "gpt-5.5",
        "messages": [{"role": "user", "content": f"Check {order['number']}"}],
    }
    answer = model.post("/chat/completions", json=question).json()
    print("back", order["number"])
    return {"check": answer["choices"][0]["message"]["content"]}
