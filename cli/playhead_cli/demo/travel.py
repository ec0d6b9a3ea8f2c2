"""Time travel: return to a step of a run, change something, and continue from there."""

from __future__ import annotations

from playhead_cli.demo.provider import Provider
from playhead_cli.demo.shell import SDKS, Shell, Stage, require, say


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
        say("2. Go back to the weather in Oslo, make it summer, go on. What came before is on the tape.")
        summer = 'response={"city": "Oslo", "celsius": 24, "sky": "clear"}'
        statuses = [shell.playhead("fork", f"{run}:2", "--edit", summer)]
        warm = shell.latest()
        say("3. What has become different, and from where on.")
        shell.playhead("diff", run, warm)
        say("4. Go back to the first question, and ask another one.")
        other = "request.messages[-1].content=What do I pack for Lima?"
        statuses.append(shell.playhead("fork", f"{run}:1", "--edit", other))
        say("5. Both are runs like any other, beside the one that they come from.")
        statuses.append(shell.playhead("ls", "-n", "3"))
    return 1 if any(statuses) else 0
