"""The program that is recorded and replayed: N calls of the real OpenAI SDK, timed one by one.

Writes its times as JSON to the file descriptor in ``BENCH_SAYS``. ``BENCH_TOOL`` names the tool that
replays; ``none``: a transport that answers at once, which gives the SDK's own cost. playhead starts the
program itself.
"""

from __future__ import annotations

import json
import os
import posix
import sys
from contextlib import ExitStack
from typing import Any

import openai
from clocks import now_ns, used_ns


def held_kib() -> tuple[int, int]:
    """Memory of this process without mapped files, now; and its total peak.

    0 if the system does not provide it.
    """
    if not sys.platform.startswith("linux"):
        return 0, 0
    # Not covered by the tools: otherwise a replay would return the recorded figures.
    file = posix.open("/proc/self/status", posix.O_RDONLY)
    status = posix.read(file, 1 << 16).decode()
    posix.close(file)
    anonymous, most = (int(status.partition(name)[2].split()[0]) for name in ("RssAnon:", "VmHWM:"))
    return anonymous, most


def messages(size_bytes: int, number: int) -> list[dict[str, str]]:
    """A request; given ``size_bytes``, a history that grows to that size in 100 calls, then restarts."""
    told = [{"role": "user", "content": f"question {number // 100}"}]
    line = "The quick brown fox jumps over the lazy dog. " * 22
    told += [
        {"role": "user", "content": f"{step} {line}"}
        for step in range(size_bytes // 1000 * (number % 100) // 100)
    ]
    return [*told, {"role": "user", "content": f"call {number}"}]


def client(tool: str) -> openai.OpenAI:
    """A client; without a tool, over a transport that answers at once, to measure the SDK's own cost."""
    options: dict[str, Any] = {"max_retries": 0}
    if tool == "none":
        from workloads import Transport

        options["http_client"] = openai.DefaultHttpxClient(transport=Transport())
    return openai.OpenAI(api_key="bench", **options)


def main(count: int, size_bytes: int) -> None:
    """Make the calls and report their times."""
    tool, tape = os.environ.get("BENCH_TOOL", ""), os.environ.get("BENCH_TAPE", "")
    with ExitStack() as playing:
        begun_ns = now_ns()
        if tool == "vcrpy":
            import vcr

            mode = vcr.mode.NONE if os.path.exists(tape) else vcr.mode.ALL
            player = vcr.VCR(record_mode=mode, match_on=["method", "uri", "body"])
            playing.enter_context(player.use_cassette(tape))
        elif tool == "reeltime":
            import reeltime

            how = {"collect_git": False, "run_id": "BENCH"}
            if os.path.exists(tape):
                how = {"mode": "replay", "replay": "BENCH"}
            playing.enter_context(reeltime.session(tape_dir=tape, **how))
        load_ns = now_ns() - begun_ns
        gpt = client(tool)
        taken: list[int] = []
        used: list[int] = []
        for number in range(count):
            asked: Any = messages(size_bytes, number)
            begin_used_ns, begin_ns = used_ns(), now_ns()
            gpt.chat.completions.create(model="gpt-4o", messages=asked)
            taken.append(now_ns() - begin_ns)
            used.append(used_ns() - begin_used_ns)
        anonymous, most = held_kib()
    figures = {"ns": taken, "used_ns": used, "load_ns": load_ns, "held_kib": anonymous, "peak_kib": most}
    said = json.dumps(figures)
    os.write(int(os.environ["BENCH_SAYS"]), said.encode())


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
