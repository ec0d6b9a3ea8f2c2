"""``python -m playhead_receiver`` serves until it is stopped.

Options set where it listens; ``PLAYHEAD_*`` variables set everything else.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from playhead_core.errors import PlayheadError
from playhead_core.settings import Settings, resolve
from playhead_core.untrusted.shown_text import visible
from playhead_receiver.standalone import WITHOUT_GRPC, receiver_of, serve
from playhead_receiver.system.defaults import ListenAddress


def main(words: Sequence[str] | None = None) -> int:
    """Serve. Returns the exit status."""
    place = _place(words)
    try:
        _serve(resolve(os.environ).settings, place)
    except PlayheadError as problem:
        _say(str(problem))
        return problem.exit_status
    return 0


def _place(words: Sequence[str] | None) -> ListenAddress:
    usual = ListenAddress()
    parser = argparse.ArgumentParser(prog="python -m playhead_receiver", description=__doc__)
    parser.add_argument(
        "--host", default=usual.host, help="an address other than loopback requires a token"
    )
    parser.add_argument("--http-port", type=int, default=usual.http_port)
    parser.add_argument("--grpc-port", type=int, default=usual.grpc_port)
    parser.add_argument("--query-port", type=int, default=usual.query_port)
    return ListenAddress(**vars(parser.parse_args(words)))


def _serve(settings: Settings, place: ListenAddress) -> None:
    def say(text: str) -> None:
        if not settings.quiet:
            _say(f"playhead: {text}")

    receiver = receiver_of(settings, place, say)

    def announce() -> None:
        grpc = f" and {receiver.grpc_endpoint} (grpc)" if receiver.grpc_endpoint else ""
        say(f"listening at {receiver.http_endpoint}{grpc}, answering at {receiver.query_endpoint}")
        if not grpc:
            say(WITHOUT_GRPC)

    serve(receiver, announce, say)


def _say(text: str) -> None:
    sys.stderr.write(f"{visible(text)}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
