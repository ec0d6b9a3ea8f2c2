"""Load by telemetrygen, the Collector's own generator in Go: what was acknowledged is stored."""

import subprocess
from pathlib import Path

import pytest
from neighbours.programs import PROGRAMS
from support.starting.running import receiver

from playhead_receiver.storage import Query

TRACES, SPANS = 400, 3


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_acknowledged_is_stored(tmp_path: Path, transport: str):
    with receiver(tmp_path / "data") as running:
        endpoint = running.grpc_endpoint if transport == "grpc" else running.http_endpoint.split("//")[1]
        words = [PROGRAMS["telemetrygen"].path, "traces", "--otlp-insecure", "--otlp-endpoint", endpoint]
        words += [
            "--traces",
            str(TRACES),
            "--child-spans",
            str(SPANS - 1),
            "--workers",
            "2",
            "--rate",
            "0",
        ]
        # With batches, its queue drops what it cannot send at once.
        words += ["--batch=false", *(["--otlp-http"] if transport == "http" else [])]
        done = subprocess.run(words, capture_output=True, text=True, timeout=150)
        assert done.returncode == 0, done.stderr
        sent = 2 * TRACES * SPANS
        assert running.intake.counted.spans == sent
        runs = running.store.runs(Query(mode=None, limit=10**6))
        stored = [
            (run.trace_id, row.span_id)
            for run in runs
            for row in running.store.outline(bytes.fromhex(run.trace_id))
        ]
        assert len(stored) == len(set(stored)) == sent
