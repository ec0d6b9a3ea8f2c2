"""A service under threads that asks a model: whole answers and streamed ones."""

import os
import random
import time
import uuid

from flask import Flask, Response, request
from openai import OpenAI

BOOTED = os.urandom(4).hex()
app = Flask(__name__)
client = OpenAI()


def asked(text: str) -> dict:
    return {"model": "gpt-5.5", "messages": [{"role": "user", "content": text}]}


@app.post("/chat")
def chat():
    question = request.get_json()["text"]
    print("asked:", question)
    answer = client.chat.completions.create(**asked(question))
    return {
        "answer": answer.choices[0].message.content,
        "booted": BOOTED,
        "luck": [random.random(), random.choice("abcdef")],
        "at": time.time(),
        "id": str(uuid.uuid4()),
    }


@app.post("/guarded")
def guarded():
    if request.headers.get("authorization") != "Bearer the-right-one-5":
        return {"error": "who are you?"}, 401
    return {"answer": client.chat.completions.create(**asked("Who am I?")).choices[0].message.content}


@app.post("/twice")
def twice():
    question = request.get_json()["text"]
    first = client.chat.completions.create(**asked(question)).choices[0].message.content
    second = client.chat.completions.create(**asked(f"{first} {uuid.uuid4()}"))
    return {"answer": second.choices[0].message.content, "at": time.time()}


@app.post("/stream")
def stream():
    question = request.get_json()["text"]

    def pieces():
        with client.chat.completions.create(**asked(question), stream=True) as answer:
            for chunk in answer:
                if chunk.choices:
                    yield f"data: {chunk.choices[0].delta.content} {uuid.uuid4()}\n\n"

    return Response(pieces(), mimetype="text/event-stream")


if __name__ == "__main__":
    app.run(port=0)
