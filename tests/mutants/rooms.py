"""What is mutated, and the tests that are to notice."""

from __future__ import annotations

from typing import NamedTuple

_WIRE = "semconv/playhead_semconv"
_AGENT = "instrumentation/playhead_instrumentation"
_DRIVERS = f"{_AGENT}/drivers"
_REPLAY = "replay/playhead_replay"
_RECEIVER = "receiver/playhead_receiver"


class Room(NamedTuple):
    """Patterns of sources, and the files and folders of the tests that hold what they do."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]


ROOMS = {
    "redaction": Room(
        (f"{_AGENT}/redaction/*.py",),
        ("tests/instrumentation/boundaries/test_redaction.py",),
    ),
    "scrubbing": Room(
        (f"{_WIRE}/secrets/*.py",),
        ("tests/semconv/test_secrets.py", "tests/instrumentation/boundaries/test_redaction.py"),
    ),
    "tapes": Room(
        (f"{_WIRE}/tapes.py", f"{_WIRE}/folds.py", f"{_WIRE}/shapes.py", f"{_WIRE}/slices.py"),
        ("tests/semconv/test_tapes.py", "tests/semconv/test_lazy_tapes.py", "tests/replay"),
    ),
    "frames": Room(
        (f"{_WIRE}/frames.py", f"{_WIRE}/frames_text.py"),
        (
            "tests/semconv/test_tapes.py",
            "tests/semconv/test_lazy_tapes.py",
            "tests/semconv/test_frames_text.py",
            "tests/exporter/test_recovery.py",
            "tests/replay/test_tape_format.py",
        ),
    ),
    "spool": Room(
        ("exporter/playhead_exporter/spool/*.py",),
        ("tests/exporter",),
    ),
    "player": Room(
        (f"{_DRIVERS}/player.py", f"{_DRIVERS}/shelf.py", f"{_DRIVERS}/verdict.py"),
        ("tests/instrumentation/drivers", "tests/instrumentation/replay"),
    ),
    "gates": Room(
        (f"{_DRIVERS}/*gate.py", f"{_DRIVERS}/schedule.py", f"{_DRIVERS}/wakes.py"),
        (
            "tests/instrumentation/drivers",
            "tests/instrumentation/replay",
            "tests/instrumentation/strict",
        ),
    ),
    "compare": Room(
        (f"{_REPLAY}/compare.py", f"{_REPLAY}/matching.py", f"{_REPLAY}/outputs.py"),
        ("tests/replay",),
    ),
    "report": Room(
        (f"{_REPLAY}/report.py", f"{_REPLAY}/reads.py"),
        ("tests/replay",),
    ),
    "access": Room(
        (f"{_RECEIVER}/access/*.py",),
        ("tests/receiver/access",),
    ),
    "retention": Room(
        (f"{_RECEIVER}/store/retention.py", f"{_RECEIVER}/store/share.py"),
        ("tests/receiver/store/test_upkeep.py",),
    ),
}
