"""Instrumentors and providers of others: as without playhead, and at replay as at the recording."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.long import long
from support.starting.home import Home

NAMED = """
import sys
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor

class Another(BaseInstrumentor):
    def instrumentation_dependencies(self):
        return ()

    def _instrument(self, **kwargs):
        sys.another = getattr(sys, "another", 0) + 1

    def _uninstrument(self, **kwargs):
        pass
"""

SAYS = """
import sys
print("another", getattr(sys, "another", 0))
"""

ITSELF = """
import sys
from another import Another
Another().instrument()
print("another", sys.another)
"""

PROVIDERS = """
import logging
from opentelemetry import metrics, trace
from opentelemetry._logs import get_logger_provider, set_logger_provider
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

early = metrics.get_meter("early").create_counter("early")
reader, records, spans = InMemoryMetricReader(), InMemoryLogRecordExporter(), InMemorySpanExporter()
meters, loggers, tracers = MeterProvider([reader]), LoggerProvider(), TracerProvider()
loggers.add_log_record_processor(SimpleLogRecordProcessor(records))
tracers.add_span_processor(SimpleSpanProcessor(spans))
metrics.set_meter_provider(meters)
set_logger_provider(loggers)
trace.set_tracer_provider(tracers)
assert metrics.get_meter_provider() is meters
assert get_logger_provider() is loggers
early.add(1)
metrics.get_meter("late").create_counter("late").add(1)
get_logger_provider().get_logger("mine").emit(body="said")
trace.get_tracer("mine").start_span("step").end()
data = reader.get_metrics_data().resource_metrics[0].scope_metrics
print(sorted(metric.name for scope in data for metric in scope.metrics))
print([one.log_record.body for one in records.get_finished_logs()])
print([one.name for one in spans.get_finished_spans() if one.name == "step"])
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home in which another instrumentor is installed."""
    made = tmp_path / "path"
    info = made / "another-1.0.dist-info"
    info.mkdir(parents=True)
    (made / "another.py").write_text(NAMED)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: another\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[opentelemetry_instrumentor]\nanother = another:Another\n")
    home = Home(tmp_path, {"PYTHONPATH": str(made)})
    home.bare["PYTHONPATH"] = str(made)
    return home


def identical(home: Home) -> None:
    status, report = home.report("last")
    assert (status, report["verdict"]) == (0, "identical"), report


@pytest.mark.parametrize(
    ("words", "count"),
    [((), 0), long(("--instrumentors", "all"), 1), (("--instrumentors", "another"), 1)],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_nothing_but_playhead_instruments_unless_asked(home: Home, words: tuple[str, ...], count: int):
    (home.folder / "agent.py").write_text(SAYS)
    done = home.playhead("record", *words, "agent.py")
    assert (done.returncode, done.stdout) == (0, f"another {count}\n"), done.stderr
    identical(home)


def test_a_command_is_instrumented_with_nothing_but_playhead_either(home: Home):
    (home.folder / "agent.py").write_text(SAYS)
    done = home.playhead("record", "--", "env", sys.executable, "agent.py")
    assert (done.returncode, done.stdout) == (0, "another 0\n"), done.stderr
    assert home.runs("--all")[0]["agent"] == "agent"


def test_a_program_that_instruments_itself_works(home: Home):
    (home.folder / "agent.py").write_text(ITSELF)
    done = home.playhead("record", "agent.py")
    assert (done.returncode, done.stdout) == (0, "another 1\n")
    assert "already instrumented" not in done.stderr
    identical(home)


@pytest.mark.parametrize("level", [long("exchanges"), "strict"])
def test_providers_of_the_programs_own_are_honoured_and_their_readers_get_data(home: Home, level: str):
    (home.folder / "agent.py").write_text(PROVIDERS)
    for more in ({}, {"OTEL_METRICS_EXPORTER": "none", "OTEL_SERVICE_NAME": "svc"}):
        done = home.playhead("record", "--level", level, "agent.py", env={**home.environ, **more})
        assert done.stdout.splitlines() == ["['early', 'late']", "['said']", "['step']"], done.stderr
        assert "Overriding" not in done.stderr
