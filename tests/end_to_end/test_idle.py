"""A recorded process that does nothing costs nothing."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.endpoints import http_endpoint
from support.spools import eventually

from playhead_semconv.boundaries import LEVELS

PROGRAM = """
import asyncio, sys, threading, time
import playhead

async def main():
    await asyncio.sleep(0.001)
asyncio.run(main())
threading.Thread(target=time.sleep, args=(0.001,)).start()
playhead.state({"number": 1}, name="something")
print("ready", flush=True)
sys.stdin.read()
"""
WINDOW_S = 2.0


def switches(pid: int) -> int:
    """Context switches of all threads of a process."""
    lines = [
        line
        for path in Path(f"/proc/{pid}/task").glob("*/status")
        for line in path.read_text().splitlines()
    ]
    return sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)


@pytest.mark.parametrize("level", LEVELS)
def test_it_does_not_wake_up(level, tmp_path):
    with http_endpoint() as endpoint:
        process = subprocess.Popen(
            [Path(sys.executable).with_name("opentelemetry-instrument"), sys.executable, "-c", PROGRAM],
            env={
                **os.environ,
                "PLAYHEAD_LEVEL": level,
                "PLAYHEAD_ENDPOINT": endpoint.url,
                "PLAYHEAD_SPOOL_DIR": str(tmp_path / "spool"),
            },
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert process.stdout is not None and process.stdin is not None
            assert process.stdout.readline() == b"ready\n"
            eventually(lambda: len(endpoint.facts()) > 1, "what it had to say")

            def rests() -> bool:
                before = switches(process.pid)
                time.sleep(WINDOW_S)
                return switches(process.pid) == before

            eventually(rests, f"a stretch of {WINDOW_S} s in which it does not wake up")
            process.stdin.close()
            assert process.wait(30) == 0
        finally:
            process.kill()
