"""A service under threads that asks a model: whole answers and streamed ones."""

import json
import os
import random
import time
import uuid

import httpx
from flask import Flask, Response, request

BOOTED = os.urandom(4).hex()
app = Flask(__name__)
client = httpx.Client(base_url=os.environ["OPENAI_BASE_URL"], timeout=60)


def asked(text: str) -> dict:
    return {"model": "gpt-5.5", "messages": [{"role": "user", "content": text}]}


def answer(text: str) -> str:
    answered = client.post("/chat/completions", json=asked(text)).json()
    return answered["choices"][0]["message"]["content"]


@app.post("/chat")
def chat():
    question = request.get_json()["text"]
    print("asked:", question)
    return {
        "answer": answer(question),
        "booted": BOOTED,
        "luck": [random.random(), random.choice("abcdef")],
        "at": time.time(),
        "id": str(uuid.uuid4()),
    }


@app.post("/guarded")
def guarded():
    if request.headers.get("authorization") != "Bearer the-right-one-5":
        return {"error": "who are you?"}, 401
    return {"answer": answer("Who am I?")}


@app.post("/twice")
def twice():
    question = request.get_json()["text"]
    return {"answer": answer(f"{answer(question)} {uuid.uuid4()}"), "at": time.time()}


@app.post("/stream")
def stream():
    question = request.get_json()["text"]

    def pieces():
        wanted = {**asked(question), "stream": True}
        with client.stream("POST", "/chat/completions", json=wanted) as answered:
            for line in answered.iter_lines():
                if line.startswith("data: {") and (choices := json.loads(line[6:])["choices"]):
                    yield f"data: {choices[0]['delta'].get('content')} {uuid.uuid4()}\n\n"

    return Response(pieces(), mimetype="text/event-stream")


if __name__ == "__main__":
    app.run(port=0)
