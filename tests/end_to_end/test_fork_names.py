"""A fork belongs to the agent of its origin."""

from pathlib import Path

from support.starting.home import Home


def test_a_fork_keeps_the_name_of_its_agent(tmp_path: Path):
    (tmp_path / "agent.py").write_text('print("hello")\n')
    home = Home(tmp_path, {})
    named = {**home.environ, "OTEL_SERVICE_NAME": "refunds"}
    done = home.playhead("record", "--level", "causal", tmp_path / "agent.py", env=named)
    assert done.returncode == 0, done.stderr
    forked = home.playhead("fork", "refunds-1")
    assert "refunds-2 success" in forked.stdout + forked.stderr
