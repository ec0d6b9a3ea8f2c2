"""The command line ``playhead``: one file per verb, loaded when it is asked for."""

from __future__ import annotations

import signal
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point. ^C while the rest is loaded ends it as it ends any program."""
    handler = signal.getsignal(signal.SIGINT)
    ours = handler is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from playhead_receiver.cli import app

    if ours:
        signal.signal(signal.SIGINT, handler)
    app.main(arguments)
