"""An incident: an agent that repeats the same search, from the alarm to the regression test."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

from playhead_cli.demo.provider import Provider
from playhead_cli.demo.shell import SDKS, Shell, Stage, require, say

AGENT = "search_agent.py"
OLD = "Search until you are sure."
NEW = "Where a search finds nothing, say so."
TEST = """
def test_an_order_that_no_mail_tells_of(tape):
    run = tape.replay("order-83")
    run.assert_tool("search", at_most=3)
    run.assert_printed("a colleague")
"""


def run_incident(stage: Stage) -> int:
    """Find a stuck agent, diagnose it, try a fix on the same run, fix it, and keep it fixed.

    Returns 0 when every command did what it should. Errors are those of `run_demo`.
    """
    require(*SDKS, "pytest")
    begin = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="playhead-incident-") as scratch,
        Provider(stage.port) as provider,
    ):
        project = Path(scratch)
        agent = project / AGENT
        shutil.copy(stage.agents / AGENT, agent)
        shell = Shell(stage.environ, project)
        done = _walk(shell, provider, agent)
    if not done:
        say("A command did not do what it should. This is a bug in playhead.")
        return 1
    say(f"From the failure to a regression test: {time.monotonic() - begin:.0f} s.")
    return 0


def _walk(shell: Shell, provider: Provider, agent: Path) -> bool:
    live = provider.environment
    shell.environ.update(live)
    say("1. Production. A user asks the agent for order 83, and it fails.")
    stuck = shell.record(agent, fails=True)
    for name in live:
        shell.environ.pop(name)
    say("2. Which runs failed, and why did this one? It repeats the same search.")
    good = [shell.playhead("ls", "--status", "failure", "-n", "3") == 0]
    good.append(shell.playhead("show", stuck) == 0)
    say("3. Is it reproducible? Replay the run from its tape: identical, without a provider.")
    good.append(shell.playhead("replay", stuck) == 0)
    say("4. Would another instruction help? Fork the run at the first repetition, with a new one.")
    shell.environ.update(live)
    instructions = f"request.messages[0].content=You find out where orders are. {NEW}"
    good.append(shell.playhead("fork", f"{stuck}:3", "--edit", instructions) == 0)
    good.append(shell.playhead("diff", stuck, shell.latest()) == 1)
    say("5. It helps. Fix the agent, record it again, and keep that run as a test.")
    old = agent.read_text("utf-8")
    agent.write_text(old.replace(OLD, NEW), "utf-8")
    mended = shell.record(agent)
    good.append(shell.playhead("golden", "add", mended, "--name", "order-83") == 0)
    (agent.parent / "tests" / "test_orders.py").write_text(TEST, "utf-8")
    for name in live:
        shell.environ.pop(name)
    shell.environ["OPENAI_API_KEY"] = "none"
    say("6. The test passes, without live requests.")
    good.append(shell.pytest("-q") == 0)
    say("7. With the old instruction it fails, and prints why.")
    agent.write_text(old, "utf-8")
    good.append(shell.pytest("-q") == 1)
    return all(good)
