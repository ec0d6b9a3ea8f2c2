"""promtool takes a receiver's metrics, `prometheus.yml` and the alerts, which fire when they should."""

import subprocess
from pathlib import Path

import httpx
from neighbours.programs import PROGRAMS
from neighbours.running import CONFIGS
from support.servers import ports
from support.tapes.batches import span_of

from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch

FOLDER = CONFIGS / "prometheus"


def promtool(*words: str | Path, input: str | None = None) -> str:
    done = subprocess.run(
        [PROGRAMS["promtool"].path, *words], input=input, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_metrics_are_as_prometheus_wants_them(tmp_path: Path):
    addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
    with Receiver(tmp_path, Configuration(addresses, forward=(ports.nobody(),))) as running:
        running.store.commit(Batch([span_of(b"p" * 16, 1, gen_ai__operation__name="chat")]))
        httpx.get(f"{running.query_endpoint}/v1/runs")
        metrics = httpx.get(f"{running.query_endpoint}/metrics").text
    assert promtool("check", "metrics", input=metrics) == ""


def test_prometheus_takes_the_file_and_the_alerts():
    said = promtool("check", "config", FOLDER / "prometheus.yml")
    assert "SUCCESS" in said and "FAILED" not in said


def test_alerts_fire_when_they_should():
    assert "SUCCESS" in promtool("test", "rules", Path(__file__).parent / "alerts_test.yaml")
