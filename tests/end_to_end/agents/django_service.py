"""A service of Django that asks a model: whole answers, streamed ones, as WSGI and as ASGI."""

import json
import os
import signal
import sys
import threading
import time
import uuid
from wsgiref.simple_server import make_server

import django
import httpx
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import JsonResponse, StreamingHttpResponse
from django.urls import path

PLACE = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
BOOTED = os.urandom(4).hex()
settings.configure(
    ALLOWED_HOSTS=["*"],
    SECRET_KEY="none",
    ROOT_URLCONF=__name__,
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
)
django.setup()


def asked(request):
    question = json.loads(request.body)["text"]
    return {"model": "gpt-5.5", "messages": [{"role": "user", "content": question}]}


def content(answer):
    return answer.json()["choices"][0]["message"]["content"]


def chat(request):
    said = content(httpx.post(PLACE, json=asked(request), timeout=60))
    return JsonResponse({"answer": said, "booted": BOOTED, "at": time.time(), "id": str(uuid.uuid4())})


async def later(request):
    async with httpx.AsyncClient(timeout=60) as client:
        said = content(await client.post(PLACE, json=asked(request)))
    return JsonResponse({"answer": said, "id": str(uuid.uuid4())})


def stream(request):
    def pieces():
        wanted = {**asked(request), "stream": True}
        with httpx.stream("POST", PLACE, json=wanted, timeout=60) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: {") and (choices := json.loads(line[6:])["choices"]):
                    yield f"data: {choices[0]['delta'].get('content')} {uuid.uuid4()}\n\n"

    return StreamingHttpResponse(pieces(), content_type="text/event-stream")


def broken(request):
    raise ValueError("broken")


urlpatterns = [path("chat", chat), path("later", later), path("stream", stream), path("broken", broken)]
wsgi = get_wsgi_application()
asgi = get_asgi_application()

if __name__ == "__main__":
    with make_server("127.0.0.1", 0, wsgi) as server:
        # wsgiref takes a KeyboardInterrupt inside a request for an error of the request, and goes on.
        signal.signal(signal.SIGINT, lambda *_: threading.Thread(target=server.shutdown).start())
        print(f"http://127.0.0.1:{server.server_port}", flush=True, file=sys.stderr)
        server.serve_forever()
