"""Spool, wire and store grow with the steps of a run, not with their square."""

from __future__ import annotations

from pathlib import Path

from support.servers.otlp_server import OtlpServer
from support.servers.scripted import Request, ScriptedServer, json_reply, openai_chat
from support.starting.programs import segments
from support.starting.running import agent_environment, push_leftovers, receiver, run_agent

from playhead_core.tape.frames import Scan

NOWHERE = "http://127.0.0.1:9"
SHORT, LONG = 25, 100


def answer(request: Request):
    return json_reply(openai_chat.completion(f"Noted, {len(request.json['messages'])} messages so far."))


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def spooled(spool: Path) -> int:
    """Bytes of all records of a spool, also of those that were not copied to the disk in time."""
    scans = [Scan(segment) for each in segments(spool).values() for segment in each]
    for scan in scans:
        list(scan)
    return sum(scan.end for scan in scans)


def grown(folder: Path, steps: int) -> dict[str, int]:
    """Bytes of spool, wire and store of a run of ``steps`` steps."""
    folder.mkdir()
    with ScriptedServer() as provider:
        provider.on("/v1/chat/completions", answer, repeat=True)
        environ = agent_environment(NOWHERE, folder / "spool", provider.url)
        run_agent("growing.py", str(steps), environ=environ, cwd=folder)
    spool = spooled(folder / "spool")
    with receiver(folder / "data") as running, OtlpServer(relay=running.http_endpoint) as wire:
        push_leftovers({**environ, "PLAYHEAD_ENDPOINT": wire.url})
        sent = wire.body_bytes
    return {"spool": spool, "wire": sent, "store": size(folder / "data")}


def test_bytes_per_step_do_not_grow_with_the_run(tmp_path: Path):
    short, long = grown(tmp_path / "short", SHORT), grown(tmp_path / "long", LONG)
    per_step = {name: (long[name] - short[name]) / (LONG - SHORT) for name in short}
    # The new part of a step is about 2.2 kB; a whole request at the end of the long run is 220 kB.
    for name, value in per_step.items():
        assert value < 12_000, (name, short, long)
        assert long[name] < short[name] * LONG / SHORT * 1.3, (name, short, long)
