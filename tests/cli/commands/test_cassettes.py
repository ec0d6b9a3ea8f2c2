"""A cassette that vcrpy recorded replays, and vcrpy plays a cassette that was made of a tape."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.servers.scripted import (
    Reply,
    ScriptedServer,
    chat_sse,
    json_reply,
    openai_chat,
    sse,
)
from support.starting.cli import CommandLine

KEY = "sk-a-secret-of-the-cassette-42"
AGENT = """
import sys, urllib.request, httpx, openai
url = sys.argv[1]
client = openai.OpenAI(base_url=url + "/v1", api_key={key!r}, max_retries=0)
asked = {{"model": "gpt-4o", "messages": [{{"role": "user", "content": "Weather?"}}]}}
print(client.chat.completions.create(**asked).choices[0].message.content)
for chunk in client.chat.completions.create(stream=True, **asked):
    if chunk.choices and chunk.choices[0].delta.content:
        print(chunk.choices[0].delta.content)
print(urllib.request.urlopen(url + "/plain").read(), httpx.get(url + "/packed").json())
"""
PLAYED = """
import runpy, sys, vcr
cassette, mode, url = sys.argv[1:]
sys.argv = ["agent.py", url]
with vcr.use_cassette(cassette, record_mode=mode):
    runpy.run_path("agent.py")
"""
PRINTED = "It rains.\nStill.\nb'\\xc3\\xb8' {'a': 1}\n"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(AGENT.format(key=KEY))
    return tmp_path


def completion(text: str) -> dict[str, Any]:
    return openai_chat.completion(choices=[openai_chat.choice(text)])


def under_vcr(folder: Path, cassette: str, mode: str, url: str) -> str:
    words = [sys.executable, "-c", PLAYED, cassette, mode, url]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_and_back(playhead: CommandLine, program: Path):
    said, still = completion("It rains."), completion("Still.")
    with ScriptedServer() as server:
        server.on("/v1/chat/completions", json_reply(said), chat_sse(still))
        server.on("/plain", Reply(["ø".encode()], 200, [("content-type", "text/plain")]))
        server.on("/packed", json_reply({"a": 1}, gzip=True))
        url = server.url
        assert under_vcr(program, "talk.yaml", "once", url) == PRINTED
    cassette = program / "talk.yaml"
    assert KEY in cassette.read_text()
    first = playhead("import", str(cassette))
    assert first.status == 0
    assert "playhead: imported talk-1" in first.err
    assert json.loads(playhead("import", str(cassette), "--json").out)["new"] is False
    shown = playhead("show", "talk-1")
    assert "chat gpt-4o" in shown.out
    refused = playhead("replay", "talk-1")
    assert "names no program" in refused.err
    words = ("--program", f"agent.py {url}", "--cwd", str(program), "--output")
    replayed = playhead("replay", "talk-1", *words)
    assert (replayed.status, PRINTED in replayed.err) == (0, True), replayed.err + replayed.out
    assert "exact 4/4" in replayed.out
    assert replayed.out.endswith("identical (exit 0)\n")
    made = program / "made.yaml"
    assert playhead("export", "talk-1", "--format", "vcr", "-o", str(made)).status == 0
    assert KEY not in made.read_text()
    assert under_vcr(program, made.name, "none", url) == PRINTED
    packed = playhead("export", "talk-1", "--format", "vcr", "-o", str(program / "made.json"))
    assert "a JSON cassette cannot hold bytes" in packed.err


def test_an_archive_of_a_browser_replays(playhead: CommandLine, program: Path):
    """HAR has bodies decoded, in base64 if they are no text, and headers that do not fit them."""
    url = "http://127.0.0.1:9"
    ask = b'{"messages":[{"role":"user","content":"Weather?"}],"model":"gpt-4o"}'
    streamed = b"".join(sse.chat(openai_chat.chunks(completion("Still."))))
    entries = [
        entry(f"{url}/v1/chat/completions", 0, ask, completion("It rains.")),
        entry(f"{url}/v1/chat/completions", 1, ask[:-1] + b',"stream":true}', streamed.decode()),
        entry(f"{url}/plain", 2, b"", {"text": "w7g=", "encoding": "base64"}),
        entry(f"{url}/packed", 3, b"", {"a": 1}),
        {"request": {"method": "GET"}},
    ]
    archive = program / "page.har"
    archive.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}))
    done = playhead("import", str(archive))
    assert done.status == 1
    assert "5 spans in 1 run; 1 not understood: entries without a method, a URL or a time" in done.err
    words = ("--program", f"agent.py {url}", "--cwd", str(program), "--output")
    replayed = playhead("replay", "page-1", *words)
    assert (replayed.status, PRINTED in replayed.err) == (0, True), replayed.err + replayed.out


def entry(url: str, second: int, body: bytes, answer: Any) -> dict[str, Any]:
    stream = isinstance(answer, str)
    inline = isinstance(answer, dict) and "encoding" in answer
    content = answer if inline else {"text": answer if stream else json.dumps(answer)}
    kind = "text/event-stream" if stream else "text/plain" if inline else "application/json"
    asked: dict[str, Any] = {"method": "POST" if body else "GET", "url": url, "headers": []}
    if body:
        asked["postData"] = {"mimeType": "application/json", "text": body.decode()}
    answered = [("content-type", kind), ("Content-Encoding", "br"), ("content-length", "3")]
    return {
        "startedDateTime": f"2026-01-02T03:04:0{second}.000Z",
        "time": 12.5,
        "request": asked,
        "response": {
            "status": 200,
            "statusText": "OK",
            "httpVersion": "HTTP/2",
            "headers": [{"name": name, "value": value} for name, value in answered],
            "content": content,
        },
    }
