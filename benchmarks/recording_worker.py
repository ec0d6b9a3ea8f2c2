"""One variant in a process of its own: reads workload names from stdin, answers with ns per unit."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

import httpx2
from clocks import now_ns, thread_ns

CHUNKS = 200

WAYS: dict[str, tuple[int, str]] = {
    "time.time()": (2000, "import time\ndef read():\n    return time.time()"),
    "time.monotonic()": (2000, "import time\ndef read():\n    return time.monotonic()"),
    "datetime.now()": (2000, "from datetime import datetime\ndef read():\n    return datetime.now()"),
    "os.urandom(16)": (2000, "import os\ndef read():\n    return os.urandom(16)"),
    "uuid.uuid4()": (2000, "import uuid\ndef read():\n    return uuid.uuid4()"),
    "random.random()": (2000, "import random\ndef read():\n    return random.random()"),
    "queue.get(timeout)": (
        1000,
        "import queue\nwaiting = queue.Queue()\n"
        "def read():\n    waiting.put(1)\n    return waiting.get(timeout=1)",
    ),
    "open, read 4 KiB": (
        200,
        "import os\npath = os.environ['BENCH_FILES'] + '/small'\n"
        "def read():\n    with open(path, 'rb') as file:\n        return file.read()",
    ),
    "open of 1 GiB": (
        20,
        "import os\npath = os.environ['BENCH_FILES'] + '/large'\n"
        "def read():\n    with open(path, 'rb') as file:\n        return file.read(1)",
    ),
    "subprocess.run, /bin/true": (
        10,
        "import subprocess\ndef read():\n    return subprocess.run(['/bin/true'], capture_output=True)",
    ),
    "subprocess.run, python": (
        3,
        "import subprocess, sys\n"
        "def read():\n    return subprocess.run([sys.executable, '-ISc', '1'], capture_output=True)",
    ),
}
"""The operations: number of executions per round, and code."""


def reader(source: str, module: str) -> Callable[[], object]:
    """The function ``read`` of ``source``, executed as if it were in ``module``."""
    code: CodeType = compile(source, f"/bench/{module}.py", "exec")
    names: dict[str, Any] = {"__name__": module}
    exec(code, names)
    return names["read"]


def of_reads(name: str, module: str) -> list[float]:
    """ns per execution: processor time, but real time for children."""
    times, source = WAYS[name]
    clock = now_ns if name.startswith("subprocess") else thread_ns
    read = reader(source, module)
    read()
    begin = clock()
    for _ in range(times):
        read()
    return [(clock() - begin) / times]


async def of_deliveries(url: str) -> list[float]:
    """For each chunk, ns from the server to the program."""
    taken: list[float] = []
    async with httpx2.AsyncClient() as client, client.stream("GET", url) as answer:
        async for chunk in answer.aiter_raw():
            taken.append(now_ns() - int(chunk.split()[-1]))
    return taken[1:]


def main() -> None:
    """Serve until stdin ends."""
    print("ready", flush=True)
    for line in sys.stdin:
        kind, name, more = line.rstrip("\n").split("\t")
        found = asyncio.run(of_deliveries(name)) if kind == "deliveries" else of_reads(name, more)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
