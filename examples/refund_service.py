"""A refund desk behind HTTP: each request is a run of its own, health checks are none.

It gives a wrong answer: of order 81, whose kettle arrived broken, it says that nothing is wrong.
`docs/start/first-incident.md` shows how that is found, mended, and kept mended.
"""

import json
import os

import httpx
from fastapi import FastAPI
from openai import AsyncOpenAI

TOLD = ("order", "item", "paid_cents", "delivered")
TOOLS = [
    {
        "type": "function",
        "name": "lookup_order",
        "description": "What is known about an order.",
        "parameters": {"type": "object", "properties": {"order": {"type": "string"}}},
    }
]
app = FastAPI()


async def lookup_order(order: str) -> str:
    async with httpx.AsyncClient(base_url=os.environ["TOOLS_URL"]) as shop:
        answer = await shop.get("/orders", params={"order": order})
    known = answer.raise_for_status().json()
    return json.dumps({name: known[name] for name in TOLD})


@app.post("/refunds/{order}")
async def refund(order: str) -> dict[str, str]:
    client = AsyncOpenAI()
    history = [{"role": "user", "content": f"A customer wants money back for order {order}."}]
    while True:
        response = await client.responses.create(model="gpt-5.5", input=history, tools=TOOLS)
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return {"order": order, "answer": response.output_text}
        history += [item.to_dict() for item in response.output]
        for call in calls:
            result = await lookup_order(**json.loads(call.arguments))
            history.append({"type": "function_call_output", "call_id": call.call_id, "output": result})


@app.get("/health")
async def health() -> dict[str, str]:
    return {"status": "ok"}
