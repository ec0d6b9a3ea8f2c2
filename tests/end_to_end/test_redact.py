"""A credential that nobody knew for one when it came is taken out of a stored run afterwards."""

from __future__ import annotations

import json
from pathlib import Path

from support.scanning import leaks, texts
from support.servers.scripted import ScriptedServer, json_reply, openai_chat
from support.starting.home import Home

KEY = "zq77opaquevaluewithoutashape5521"
GIVEN = "a sentence that somebody wants out"
PROGRAM = """
import sys, httpx
key, sentence = open("handed.txt").read().splitlines()
base = sys.argv[1]
print("got", key)
text = "note " + key + " and: " + sentence + ". " + "x" * 600
messages = [{"role": "user", "content": text}]
said = httpx.post(base + "/v1/chat/completions", json={"model": "m", "messages": messages}, timeout=60)
messages.append(said.json()["choices"][0]["message"])
more = httpx.post(base + "/v1/chat/completions", json={"model": "m", "messages": messages}, timeout=60)
httpx.get(base + "/tool", headers={"Authorization": "Bearer " + key}, timeout=60)
"""


def test_a_value_that_was_known_late_is_taken_out(tmp_path: Path):
    home = Home(tmp_path, {"XDG_STATE_HOME": str(tmp_path / "state")})
    (tmp_path / "agent.py").write_text(PROGRAM)
    (tmp_path / "handed.txt").write_text(f"{KEY}\n{GIVEN}\n")
    with ScriptedServer() as provider:
        answer = json_reply(openai_chat.completion(f"I noted {KEY}."))
        provider.on("/v1/chat/completions", answer, repeat=True)
        provider.on("/tool", json_reply({"ok": True}))
        done = home.playhead("record", "agent.py", provider.url)
    assert done.returncode == 0, done.stderr
    wanted = {"key": KEY.encode()}
    assert leaks(texts(home.data_dir), wanted), "the scanner does not see the store"
    shown = home.playhead("show", "last")
    said = " ".join(shown.stdout.split())
    assert (
        "1 credential was recognized only after recording started; in file ./handed.txt, line 1; "
        in said
    )
    assert "stdout" in said and "playhead redact agent-1" in said
    another = {**home.environ, "XDG_STATE_HOME": str(tmp_path / "another")}
    elsewhere = home.playhead("show", "last", env=another)
    assert "the key that finds them here is not on this machine" in " ".join(elsewhere.stdout.split())

    dry = home.playhead("redact", "last", "--dry-run")
    assert (dry.returncode, "would be redacted" in dry.stderr) == (0, True), dry.stderr
    assert KEY in home.playhead("search", KEY).stdout + home.playhead("show", "last:1").stdout

    done = home.playhead("redact", "last", "--values", "-", "--json", input=GIVEN + "\n")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["places"] >= 6 and said["values"] == 2 and said["wiped"]
    wanted["given"] = GIVEN.encode()
    assert leaks(texts(home.data_dir), wanted) == {}
    assert home.playhead("search", KEY).returncode == 1
    assert home.playhead("export", "last", "-o", "run.tape").returncode == 0
    (tmp_path / "exports").mkdir()
    (tmp_path / "run.tape").rename(tmp_path / "exports" / "run.tape")
    assert leaks(texts(tmp_path / "exports"), wanted) == {}
    whole = home.playhead("show", "last", "--all").stdout
    assert KEY not in whole and "recognized only" not in whole
    assert "[redacted]" in home.playhead("show", "last:1").stdout
    assert home.playhead("verify").returncode == 0
    # Who did it and when stands on the tape.
    logs = [
        entry
        for tape in home.run("last").tapes
        for fact in tape.facts()
        for entry in fact.attributes.get("playhead.redacted.log", [])
    ]
    assert len(logs) == 1 and logs[0].endswith(": 2 named values")
    code, report = home.report("last")
    assert (code, report["divergences"]) == (0, []), json.dumps(report["divergences"])[:3000]
    assert home.playhead("redact", "last").stderr.count("nothing was found") == 1


CODED = f"""
import httpx
from opentelemetry import trace
key = "{KEY}"
with trace.get_tracer("mine").start_as_current_span("work") as span:
    span.set_attribute("note", "use " + key if NOTED else "no key")
try:
    httpx.get("http://127.0.0.1:9/", headers={{"Authorization": "Bearer " + key}})
except httpx.ConnectError:
    pass
"""


def test_a_credential_in_the_code_is_reported_only_where_the_run_holds_it(tmp_path: Path):
    home = Home(tmp_path, {"XDG_STATE_HOME": str(tmp_path / "state")})
    for noted in (False, True):
        (tmp_path / "agent.py").write_text(CODED.replace("NOTED", str(noted)))
        assert home.playhead("record", "agent.py").returncode == 0
        said = " ".join(home.playhead("show", "last").stdout.split())
        assert ("recognized only" in said) == ("in span work, attribute note" in said) == noted
    assert "nothing was found" in home.playhead("redact", "agent-1").stderr
    assert "redacted 1 place" in home.playhead("redact", "agent-2").stderr
    assert "recognized only" not in home.playhead("show", "last").stdout
    assert leaks(texts(home.data_dir), {"key": KEY.encode()}) == {}
