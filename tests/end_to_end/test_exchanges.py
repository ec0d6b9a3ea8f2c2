"""Level `exchanges`: what was recorded without clocks, entropy and order is replayed in virtual time."""

from __future__ import annotations

import ast
import itertools
import json
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.home import Home
from support.scripted import (
    Reply,
    Request,
    ScriptedServer,
    chat_sse,
    json_reply,
    openai_chat,
    openai_error,
)

FIFTY = Path(__file__).parent / "agents" / "fifty.py"
LONG = [pytest.mark.acceptance, pytest.mark.timeout(900)]
NAMES = [
    node.name
    for node in ast.parse(FIFTY.read_text("utf-8")).body
    if isinstance(node, ast.FunctionDef)
    and any(isinstance(one, ast.Name) and one.id == "program" for one in node.decorator_list)
]
FEW = (
    *("identifiers_again", "iso_time", "token", "shared_random", "echoed_in_a_stream", "threads"),
    *("polled_queue", "request_given_up", "hedged", "sdk_streams_at_once", "over_aiohttp", "children"),
)
"""Of all, those that stand for the others in the short suite."""


class Provider:
    """Answers each request with a new number, after a while of its own."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._chance = random.Random(5)
        self._refused: dict[str, int] = {}

    def __call__(self, request: Request) -> Reply:
        time.sleep(self._chance.random() * 0.01)
        number = next(self._numbers)
        if request.path.startswith("/echo"):
            return json_reply(request.json)
        if request.path.startswith("/slow"):
            time.sleep(0.5)
        if not request.path.startswith("/v1"):
            return json_reply({"tool": number})
        asked: dict[str, Any] = request.json
        text = str(asked["messages"][-1]["content"])
        if text.startswith("storm"):
            self._refused[text] = self._refused.get(text, 0) + 1
            if self._refused[text] <= int(text.split()[1]):
                return openai_error(429, {"retry-after-ms": "5"})
        whole = openai_chat.completion(f"answer {number} to {text}")
        return chat_sse(whole) if asked.get("stream") else json_reply(whole)


@contextmanager
def recorded(folder: Path, script: Path, *words: str, **more: str) -> Iterator[Home]:
    """A home in which ``script`` has been recorded at level `exchanges`; its provider is gone."""
    server = ScriptedServer()
    server.on(lambda _: True, Provider(), repeat=True)
    home = Home(
        folder,
        {
            "OPENAI_BASE_URL": server.openai_url,
            "OPENAI_API_KEY": "test",
            "TOOLS_URL": server.url,
            "NO_PROXY": "127.0.0.1",
            "PLAYHEAD_LEVEL": "exchanges",
            **more,
        },
    )
    done = home.playhead("record", script, *words)
    server.close()
    assert done.returncode == 0, done.stderr
    yield home


def times(*few: str) -> Any:
    """Each of the few once; each of all twenty times where there is time for that."""
    short = [pytest.param(name, 1, id=name) for name in few]
    long = [pytest.param(name, 20, id=f"{name}-20", marks=LONG) for name in NAMES]
    return pytest.mark.parametrize(("name", "count"), [*short, *long])


@times(*FEW)
def test_every_exchange_is_answered(tmp_path: Path, name: str, count: int):
    with recorded(tmp_path, FIFTY, name) as home:
        for number in range(count):
            status, report = home.report("last")
            found = json.dumps(report["divergences"][:3], indent=1)
            assert report["verdict"] in ("identical", "volatile"), f"replay {number + 1}: {found}"
            fidelity = report["fidelity"]
            assert (status, report["level"]) == (0, "exchanges")
            assert fidelity["exact"] + fidelity["volatile"] == report["asked"] > 0
            assert not report["unused"]


def test_there_are_fifty():
    assert len(NAMES) >= 50
    assert set(FEW) <= set(NAMES)
