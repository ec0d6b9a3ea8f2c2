"""A recorded agent, its provider, and a receiver that executes it again."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from support.observed.asking import ASKING
from support.servers.scripted import Gate, Reply, Request, ScriptedServer, json_reply, openai_chat
from support.starting.home import Home

from playhead_receiver.config.configuration import Access, Addresses, Configuration, Programs
from playhead_receiver.server import Receiver
from playhead_receiver.system.writer_lock import running

PROGRAM = f"""{ASKING}
for what in ("first", "second", "third"):
    print(asked(what), flush=True)
"""


@dataclass
class Executing:
    """A receiver with the run agent-1, of three steps."""

    receiver: Receiver
    home: Home
    provider: ScriptedServer
    key: str
    """Opens the receiver to who may read its folder."""

    def asking(self, token: str) -> httpx.Client:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.receiver.query_endpoint, headers=headers, timeout=60)


HELD = "until somebody gives up"


def answer(request: Request) -> Reply:
    """What was asked, by which model; `HELD` gets no answer."""
    asked = request.json["messages"][-1]["content"]
    said = f"{request.json['model']}: {asked}"
    return json_reply(openai_chat.completion(said), before=Gate() if asked == HELD else None)


@contextmanager
def executing(folder: Path, program: str = PROGRAM) -> Generator[Executing]:
    with ScriptedServer() as provider:
        provider.on("/v1/chat/completions", answer, repeat=True)
        variables = {"OPENAI_BASE_URL": provider.openai_url, "OPENAI_API_KEY": "test"}
        home = Home(folder, variables)
        script = folder / "agent.py"
        script.write_text(program)
        done = home.playhead("record", script)
        assert done.returncode == 0, done.stderr
        ours = {name: value for name, value in home.environ.items() if name.startswith("PLAYHEAD_")}
        environment = {**ours, **variables, "HOME": home.environ["HOME"]}
        programs = Programs(tuple(home.words()), environment)
        configuration = Configuration(
            Addresses(http_port=0, grpc_port=None, query_port=0),
            Access(guarded=True),
            programs=programs,
        )
        with Receiver(home.data_dir, configuration) as receiver:
            found = running(home.data_dir)
            assert found is not None
            yield Executing(receiver, home, provider, found.key)
