"""Only drivers/ knows whether a process records or replays."""

import ast
from pathlib import Path

import playhead_instrumentation

ROOM = Path(playhead_instrumentation.__file__).parent
KNOWING = ("player", "tape_gate", "schedule", "quiet")


def imported(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_the_player_is_named_nowhere_else():
    named = {
        f"{path.relative_to(ROOM)}: {name}"
        for path in ROOM.rglob("*.py")
        if ROOM / "drivers" not in path.parents
        for name in imported(path)
        for part in KNOWING
        if part in name.split(".")
    }
    assert not named


def test_boundaries_do_not_ask_for_the_mode():
    asking = [
        path.name
        for path in (ROOM / "boundaries").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "mode"
    ]
    assert not asking
