"""With ``--content metadata``, nothing that a program says or is told is in spool, store and export."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.long import long
from support.scanning import texts
from support.servers.scripted import Reply, ScriptedServer, json_reply, openai_chat
from support.starting.home import Home

PROGRAM = """
import os, sqlite3, subprocess, sys
import httpx, openai, playhead
from opentelemetry import baggage, context, trace

base = sys.argv[1]
client = openai.OpenAI(base_url=base + "/v1", api_key="test")
messages = [{"role": "system", "content": "CANARYSYSTEM"}, {"role": "user", "content": "CANARYUSER"}]
client.chat.completions.create(model="kept-model", messages=messages, user="CANARYPARAMETER")
@playhead.tool
def kept_tool(question):
    if question == "CANARYBAD":
        raise ValueError("CANARYTOOLERROR")
    return "CANARYRESULT"
kept_tool("CANARYARGUMENT")
try: kept_tool("CANARYBAD")
except ValueError: pass
httpx.get(base + "/orders?mail=CANARYURL@example.com", headers={"x-note": "CANARYHEADER"})
httpx.post(base + "/orders", content=iter([b"CANARYPIECE", b"CANARYOTHER"]))
try: httpx.get("http://127.0.0.1:9/path?q=CANARYREFUSED")
except httpx.ConnectError: pass
playhead.state({"note": "CANARYSTATE"})
playhead.artifact("CANARYNAME.txt", "CANARYARTIFACT")
playhead.checkpoint("CANARYCHECKPOINT")
print("CANARYOUT")
print("CANARYERR", file=sys.stderr)
open("CANARYFILE.txt", "w").write("CANARYCONTENT")
open("CANARYFILE.txt").read(), os.listdir("."), os.rename("CANARYFILE.txt", "CANARYMOVED.txt")
os.remove("CANARYMOVED.txt")
try: open("CANARYMISSING.txt")
except OSError: pass
words = [sys.executable, "-c", "print('CANARYCHILD')", "CANARYCHILDARGUMENT"]
subprocess.run(words, env={**os.environ, "CANARYVARIABLE": "CANARYVALUE"}, input=b"CANARYSTDIN")
subprocess.run("echo CANARYSHELL", shell=True)
database = sqlite3.connect("CANARYDATABASE.sqlite")
database.execute("create table CANARYTABLE (a)")
database.execute("insert into CANARYTABLE values ('CANARYROW')")
database.commit()
database.close()
os.remove("CANARYDATABASE.sqlite")
context.attach(baggage.set_baggage("user", "CANARYBAGGAGE"))
attributes = {"CANARYKEY": "x", "db.query.text": "select CANARYSQL"}
with trace.get_tracer("lib").start_as_current_span("CANARYSPAN", attributes=attributes) as span:
    span.set_attribute("http.request.header.x", ["CANARYSPANHEADER"])
    span.add_event("CANARYEVENT", {"a": "CANARYEVENTVALUE"})
    span.record_exception(RuntimeError("CANARYSPANERROR"))
    span.set_status(trace.StatusCode.ERROR, "CANARYSTATUS")
raise SystemExit("CANARYEXIT")
"""


@pytest.mark.parametrize("level", ["strict", long("exchanges")])
def test_no_content_is_recorded_anywhere(tmp_path: Path, level: str):
    work = tmp_path / "work"
    work.mkdir()
    (work / "agent.py").write_text(PROGRAM)
    home = Home(tmp_path, {"XDG_STATE_HOME": str(tmp_path / "state")})
    headers = [("content-type", "text/plain"), ("x-said", "CANARYANSWERHEADER"), ("etag", "CANARYTAG")]
    with ScriptedServer() as provider:
        answer = json_reply(openai_chat.completion("CANARYANSWER"))
        provider.on("/v1/chat/completions", answer, repeat=True)
        provider.on("/orders", Reply([b"CANARYBODY"], headers=headers), repeat=True)
        words = ("record", "--level", level, "--content", "metadata", "agent.py", provider.url)
        done = home.playhead(*words, "CANARYARGV", cwd=work)
    assert done.returncode == 1 and "CANARYEXIT" in done.stderr, done.stderr
    shown = home.playhead("show", "last")
    assert shown.returncode == 0 and "kept-model" in shown.stdout, shown.stderr
    (tmp_path / "exports").mkdir()
    assert home.playhead("export", "last", "-o", "exports/run.tape").returncode == 0
    found: dict[str, str] = {}
    whole = b""
    for folder in ("data", "spool", "state", "exports"):
        for place, data in texts(tmp_path / folder):
            whole += data
            for word in re.findall(rb"CANARY[A-Z]+", data):
                found.setdefault(word.decode(), place)
    assert b"kept_tool" in whole and b"kept-model" in whole, "the scanner does not see the store"
    assert found == {}
    assert "CANARY" not in shown.stdout
