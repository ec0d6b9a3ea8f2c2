"""What is mutated, and the tests that are to notice."""

from __future__ import annotations

from typing import NamedTuple

_WIRE = "semconv/playhead_semconv"
_AGENT = "instrumentation/playhead_instrumentation"
_REPLAY = "replay/playhead_replay"
_RECEIVER = "receiver/playhead_receiver"


class Room(NamedTuple):
    """Patterns of sources, and the files and folders of the tests that hold what they do."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]


ROOMS = {
    "redaction": Room(
        (f"{_AGENT}/redaction/*.py",),
        ("tests/instrumentation/redaction/test_redaction.py",),
    ),
    "scrubbing": Room(
        (f"{_WIRE}/secrets/*.py",),
        ("tests/semconv/secrets/test_secrets.py", "tests/instrumentation/redaction/test_redaction.py"),
    ),
    "tapes": Room(
        (
            f"{_WIRE}/tape/indexed_tapes.py",
            f"{_WIRE}/tape/folds.py",
            f"{_WIRE}/tape/fact_shapes.py",
            f"{_WIRE}/tape/slices.py",
        ),
        ("tests/semconv/tape/test_tapes.py", "tests/semconv/tape/test_lazy_tapes.py", "tests/replay"),
    ),
    "frames": Room(
        (f"{_WIRE}/tape/frames.py", f"{_WIRE}/tape/frames_text.py"),
        (
            "tests/semconv/tape/test_tapes.py",
            "tests/semconv/tape/test_lazy_tapes.py",
            "tests/semconv/tape/test_frames_text.py",
            "tests/exporter/test_recovery.py",
            "tests/replay/tape_files/test_tape_format.py",
        ),
    ),
    "spool": Room(
        ("exporter/playhead_exporter/spool/*.py",),
        ("tests/exporter",),
    ),
    "player": Room(
        (f"{_AGENT}/playback/player.py", f"{_AGENT}/driver/unused.py", f"{_AGENT}/driver/verdict.py"),
        ("tests/instrumentation/driver", "tests/instrumentation/playback"),
    ),
    "gates": Room(
        (
            f"{_AGENT}/driver/gate.py",
            f"{_AGENT}/determinism/gates/*.py",
            f"{_AGENT}/determinism/scheduler/timer_ends.py",
        ),
        (
            "tests/instrumentation/driver",
            "tests/instrumentation/playback",
            "tests/instrumentation/determinism",
        ),
    ),
    "compare": Room(
        (f"{_REPLAY}/report/compare.py", f"{_REPLAY}/report/matching.py", f"{_REPLAY}/run/outputs.py"),
        ("tests/replay",),
    ),
    "report": Room(
        (f"{_REPLAY}/report/report.py", f"{_REPLAY}/report/ambient_reads.py"),
        ("tests/replay",),
    ),
    "access": Room(
        (f"{_RECEIVER}/access/*.py", f"{_RECEIVER}/tenants/*.py"),
        ("tests/receiver/access", "tests/receiver/tenants", "tests/cli/verbs/test_backup.py"),
    ),
    "retention": Room(
        (
            f"{_RECEIVER}/store/keeping/amounts.py",
            f"{_RECEIVER}/store/keeping/retention.py",
            f"{_RECEIVER}/store/keeping/share_of_traces.py",
        ),
        ("tests/receiver/store/test_upkeep.py",),
    ),
}
