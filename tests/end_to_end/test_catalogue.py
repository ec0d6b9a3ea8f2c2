"""400 credentials over places, spellings, encodings, shapes and splits: what docs/security.md says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import planting
from support.catalogue import Case, cases, packed, table
from support.scanning import leaks, texts
from support.servers.scripted import Reply, ScriptedServer, json_reply, sse_reply
from support.servers.websocket_server import WebSocketServer
from support.starting.home import Home
from support.starting.running import AGENTS

DOCUMENT = Path(__file__).parents[2] / "docs" / "security.md"
BEGIN, END = "<!-- secrets -->\n", "<!-- /secrets -->"


def event(value: Any) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def answers(server: ScriptedServer, plan: list[Case]) -> None:
    def of(place: str) -> list[Any]:
        return [one.item for one in plan if one.place == place]

    server.on("/sent", json_reply({"said": "plain words of the answer"}), repeat=True)
    server.on("/answer", json_reply({"texts": of("answer")}, gzip=True))
    server.on("/tool", Reply([f"{text}\n".encode() for text in of("tool")], framing="chunked"))
    server.on("/stream", sse_reply([event({"text": text}) for text in of("stream")]))
    calls = [
        {"function": {"name": "f", "arguments": json.dumps({"x": text})}} for text in of("arguments")
    ]
    server.on("/arguments", json_reply({"choices": [{"message": {"tool_calls": calls}}]}))
    spoken = [value[at : at + 4] for value in of("deltas") for at in range(0, len(value), 4)]
    deltas = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in spoken]
    server.on("/deltas", sse_reply([event(one) for one in deltas]))
    cut = [part.encode() for parts in of("answer in pieces") for part in (*parts, "\n")]
    server.on("/cut", Reply(cut, framing="chunked"))


def planted(folder: Path, level: str, plan: list[Case]) -> list[Case]:
    """Record the plan; return the cases of which a value is anywhere in what playhead has written."""
    home = Home(folder, {"XDG_STATE_HOME": str(folder / "state")})
    work = folder / "work"
    work.mkdir()
    for number, one in enumerate([one for one in plan if one.place == "file"]):
        (work / f"handed-{number}.txt").write_text(one.item)
    with ScriptedServer() as server, WebSocketServer() as sockets:
        answers(server, plan)
        given = {"BASE_URL": server.url, "SOCKET_URL": sockets.url(""), "PLAN": packed(plan)}
        done = subprocess.run(
            [sys.executable, "-m", "playhead_cli", "record", str(AGENTS / "catalogued.py")],
            env={**home.environ, **given, "PLAYHEAD_LEVEL": level},
            cwd=work,
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert done.returncode == 0, done.stderr
    ours = folder / "ours"
    ours.mkdir()
    for name, words in {
        "json": ("show", "last", "--json"),
        "tree": ("show", "last", "--all"),
        "otlp": ("export", "last", "--format", "otlp", "-o", "-"),
    }.items():
        (ours / name).write_text(home.playhead(*words).stdout)
    assert home.playhead("export", "last", "-o", str(ours / "run.tape")).returncode == 0

    def everywhere() -> Iterator[tuple[str, bytes]]:
        for place in (home.data_dir, folder / "spool", folder / "state", ours):
            yield from texts(place)

    assert leaks(everywhere(), {"seen": b"plain words of the answer"}), "the scanner sees no record"
    wanted = {
        f"{number} {form}": form.encode() for number, one in enumerate(plan) for form in one.wanted
    }
    return [
        plan[number] for number in sorted({int(one.split()[0]) for one in leaks(everywhere(), wanted)})
    ]


def check(folder: Path, level: str, plan: list[Case]) -> None:
    found = planted(folder, level, plan)
    print(level, len(plan), "planted", Counter(one.stays or "outside" for one in found))
    outside = [f"{one.kind} in {one.place}: {one.item}" for one in found if not one.stays]
    assert not outside, "\n".join(outside)
    expected = {one.stays for one in plan if one.stays}
    assert {one.stays for one in found} == expected, "the document calls something open that is hidden"


def test_some_credentials_of_each_kind_are_hidden(tmp_path: Path):
    plan = cases()
    check(tmp_path, "strict", [one for number, one in enumerate(plan) if number % 9 == 0])


@pytest.mark.acceptance
@pytest.mark.parametrize("level", ["exchanges", "strict"])
def test_four_hundred_credentials_are_hidden(tmp_path: Path, level: str):
    plan = cases()
    assert len(plan) >= 400
    check(tmp_path, level, plan)


def test_the_document_says_what_is_hidden():
    """`UPDATE=1` writes it."""
    text = DOCUMENT.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    made = (
        f"{before}{BEGIN}"
        + "\n".join([*planting.table(), "", *table()])
        + "\n"
        + END
        + rest.partition(END)[2]
    )
    if os.environ.get("UPDATE"):
        DOCUMENT.write_text(made, "utf-8")
    assert text == made
