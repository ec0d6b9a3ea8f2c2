"""A provider whose answers differ each time, after varying delays."""

from __future__ import annotations

import itertools
import random
import time
from typing import Any

from support.servers.scripted import (
    Reply,
    Request,
    chat_sse,
    json_reply,
    openai_chat,
    openai_error,
)


class Jittered:
    """Answers every request with a new number, after a delay that varies."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._chance = random.Random(7)
        self._refused: dict[str, int] = {}

    def __call__(self, request: Request) -> Reply:
        time.sleep(self._chance.random() * 0.012)
        number = next(self._numbers)
        if "/tool" in request.path:
            return json_reply({"tool": number})
        asked: dict[str, Any] = request.json
        text = str(asked["messages"][-1]["content"])
        if text.startswith("storm"):
            self._refused[text] = self._refused.get(text, 0) + 1
            if self._refused[text] <= int(text.split()[1]):
                return openai_error(429, {"retry-after-ms": "5"})
        whole = openai_chat.completion(f"answer {number} to {text}")
        return chat_sse(whole) if asked.get("stream") else json_reply(whole)
