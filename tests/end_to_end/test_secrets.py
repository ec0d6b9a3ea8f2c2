"""Planted secrets are found nowhere: spool, store, logs, tape. Planted ordinary text is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.long import long
from support.scanning import leaks, texts
from support.servers.scripted import Request, ScriptedServer, json_reply, openai_chat, sse, sse_reply
from support.starting.running import (
    agent_environment,
    facts_of,
    instances,
    push_leftovers,
    receiver,
    run_agent,
)

from playhead_core.settings import Settings
from playhead_exporter.spool import SpoolFolders
from playhead_replay.tape_files.tape_file import write_tape_file

KINDS = (
    "sdk-api-key",
    "x-api-key",
    "bearer",
    "query-api-key",
    "query-token",
    "basic",
    "cookie",
    "x-auth-token",
    "proxy",
    "userinfo",
    "oauth-client-secret",
    "oauth-password",
    "oauth-refresh",
    "oauth-json-secret",
    "access-token",
    "set-cookie",
    "error-key",
    "environment-password",
    "environment-aws",
    "env-file",
    "argv-flag",
    "argv-equals",
)
ORDINARY = (b"an ordinary sentence", b"plain words of the answer", b"city=Rome", b"scope")
NOWHERE = "http://127.0.0.1:9"
"""Nothing listens there: what is recorded stays in the spool."""


def planted() -> dict[str, str]:
    """A secret of each kind, none a part of another."""
    return {kind: f"Zq{index:02d}Planted{kind.replace('-', '')}9f3B" for index, kind in enumerate(KINDS)}


def script(provider: ScriptedServer, secrets: dict[str, str]) -> None:
    def chat(request: Request):
        if not request.json.get("stream"):
            return json_reply(openai_chat.completion("These are plain words of the answer."))
        bearer = secrets["bearer"]
        whole = openai_chat.completion("plain words of the answer: your key is KEY !")
        text = b"".join(sse.chat(openai_chat.chunks(whole))).replace(b"KEY", bearer.encode())
        # The echo of the secret lies across the boundary of two chunks.
        cut = text.index(bearer.encode()) + len(bearer) // 2
        return sse_reply([text[:cut], text[cut:]])

    provider.on("/v1/chat/completions", chat, repeat=True)
    provider.on("/tool", json_reply({"weather": "sunny"}), repeat=True)
    provider.on("/oauth/token", json_reply({"ok": True}))
    provider.on(
        "/oauth/json",
        json_reply(
            {"access_token": secrets["access-token"], "scope": "all"},
            headers={"Set-Cookie": f"sid={secrets['set-cookie']}; Path=/"},
        ),
    )
    provider.on(
        "/echo",
        lambda request: json_reply(
            {"you sent": request.headers["authorization"], "and": request.headers.get("cookie", "")}
        ),
    )


@pytest.mark.parametrize("content", ["full", long("metadata")])
def test_planted_secrets_are_found_nowhere(tmp_path: Path, content: str):
    secrets = planted()
    work = tmp_path / "work"
    work.mkdir()
    (work / ".env").write_text(f"# settings\nVENDOR_TOKEN={secrets['env-file']}\nREGION=north\n")
    spool, data, heads = tmp_path / "spool", tmp_path / "data", tmp_path / "heads"
    heads.mkdir()
    with ScriptedServer() as provider:
        script(provider, secrets)
        environ = agent_environment(
            NOWHERE,
            spool,
            provider.url,
            SERVICE_PASSWORD=secrets["environment-password"],
            AWS_SECRET_ACCESS_KEY=secrets["environment-aws"],
            PLAYHEAD_CONTENT=content,
            PLAYHEAD_QUIET="0",
            PLAN=json.dumps(secrets),
        )
        done = run_agent(
            "secretive.py",
            "--api-key",
            secrets["argv-flag"],
            f"--password={secrets['argv-equals']}",
            environ=environ,
            cwd=work,
        )
        # The program itself printed them: only the record must not hold them.
        assert secrets["environment-password"] in done.stdout
        echoed = [one for one in provider.requests if one.path == "/echo"]
        assert echoed[0].headers["authorization"] == f"Bearer {secrets['access-token']}"

    def spooled() -> Iterator[tuple[str, bytes]]:
        """On disk, and in shared memory: a process that ends does not wait long for the disk."""
        for folder in (spool, SpoolFolders.of(Settings(spool_dir=str(spool))).shared):
            if folder is not None:
                yield from texts(folder)

    def everywhere() -> Iterator[tuple[str, bytes]]:
        yield from spooled()
        yield from texts(data)
        yield from texts(heads)
        own_words = [line for line in done.stderr.splitlines() if line.startswith("playhead")]
        yield "stderr of playhead", "\n".join(own_words).encode()

    wanted = {name: value.encode() for name, value in secrets.items()}
    ordinary = {text.decode(): text for text in ORDINARY}
    if content == "metadata":
        ordinary = {"/tool": b"/tool"}
        wanted["query"] = b"city=Rome"
    assert set(leaks(spooled(), ordinary)) == set(ordinary), "the scanner does not see the spool"
    assert leaks(everywhere(), wanted) == {}

    with receiver(data) as running:
        push_leftovers({**environ, "PLAYHEAD_ENDPOINT": running.http_endpoint})
        (instance,) = instances(running.store)
        write_tape_file(heads / "run.tape", running.store.tape(instance))
        facts = facts_of(running.store, instance)
        assert len(facts) > 20
    assert set(leaks(texts(data), ordinary)) == set(ordinary), "the scanner does not see the store"
    assert set(leaks(texts(heads), ordinary)) == set(ordinary), "the scanner does not see the tape"
    assert leaks(everywhere(), wanted) == {}
