"""Runs of a home without their tapes: what a store has of them that only got their spans."""

from __future__ import annotations

from support.starting.home import Home

from playhead_receiver.archive.run_files import Material
from playhead_receiver.ingest.export import REQUESTS, Intake
from playhead_receiver.ingest.otlp_json import binary_of_json
from playhead_receiver.storage import Query, open_store


def strip_to_spans(home: Home) -> None:
    """Replace the store of ``home`` by one that was sent the spans of its runs, and no tape."""
    home.playhead("rederive")  # as their export says them, with what the bytes of calls mean
    kept = home.data_dir.rename(home.folder / "with-tapes")
    first, second = open_store(kept, read_only=True), open_store(home.data_dir)
    try:
        for summary in first.runs(Query(mode=None)):
            for line in Material.of_store(first, summary.trace_id).lines():
                if line.startswith(b'{"resourceSpans"'):
                    Intake(second).export("traces", binary_of_json(line, REQUESTS["traces"]))
    finally:
        first.close()
        second.close()
