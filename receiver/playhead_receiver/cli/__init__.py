"""The command line ``playhead``: one file per verb, loaded when it is asked for."""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
from __future__ import annotations

import _signal as signal  # what `signal` rests on: there at once, and ^C may come at once
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
