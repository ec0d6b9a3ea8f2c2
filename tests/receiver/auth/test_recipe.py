"""The recipe for tokens, as docs/how-to/team.md has it, and what happens where tokens are mixed up."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from docs.blocks import typed
from support.servers.endpoints import http_endpoint

from playhead_receiver.auth.tokens import SCOPES

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "how-to" / "team.md"
AGENT = """\
import os, urllib.request
from opentelemetry import trace
urllib.request.urlopen(os.environ['ASKED'] + '/v1/playhead').read()
trace.get_tracer_provider().force_flush(60_000)
"""
ANY_PORT = " --http-port 0 --grpc-port 0 --query-port 0 --json"


def recipe() -> list[str]:
    """Two tokens, the receiver, where an agent finds it, an agent, and who looks."""
    return [command.text for command in typed(PAGE)][:6]


class Shell:
    """Where a reader types the recipe: a folder with a certificate and an agent."""

    def __init__(self, folder: Path, asked: str) -> None:
        authority = trustme.CA()
        certificate = authority.issue_cert("localhost")
        certificate.cert_chain_pems[0].write_to_path(folder / "cert.pem")
        certificate.private_key_pem.write_to_path(folder / "key.pem")
        authority.cert_pem.write_to_path(folder / "ca.pem")
        (folder / "agent.py").write_text(AGENT)
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PLAYHEAD_", "OTEL_"))}
        self.folder = folder
        self.environ = inherited | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PLAYHEAD_DATA_DIR": str(folder / "data"),
            "PLAYHEAD_SPOOL_DIR": str(folder / "spool"),
            "PLAYHEAD_CERTIFICATE": str(folder / "ca.pem"),
            "PLAYHEAD_EXIT_FLUSH_MS": "60000",
            "CURL_CA_BUNDLE": str(folder / "ca.pem"),
            "ASKED": asked,
        }
        self.hosts: dict[str, str] = {}

    def start(self, line: str) -> subprocess.Popen[str]:
        for name, address in self.hosts.items():
            line = line.replace(name, address)
        return subprocess.Popen(
            ["bash", "-c", f"exec {line}" if line.startswith("playhead ") else line],
            cwd=self.folder,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, line: str) -> tuple[str, str]:
        child = self.start(line)
        out, err = child.communicate(timeout=120)
        assert child.returncode == 0, err
        return out, err


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with http_endpoint() as asked:
        yield Shell(tmp_path, asked.url)


def test_the_recipe_lets_agents_in_and_those_who_look(shell: Shell):
    ingest, read, up, exports, agent, curl = recipe()
    assert exports.startswith("export PLAYHEAD_ENDPOINT=https://localhost:4318 ")
    agent = f"{exports.removeprefix('export ')} {agent}"
    for line in (ingest, read):
        name = line.partition("=")[0]
        shell.environ[name] = shell.run(f'{line}; echo "${name}"')[0].strip()
    receiver = shell.start(up + ANY_PORT)
    try:
        assert receiver.stdout is not None
        said: dict[str, Any] = json.loads(receiver.stdout.readline())
        for port, face in ((4318, "http"), (4319, "query")):
            shell.hosts[f"localhost:{port}"] = f"localhost:{said[face].rpartition(':')[2]}"
        _, complaints = shell.run(agent)
        assert "wait in the spool" not in complaints
        runs = json.loads(shell.run(curl)[0])["runs"]
        assert [run["agent"] for run in runs] == ["agent"]

        swapped = {"INGEST": shell.environ["READ"], "READ": shell.environ["INGEST"]}
        shell.environ |= swapped
        _, complaints = shell.run(agent)
        assert "playhead token create NAME --scope ingest" in complaints
        assert json.loads(shell.run(curl)[0])["type"] == "urn:playhead:forbidden"
        settings = {"PLAYHEAD_ENDPOINT": "https://localhost:4318", "PLAYHEAD_TOKEN": "$INGEST"}
        asked = " ".join(f'{name}="{value}"' for name, value in settings.items())
        found = json.loads(shell.run(f"{asked} playhead doctor --json || true")[0])["findings"]
        bad = [one for one in found if one["mark"] == "bad"]
        assert [one["hint"].rpartition(": ")[2] for one in bad] == [
            "playhead token create NAME --scope ingest"
        ]
        assert any(
            re.match(r"spool: \d+ facts .* of a dead process undelivered", o["text"]) for o in found
        )
    finally:
        receiver.kill()
        receiver.communicate()


def test_every_scope_is_documented():
    text = (ROOT / "docs/security.md").read_text("utf-8").partition("### Tokens\n")[2]
    table = text.partition("### ")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.M) == list(SCOPES)
