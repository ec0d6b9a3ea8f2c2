"""A desk that answers questions about orders: a service that asks a model, and calls tools."""

import json
import os

import httpx
from fastapi import FastAPI, HTTPException
from openai import AsyncOpenAI

import playhead

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "search",
            "description": "What the shop's mail says.",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
        },
    }
]

app = FastAPI()


@playhead.tool
def refund(order: str, cents: int) -> dict:
    if order != "81":
        raise ValueError(f"no order {order}")
    return {"order": order, "cents": cents}


@app.post("/ask")
async def ask(question: dict) -> dict:
    client = AsyncOpenAI()
    history = [
        {"role": "system", "content": "You find out where orders are."},
        {"role": "user", "content": question["text"]},
    ]
    while True:
        asked = await client.chat.completions.create(model="gpt-5.5", messages=history, tools=TOOLS)
        message = asked.choices[0].message
        if not message.tool_calls:
            return {"answer": message.content}
        history.append(message.to_dict())
        for call in message.tool_calls:
            wanted = json.loads(call.function.arguments)
            async with httpx.AsyncClient(timeout=60) as web:
                found = await web.get(f"{os.environ['TOOLS_URL']}/search", params=wanted)
            history.append({"role": "tool", "tool_call_id": call.id, "content": found.text})


@app.post("/refunds")
async def refunds(wanted: dict) -> dict:
    return refund(wanted["order"], 4900)


@app.get("/orders/{number}")
async def order(number: str) -> dict:
    raise HTTPException(404, f"no order {number}")
