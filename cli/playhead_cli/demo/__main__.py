"""Run the demo's provider alone: ``python -m playhead_cli.demo [PORT]``.

Prints the variables with which the SDKs and the example agents find it, and serves until it is stopped.
"""

from __future__ import annotations

import signal
import sys

from playhead_cli.demo.provider import Provider


def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    with Provider(port) as provider:
        for name, value in provider.environment.items():
            print(f"export {name}={value}", flush=True)
        signal.sigwait(signals)


if __name__ == "__main__":
    main()
