"""Two demonstrations: record, show and replay the example agents; fork a run and compare."""

from __future__ import annotations

import socket
import threading
import time
from types import TracebackType

from playhead_cli.demo.provider import Provider
from playhead_cli.demo.shell import SDKS, Shell, Stage, require, say
from playhead_cli.session.session import command_name


class Trap:
    """Listens on a loopback port and hangs up on every connection.

    ``contacts``: number of connections.
    """

    def __init__(self, port: int) -> None:
        self.contacts = 0
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._count, name="trap", daemon=True)
        self._thread.start()

    def _count(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.contacts += 1
            connection.close()

    def close(self) -> None:
        """Stop listening. Idempotent."""
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            return
        self._listener.close()
        self._thread.join()

    def __enter__(self) -> Trap:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


AGENTS = ("weather_agent.py", "research_agent.py", "refund_agent.py")


def run_demo(stage: Stage) -> int:
    """Run the whole tour on the user's own data directory; returns 0 when every replay was identical.

    `UsageError` when the SDKs of the agents are not installed.
    """
    require(*SDKS)
    begin = time.monotonic()
    shell = Shell(stage.environ)
    with Provider(stage.port) as provider:
        port = provider.port
        shell.environ.update(provider.environment)
        say(f"A scripted provider answers on {provider.url}; nothing leaves this machine.")
        say("1. Record three agents, unmodified, on the real SDKs.")
        runs = [shell.record(stage.agents / agent) for agent in AGENTS]
        asked = provider.requests
    say("2. Show the first run. The provider rejected its first request with 429; the SDK retried.")
    shell.playhead("show", runs[0])
    say("3. Replay all runs without the provider. The responses are on the tape.")
    for name in provider.environment:
        shell.environ.pop(name)
    with Trap(port) as trap:
        statuses = [shell.playhead("replay", run) for run in runs]
        contacts = trap.contacts
    took = time.monotonic() - begin
    if any(statuses) or contacts:
        say(f"Not every replay was identical ({contacts} connections tried). This is a bug in playhead.")
        return 1
    say(
        f"{len(runs)} runs, {asked} requests recorded; {len(runs)} replays identical, "
        f"0 connections tried; {took:.0f} s."
    )
    own = command_name()
    say(
        "next:",
        f"{own} open {runs[0]}",
        f"{own} show {runs[0]}:2",
        f"{own} replay {runs[1]}",
        f"{own} ls",
    )
    return 0


def run_travel(stage: Stage) -> int:
    """Record an agent, fork it with a different tool answer and with a different question, compare.

    Returns 0 when every command did what it should. Errors are those of `run_demo`.
    """
    require(*SDKS)
    shell = Shell(stage.environ)
    with Provider(stage.port) as provider:
        shell.environ.update(provider.environment)
        say("1. Record an agent. It asks for the weather in two cities and says what to pack.")
        run = shell.record(stage.agents / "weather_agent.py")
        say("2. Fork at the weather in Oslo, and make it summer. Earlier steps come from the tape.")
        summer = 'response={"city": "Oslo", "celsius": 24, "sky": "clear"}'
        statuses = [shell.playhead("fork", f"{run}:2", "--edit", summer)]
        warm = shell.latest()
        say("3. Compare the runs: what changed, and from which step on.")
        shell.playhead("diff", run, warm)
        say("4. Fork at the first question, and ask another one.")
        other = "request.messages[-1].content=What do I pack for Lima?"
        statuses.append(shell.playhead("fork", f"{run}:1", "--edit", other))
        say("5. Forks are ordinary runs; the list names their origin.")
        statuses.append(shell.playhead("ls", "-n", "3"))
    return 1 if any(statuses) else 0
