"""What is mutated, and the tests that are to notice."""

from __future__ import annotations

from typing import NamedTuple

_CORE = "semconv/playhead_core"
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
        (f"{_CORE}/credentials/*.py",),
        (
            "tests/semconv/credentials/test_secrets.py",
            "tests/instrumentation/redaction/test_redaction.py",
        ),
    ),
    "tapes": Room(
        (
            f"{_CORE}/tape/indexed_tapes.py",
            f"{_CORE}/tape/folds.py",
            f"{_CORE}/tape/fact_shapes.py",
            f"{_CORE}/tape/slices.py",
        ),
        ("tests/semconv/tape/test_tapes.py", "tests/semconv/tape/test_lazy_tapes.py", "tests/replay"),
    ),
    "frames": Room(
        (f"{_CORE}/tape/frames.py", f"{_CORE}/tape/frames_text.py"),
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
        (
            f"{_AGENT}/replayer/player.py",
            f"{_AGENT}/recorder/unused.py",
            f"{_AGENT}/recorder/decision.py",
        ),
        ("tests/instrumentation/recorder", "tests/instrumentation/replayer"),
    ),
    "gates": Room(
        (
            f"{_AGENT}/recorder/gate.py",
            f"{_AGENT}/scheduler/gates/*.py",
            f"{_AGENT}/scheduler/timer_ends.py",
        ),
        (
            "tests/instrumentation/recorder",
            "tests/instrumentation/replayer",
            "tests/instrumentation/scheduler",
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
        (f"{_RECEIVER}/auth/*.py", f"{_RECEIVER}/tenants/*.py"),
        ("tests/receiver/auth", "tests/receiver/tenants", "tests/cli/commands/test_backup.py"),
    ),
    "retention": Room(
        (
            f"{_RECEIVER}/storage/retention/amounts.py",
            f"{_RECEIVER}/storage/retention/retention.py",
            f"{_RECEIVER}/storage/retention/share_of_traces.py",
        ),
        ("tests/receiver/storage/test_maintenance.py",),
    ),
}
