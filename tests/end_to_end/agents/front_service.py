"""A service that asks a model and another service."""

import os

import httpx
from fastapi import FastAPI

app = FastAPI()
model = httpx.AsyncClient(base_url=os.environ["OPENAI_BASE_URL"], timeout=60)
back = httpx.AsyncClient(base_url=os.environ["BACK_URL"], timeout=60)


@app.post("/order/{number}")
async def order(number: int):
    question = {"model": "gpt-5.5", "messages": [{"role": "user", "content": f"Plan order {number}"}]}
    planned = (await model.post("/chat/completions", json=question)).json()
    checks = [await back.post("/check", json={"number": number + more}) for more in range(2)]
    print("front", number, sorted(checks[0].request.headers))
    answers = [check.json()["check"] for check in checks]
    return {"plan": planned["choices"][0]["message"]["content"], "checks": answers}
