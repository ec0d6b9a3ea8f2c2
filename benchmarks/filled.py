"""A large store that is kept in a temporary folder, so that it is filled only once."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ingest_load import Load, requests

from playhead_receiver.ingest import Intake
from playhead_receiver.ingest.reading_process import SpanReadingProcess
from playhead_receiver.storage import open_store

STEPS = 20
AT_ONCE = 41 * 250
"""Number of spans that are stored between two progress messages."""


def filled(spans: int) -> Path:
    """A folder with a store of about this many payload spans, all with summaries, none indexed.

    An interrupted fill continues.
    """
    folder = Path(tempfile.gettempdir(), f"playhead-filled-{spans}")
    note = folder / "filled"
    done = int(note.read_text()) if note.exists() else 0
    if done >= spans:
        return folder
    store, span_reader = open_store(folder), SpanReadingProcess()
    intake = Intake(store, span_reader=span_reader)
    while done < spans:
        load = Load(AT_ONCE // (2 * STEPS + 1), STEPS, seed=-1 - done)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda request: intake.export("traces", request.body), requests(load)))
        while store.sum_up(1000):
            pass
        while store.compact(quiet_s=0.0):
            pass
        done += AT_ONCE
        note.write_text(str(done))
    span_reader.close()
    store.close()
    return folder
