"""A service that asks a model and another service."""

import os

import httpx
from fastapi import FastAPI, Request

app = FastAPI()
model = httpx.AsyncClient(base_url=os.environ["OPENAI_BASE_URL"], timeout=60)


@app.post("/order/{number}")
async def order(number: int, request: Request):
    question = {"model": "gpt-5.5", "messages": [{"role": "user", "content": f"Plan order {number}"}]}
    planned = (await model.post("/chat/completions", json=question)).json()
    async with httpx.AsyncClient(base_url=os.environ["BACK_URL"], timeout=60) as back:
        first = await back.post("/check", json={"number": number})
        second = await back.post("/check", json={"number": number + 1})
    print("front", number, sorted(first.request.headers))
    return {"plan": planned["choices"][0]["message"]["content"], "checks": [first.json(), second.json()]}
