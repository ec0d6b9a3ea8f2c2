"""An operator who controls agents that are recorded, through the query API of a receiver."""

from __future__ import annotations

import subprocess
import textwrap
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from support.servers.scripted import Reply, Request, ScriptedServer, json_reply, openai_chat
from support.starting.home import PATIENCE_S, Home
from support.starting.running import until

from playhead_receiver.config.configuration import Access, Addresses, Configuration
from playhead_receiver.server import Receiver


def said_back(request: Request) -> Reply:
    """The last message of a chat, said back."""
    last = request.json["messages"][-1]["content"]
    return json_reply(openai_chat.completion(f"You said {last}"))


TAKEN_S = 60
"""How long an order may wait until the program takes it."""
NOT_CONTROLLED = "urn:playhead:not-controlled"


class Operator:
    """Somebody who asks the query API."""

    def __init__(self, url: str, by: str = "anna", token: str = "") -> None:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(base_url=url, headers=headers, timeout=PATIENCE_S)
        self.by = by

    def post(self, run: str, what: str, **said: Any) -> httpx.Response:
        return self._client.post(
            f"/v1/runs/{run}/{what}", json={"by": self.by, "wait_s": TAKEN_S, **said}
        )

    def order(self, run: str, what: str, **said: Any) -> dict[str, Any]:
        """Give an order, as soon as the run is heard of and its process listens."""

        def heard() -> httpx.Response | None:
            answer = self.post(run, what, **said)
            early = answer.status_code == 404 or answer.json().get("type") == NOT_CONTROLLED
            return None if early else answer

        answer = until(heard, f"{run} is connected")
        assert answer.status_code == 200, answer.text
        assert answer.json()["taken"]
        return answer.json()

    def state(self, run: str) -> dict[str, Any]:
        answer = self._client.get(f"/v1/runs/{run}/control")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def connected(self) -> list[dict[str, Any]]:
        """The processes that take orders."""
        return self._client.get("/v1/control").json()["processes"]

    def listens(self, run: str) -> bool:
        """Whether the run is heard of, and a process of it takes orders."""
        answer = self._client.get(f"/v1/runs/{run}/control")
        return answer.status_code == 200 and bool(answer.json()["processes"])

    def halted(self, run: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until so many wait."""
        found: list[dict[str, Any]] = []

        def enough() -> bool:
            nonlocal found
            answer = self._client.get(f"/v1/runs/{run}/control")
            found = answer.json()["halted"] if answer.status_code == 200 else []
            return len(found) >= count

        until(enough, f"{count} wait")
        return found

    def close(self) -> None:
        self._client.close()


class Stage:
    """A home, a provider, a receiver with its query API, and an operator."""

    def __init__(self, folder: Path, provider: ScriptedServer, receiver: Receiver) -> None:
        self.provider = provider
        self.receiver = receiver
        self.home = Home(folder, {"OPENAI_BASE_URL": provider.openai_url, "OPENAI_API_KEY": "test"})
        self.operator = Operator(receiver.query_endpoint)

    def script(self, text: str, name: str = "agent.py") -> Path:
        path = self.home.folder / name
        path.write_text(textwrap.dedent(text))
        return path

    def start(self, *words: str | Path, control: str = "on", **variables: str) -> subprocess.Popen[str]:
        env: Mapping[str, str] = {**self.home.environ, "PLAYHEAD_CONTROL": control, **variables}
        return self.home.start("record", *words, env=env)

    def ended(self, process: subprocess.Popen[str], input: str | None = None) -> str:
        """What a process has printed by its end."""
        out, err = process.communicate(input, timeout=PATIENCE_S)
        assert process.returncode == 0, err
        return out


OPEN = Access()


@contextmanager
def on_stage(folder: Path, access: Access = OPEN) -> Generator[Stage]:
    """A stage, gone afterwards."""
    addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
    with ScriptedServer() as provider:
        with Receiver(folder / "data", Configuration(addresses, access=access)) as receiver:
            stage = Stage(folder, provider, receiver)
            try:
                yield stage
            finally:
                stage.operator.close()
