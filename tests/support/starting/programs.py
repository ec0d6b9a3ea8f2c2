"""Programs in processes of their own, recorded into a spool that is not shipped; and its content."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span
from support.starting.warm import run
from support.tapes.spools import forget

from playhead_core.facts import Fact
from playhead_core.otlp.any_values import attributes_of
from playhead_core.settings import Settings
from playhead_core.tape.frames import Header, Scan, SpanRecord
from playhead_exporter.spool import SpoolFolders

BIN = Path(sys.executable).parent
PATIENCE_S = 60
NOWHERE = "http://127.0.0.1:9"


@dataclass
class Program:
    """A program in a folder of its own."""

    folder: Path
    environ: dict[str, str]
    spool: Path

    @classmethod
    def of(cls, folder: Path, source: str, name: str = "agent.py", **environ: str) -> Program:
        """``source`` in ``folder``, with a clean home.

        Spans keep their whole content, and nothing listens at the endpoint.
        """
        (folder / name).write_text(source, "utf-8")
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("OTEL_", "PLAYHEAD_", "PYTHON", "TRACEPARENT", "PYTEST", "COV_"))
        }
        spool = folder / "spool"
        return cls(
            folder,
            {
                **kept,
                "PATH": f"{BIN}{os.pathsep}{kept.get('PATH', '')}",
                "HOME": str(folder / "home"),
                "PLAYHEAD_SPOOL_DIR": str(spool),
                "PLAYHEAD_ENDPOINT": NOWHERE,
                "PLAYHEAD_ENDPOINT_KIND": "other",
                "PLAYHEAD_EXPORT_INTERVAL_MS": "60000",
                "OPENAI_API_KEY": "sk-test",
                "ANTHROPIC_API_KEY": "sk-ant-test",
                **environ,
            },
            spool,
        )

    def instrumented(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run ``words`` (by default the program) under ``opentelemetry-instrument``."""
        return self.run("opentelemetry-instrument", *(words or ("python", "agent.py")), **environ)

    def recorded(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run the program recorded, in a fork (`warm`): a third of what `instrumented` takes."""
        words = [sys.executable, "-m", "playhead_instrumentation", "record", "--", "agent.py"]
        environ = {**self.environ, **environ}
        return _settled(run([*words, *arguments], cwd=self.folder, env=environ, timeout=PATIENCE_S))

    def run(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a command line in the folder of the program."""
        return _settled(
            subprocess.run(
                words,
                cwd=self.folder,
                env={**self.environ, **environ},
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
                check=False,
            )
        )

    def records(self) -> dict[str, list[Any]]:
        """The content of the spool by instance, in shared memory and on disk.

        After a kill, the part on disk may lack the last records of the head.
        """
        return {
            instance.hex(): [
                record
                for segment in each
                for _, record in Scan(segment)
                if not isinstance(record, Header)
            ]
            for instance, each in segments(self.spool).items()
        }

    def facts(self, name: str = "") -> list[Fact]:
        """The facts in the spool, of all instances, in order of time."""
        found = [record for records in self.records().values() for record in records]
        facts = [one for one in found if isinstance(one, Fact) and name in ("", one.name)]
        return sorted(facts, key=lambda fact: fact.time_ns)

    def spans(self) -> list[Span]:
        """The finished spans in the spool, of all instances, in order of their starts."""
        found: list[Span] = []
        for records in self.records().values():
            for record in records:
                if isinstance(record, SpanRecord):
                    resource = ResourceSpans.FromString(record.otlp)
                    found += [span for scope in resource.scope_spans for span in scope.spans]
        return sorted(found, key=lambda span: span.start_time_unix_nano)

    def services(self) -> set[str]:
        """The service names of the finished spans in the spool."""
        spans = [one for some in self.records().values() for one in some if isinstance(one, SpanRecord)]
        resources = [ResourceSpans.FromString(one.otlp).resource for one in spans]
        return {str(attributes_of(one.attributes)["service.name"]) for one in resources}

    def span(self, name: str) -> Span:
        """The only span of that name."""
        (found,) = [span for span in self.spans() if span.name == name]
        return found

    def close(self) -> None:
        """Remove its shared memory."""
        forget(Settings(spool_dir=str(self.spool)))


def segments(spool: Path) -> dict[bytes, list[bytes]]:
    """The segments of a spool by instance: as they are in shared memory, else as they are on disk.

    A process that ends does not wait long until all of them are on disk.
    """
    places = SpoolFolders.of(Settings(spool_dir=str(spool)))
    found: dict[bytes, list[bytes]] = {}
    for instance in places.instances():
        paths: dict[str, Path] = {}
        folders = (places.active_home(instance), places.home(instance))
        for kind in ("*.tape", "*.head"):
            paths |= {path.stem: path for folder in folders for path in folder.glob(kind)}
        found[instance] = [paths[name].read_bytes() for name in sorted(paths)]
    return found


def _settled(done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """Without the sentence that nobody listens, which only a program that lives for a while says."""
    lines = done.stderr.splitlines(keepends=True)
    done.stderr = "".join(line for line in lines if not line.startswith(f"playhead: {NOWHERE}: "))
    return done


def attributes(span: Span) -> dict[str, Any]:
    """The attributes of a span."""
    return attributes_of(span.attributes)
