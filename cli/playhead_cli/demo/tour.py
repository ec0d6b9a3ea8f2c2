"""The demo: record the example agents, show a run, and replay all runs without the provider."""

from __future__ import annotations

import time

from playhead_cli.demo.provider import Provider
from playhead_cli.demo.shell import SDKS, Shell, Stage, require, say
from playhead_cli.demo.trap import Trap
from playhead_cli.session.command_name import command_name

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
    say("2. Look at the first. The provider refused its first request with a 429; the SDK came again.")
    shell.playhead("show", runs[0])
    say("3. Replay, with the provider gone. What was said is on the tape.")
    for name in provider.environment:
        shell.environ.pop(name)
    with Trap(port) as trap:
        statuses = [shell.playhead("replay", run) for run in runs]
        contacts = trap.contacts
    took = time.monotonic() - begin
    if any(statuses) or contacts:
        say(f"Not every replay was identical; {contacts} connections were tried. That is a defect.")
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
