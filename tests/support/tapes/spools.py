"""Spools for tests: facts to write, and reading the content."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.servers.endpoints import Reply, http_endpoint

from playhead_core.facts import Content, ExchangeId, Fact
from playhead_core.settings import Settings
from playhead_core.tape.frames import Record
from playhead_exporter.spool import LiveSegments, Segments, SpoolFolders, read_batch
from playhead_exporter.spool.segments import START
from playhead_exporter.tape_exporter import SpoolTapeExporter
from playhead_semconv import events as e

CALL = ExchangeId(7, "http", 0)
DEADLINE_S = 60


def chunk(data: bytes = b"abc", time_ns: int = 1) -> Fact:
    """A chunk of an exchange, not yet numbered."""
    return Fact(time_ns, 7, e.PLAYHEAD_EXCHANGE_DATA, exchange=CALL, body=Content.chunk(data))


def state(**attributes: Any) -> Fact:
    """A fact with attributes, not yet numbered."""
    return Fact(1, 7, e.PLAYHEAD_STATE, attributes=attributes)


def read_all(segments: Segments) -> list[Record]:
    """Every record of the existing segments."""
    records: list[Record] = []
    position = START
    while True:
        window = read_batch(segments, position, 1 << 20)
        records += window.records()
        if not window.records() and not window.damage:
            return records
        position = window.end


def tape_of(tape_exporter: SpoolTapeExporter) -> list[Record]:
    """Every record in this process's spool."""
    return read_all(LiveSegments(tape_exporter.sink))


def eventually(condition: Callable[[], Any], what: str = "it") -> Any:
    """Poll ``condition`` until it holds. Returns its value."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} did not come about"
        time.sleep(0.005)


@contextmanager
def tape_exporter_for(settings: Settings, **options: Any) -> Iterator[SpoolTapeExporter]:
    """An tape exporter that is closed on exit, and whose shared memory is removed."""
    tape_exporter = SpoolTapeExporter(settings, {"service.name": "refund"}, **options)
    try:
        yield tape_exporter
    finally:
        tape_exporter.close(0)
        forget(settings)


def forget(settings: Settings) -> None:
    """Remove the shared memory of this spool."""
    shared = SpoolFolders.of(settings).shared
    if shared is not None:
        shutil.rmtree(shared, ignore_errors=True)


def files(folder: Path) -> list[str]:
    """Names of all files below ``folder``, sorted; empty if it does not exist."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@contextmanager
def undelivered(spool: Path) -> Iterator[Settings]:
    """Settings of an agent that lives and whose endpoint takes nothing: 3 facts of it wait."""
    with http_endpoint() as endpoint:
        endpoint.rule = lambda path, body: Reply(401)
        settings = Settings(spool_dir=str(spool), endpoint=endpoint.url, quiet=True)
        with tape_exporter_for(settings) as tape_exporter:
            for _ in range(3):
                tape_exporter.sink.append(chunk())
            endpoint.wait(lambda: endpoint.requests)
            yield settings
