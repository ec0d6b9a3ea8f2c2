"""Only what opens a driver, and what plays, knows whether a process records or replays."""

import ast
from pathlib import Path

import playhead_instrumentation

ROOM = Path(playhead_instrumentation.__file__).parent
KNOWING = (
    "playback.player",
    "playback.branch",
    "determinism.gates.tape",
    "determinism.gates.tape_order",
    "determinism.scheduler.turn_ledger",
    "determinism.virtual_time.schedule",
)
PLAYS = ("playback", "determinism")
OTHER_MODES = ("recorded.py", "workspace.py", "foreign_runtimes.py")
"""Of files, and whoever steps down from `strict`, which only a recording does."""


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


def test_boundaries_do_not_ask_for_the_mode():
    asking = [
        str(path.relative_to(ROOM))
        for folder in ("boundaries", "determinism", "host")
        for path in (ROOM / folder).rglob("*.py")
        if path.name not in OTHER_MODES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "mode"
    ]
    assert not asking
