"""Only what opens a driver, and what plays, knows whether a process records or replays."""

import ast
from pathlib import Path

import playhead_instrumentation

ROOM = Path(playhead_instrumentation.__file__).parent
KNOWING = (
    "replayer.player",
    "replayer.branch",
    "scheduler.gates.tape",
    "scheduler.gates.tape_order",
    "scheduler.ledger",
    "replayer.virtual_time.schedule",
)
PLAYS = ("replayer", "scheduler")
ASKING = ("libraries", "manual", "patching", "redaction", "scheduler", "tracing")
"""Folders that ask a driver, or that a driver is made of: the same code in every mode."""

DECISIONS = "playhead_instrumentation.recorder.decision"
LOOKS = ("mode", "decision")
"""Attributes that tell a recording from a replay."""


def imported(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_the_player_is_named_nowhere_else():
    for part in KNOWING:
        assert (ROOM / part.replace(".", "/")).with_suffix(".py").exists(), part
    named = {
        f"{path.relative_to(ROOM)}: {name}"
        for path in ROOM.rglob("*.py")
        if path.relative_to(ROOM).parts[0] not in PLAYS
        for name in imported(path)
        for part in KNOWING
        if f"{name}.".startswith(f"playhead_instrumentation.{part}.")
    }
    assert not named


def attributes(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Call) and len(node.args) > 1 and isinstance(node.func, ast.Name):
            name = node.args[1]
            if node.func.id in ("getattr", "hasattr") and isinstance(name, ast.Constant):
                yield name.value


def test_every_way_to_look_is_seen(tmp_path):
    path = tmp_path / "edge.py"
    path.write_text(
        "from playhead_instrumentation.recorder.decision import Played\n"
        "import playhead_instrumentation.recorder.decision\n"
        "def f(call):\n"
        "    from playhead_instrumentation.recorder import decision\n"
        "    return isinstance(call.decision, Played) or getattr(call, 'mode', '')\n"
    )
    assert sum(f"{name}.".startswith(f"{DECISIONS}.") for name in imported(path)) == 3
    assert {"decision", "mode"} <= set(attributes(path))


def test_boundaries_do_not_look_at_decisions_or_at_the_mode():
    """They ask the call for an answer and give it both ways: `Call.answer`."""
    files = [path for folder in ASKING for path in (ROOM / folder).rglob("*.py")]
    assert len(files) > 100
    looking = [
        f"{path.relative_to(ROOM)}: {what}"
        for path in files
        for what in (
            *(name for name in imported(path) if f"{name}.".startswith(f"{DECISIONS}.")),
            *(name for name in attributes(path) if name in LOOKS),
        )
    ]
    looking.remove("tracing/light.py: decision")  # of a sampler of OpenTelemetry
    assert looking == []
