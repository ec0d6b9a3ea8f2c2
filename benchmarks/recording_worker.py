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

LOOPS = 2000
CHUNKS = 200

READS = {
    "time.time()": "import time\ndef read():\n    return time.time()",
    "time.monotonic()": "import time\ndef read():\n    return time.monotonic()",
    "datetime.now()": "from datetime import datetime\ndef read():\n    return datetime.now()",
    "os.urandom(16)": "import os\ndef read():\n    return os.urandom(16)",
    "uuid.uuid4()": "import uuid\ndef read():\n    return uuid.uuid4()",
}


def reader(source: str, module: str) -> Callable[[], object]:
    """``read`` of ``source``, as if it stood in ``module``."""
    code: CodeType = compile(source, f"/bench/{module}.py", "exec")
    names: dict[str, Any] = {"__name__": module}
    exec(code, names)
    return names["read"]


def of_reads(name: str, module: str) -> list[float]:
    """ns a read, processor time."""
    read = reader(READS[name], module)
    read()
    begin = thread_ns()
    for _ in range(LOOPS):
        read()
    return [(thread_ns() - begin) / LOOPS]


async def of_deliveries(url: str) -> list[float]:
    """ns between a chunk at the server and the program that gets it, of each chunk."""
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
