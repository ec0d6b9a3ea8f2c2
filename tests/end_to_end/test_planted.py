"""150 and more planted credentials, by class: none in spool, store, export, golden, diff or `show`."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.long import long
from support.planting import CLASSES, Planted, packed, planted
from support.scanning import leaks, texts
from support.servers.scripted import Reply, ScriptedServer, json_reply, openai_chat, sse_reply
from support.starting.home import Home
from support.starting.running import AGENTS

LAUNCHERS = {
    "playhead record": ["-m", "playhead_cli", "record"],
    "opentelemetry-instrument": [],
}


def one(plan: list[Planted], place: str) -> str:
    (found,) = [each.value for each in plan if each.place == place]
    return found


def event(value: object) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def answers(provider: ScriptedServer, plan: list[Planted]) -> None:
    def of(place: str) -> list[str]:
        return [each.text for each in plan if each.place == place]

    spoken = one(plan, "said in pieces")
    pieces = [spoken[at : at + 4] for at in range(0, len(spoken), 4)]
    events = [
        {"choices": [{"index": 0, "delta": {"content": text}}]} for text in ["It is ", *pieces, "."]
    ]
    provider.on("/v1/chat/completions", json_reply(openai_chat.completion("plain words of the answer")))
    provider.on("/answer", json_reply({"choices": of("answer")}, gzip=True))
    provider.on("/tool", Reply([text.encode() + b"\n" for text in of("tool")], framing="chunked"))
    provider.on(
        "/stream",
        sse_reply([f"data: {json.dumps({'text': text})}\n\n".encode() for text in of("stream")]),
    )
    provider.on("/pieces", sse_reply([f"data: {json.dumps(event)}\n\n".encode() for event in events]))
    more = {
        "Location": f"https://example.org/cb?access_token={one(plan, 'location')}",
        "Set-Cookie": f"sid={one(plan, 'set-cookie')}; Path=/",
    }
    provider.on("/headers", json_reply({"ok": True}, headers=more), repeat=True)


def check(tmp_path: Path, launcher: str, level: str, content: str) -> None:
    plan = planted()
    assert len(plan) >= 150 and {each.kind for each in plan} == set(CLASSES)
    home = Home(tmp_path, {"XDG_STATE_HOME": str(tmp_path / "state")})
    work = tmp_path / "work"
    work.mkdir()
    for number, text in enumerate(each.text for each in plan if each.place == "file"):
        (work / f"handed-{number}.txt").write_text(text)
    wanted = {f"{each.kind}/{each.place}/{each.value}": each.value.encode() for each in plan}
    coded = base64.b64encode(f"a {one(plan, 'base64')} b".encode())
    wanted["base64"] = coded[4:-4]
    with ScriptedServer() as provider:
        answers(provider, plan)
        environ = {
            **home.environ,
            "OPENAI_BASE_URL": f"{provider.url}/v1",
            "PLAYHEAD_LEVEL": level,
            "PLAYHEAD_CONTENT": content,
            "PGPASSWORD": one(plan, "PGPASSWORD"),
            "DEPLOY_TOKEN": one(plan, "DEPLOY_TOKEN"),
            "PLAN": packed(plan),
        }
        words = LAUNCHERS[launcher]
        if launcher == "opentelemetry-instrument":
            words = [str(Path(sys.executable).with_name("opentelemetry-instrument")), sys.executable]
            environ["PLAYHEAD_ENDPOINT"] = "http://127.0.0.1:9"
        else:
            words = [sys.executable, *words]
        done = subprocess.run(
            [*words, str(AGENTS / "planter.py"), "--api-key", one(plan, "--api-key")],
            env=environ,
            cwd=work,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    ours = tmp_path / "ours"
    ours.mkdir()

    def everywhere() -> Iterator[tuple[str, bytes]]:
        for folder in (home.data_dir, tmp_path / "spool", ours, tmp_path / "state"):
            if folder.exists():
                yield from texts(folder)

    assert leaks(everywhere(), wanted) == {}
    if launcher == "opentelemetry-instrument":
        pushed = home.playhead("spool", "push", "--all")
        assert pushed.returncode == 0, pushed.stderr
    for name, verb in {
        "tree": ("show", "last", "--all"),
        "json": ("show", "last", "--json"),
        "step": ("show", "last:1"),
        "otlp": ("export", "last", "--format", "otlp", "-o", "-"),
        "list": ("ls", "--json"),
        "doctor": ("doctor",),
    }.items():
        told = home.playhead(*verb)
        (ours / name).write_text(told.stdout + told.stderr)
    assert home.playhead("export", "last", "-o", str(ours / "run.tape")).returncode == 0
    home.playhead("golden", "add", "last", "--name", "planted", "--dir", str(ours))
    assert leaks(everywhere(), wanted) == {}
    seen = b"plain words of the answer" if content == "full" else b"/v1/chat/completions"
    assert leaks(everywhere(), {"seen": seen}), "the scanner does not see the record"


@pytest.mark.parametrize("launcher", ["playhead record", long("opentelemetry-instrument")])
def test_planted_credentials_are_found_nowhere(tmp_path: Path, launcher: str):
    check(tmp_path, launcher, "exchanges" if "instrument" in launcher else "strict", "full")


@pytest.mark.acceptance
@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("level", ["exchanges", "causal", "strict"])
@pytest.mark.parametrize("content", ["full", "metadata"])
def test_planted_credentials_at_each_level(tmp_path: Path, launcher: str, level: str, content: str):
    check(tmp_path, launcher, level, content)
