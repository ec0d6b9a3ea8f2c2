"""A receiver in a separate process, started with `playhead up`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
from support.starting.running import until

PORTS = ("--http-port", "0", "--grpc-port", "0", "--query-port", "0")
UP_TO_DATE = "playhead_search_lag 0.0"
"""What its metrics say when everything that is stored has been indexed."""


@contextmanager
def served(folder: Path) -> Generator[str]:
    """Serve a data folder; the address of its pages, once everything in it has been indexed."""
    words = [sys.executable, "-m", "playhead_cli", "up", "--json", "--no-config"]
    with subprocess.Popen(
        [*words, "--data-dir", str(folder), *PORTS], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            address: str = json.loads(process.stdout.readline())["query"]
            until(lambda: UP_TO_DATE in httpx.get(f"{address}/metrics").text.splitlines(), "the index")
            yield address
        finally:
            process.terminate()
