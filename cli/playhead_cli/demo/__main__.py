"""Run the demo's provider alone: ``python -m playhead_cli.demo [PORT]``.

It prints the variables with which the SDKs and the example agents find it, and serves until it is
stopped.

With ``--keep DATA_DIR EXAMPLES`` it is the provider that `playhead demo --keep` leaves running. It
writes its address into the data folder, and prints ``listening``. It ends on request, when its
file is gone or names another provider, or after twelve hours without requests.
"""

from __future__ import annotations

import secrets
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from playhead_cli.demo.provider import Provider
from playhead_cli.running.kept_provider import FILE, KeptProvider, variables
from playhead_receiver.system.durable_files import keep

SIGNALS = (signal.SIGINT, signal.SIGTERM)
LOOKS_EVERY_S = 60
IDLE_LOOKS = 12 * 60
"""How many checks in a row may find no requests."""


def main() -> None:
    """Serve until SIGINT or SIGTERM, or as a kept provider until it is stopped."""
    words = sys.argv[1:]
    port = int(words[0]) if words else 0
    if "--keep" in words:
        data_dir, examples = words[words.index("--keep") + 1 :]
        return _kept(port, Path(data_dir), examples)
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    with Provider(port) as provider:
        for name, value in variables(provider.url).items():
            print(f"export {name}={value}", flush=True)
        signal.sigwait(SIGNALS)


def _kept(port: int, data_dir: Path, examples: str) -> None:
    for number in SIGNALS:
        signal.signal(number, _end)
    key = secrets.token_hex(16)
    try:
        with Provider(port, key=key) as provider:
            mine = KeptProvider(provider.port, key, examples)
            try:
                keep(data_dir / FILE, mine.content())
                print("listening", flush=True)
                _serve_until_over(provider, mine, data_dir)
            finally:
                if KeptProvider.read(data_dir) == mine:
                    (data_dir / FILE).unlink(missing_ok=True)
    except OSError as problem:
        print(problem, flush=True)


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit()


def _serve_until_over(provider: Provider, mine: KeptProvider, data_dir: Path) -> None:
    idle, asked = 0, 0
    while idle < IDLE_LOOKS and KeptProvider.read(data_dir) == mine:
        time.sleep(LOOKS_EVERY_S)
        idle = idle + 1 if provider.requests == asked else 0
        asked = provider.requests


if __name__ == "__main__":
    main()
