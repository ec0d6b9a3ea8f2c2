"""A recorded process that does nothing costs nothing, at each level."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from support.servers.endpoints import http_endpoint
from support.tapes.spools import eventually

from playhead_core.boundaries import LEVELS

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


@contextmanager
def recorded(level: str, folder: Path) -> Iterator[int]:
    """A process that has said what it had to say, and waits; its number."""
    with http_endpoint() as endpoint:
        process = subprocess.Popen(
            [Path(sys.executable).with_name("opentelemetry-instrument"), sys.executable, "-c", PROGRAM],
            env={
                **os.environ,
                "PLAYHEAD_LEVEL": level,
                "PLAYHEAD_ENDPOINT": endpoint.url,
                "PLAYHEAD_SPOOL_DIR": str(folder / level),
            },
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert process.stdout is not None and process.stdin is not None
            assert process.stdout.readline() == b"ready\n"
            eventually(lambda: len(endpoint.facts()) > 1, "what it had to say")
            yield process.pid
            process.stdin.close()
            assert process.wait(60) == 0
        finally:
            process.kill()


@pytest.mark.acceptance
def test_they_do_not_wake_up(tmp_path):
    with ExitStack() as stack:
        processes = {level: stack.enter_context(recorded(level, tmp_path)) for level in LEVELS}

        def rested() -> bool:
            """Those that have not woken up for a while are not looked at any more."""
            before = {level: switches(pid) for level, pid in processes.items()}
            time.sleep(WINDOW_S)
            for level, count in before.items():
                if switches(processes[level]) == count:
                    del processes[level]
            return not processes

        eventually(rested, f"a stretch of {WINDOW_S} s in which each does not wake up")
