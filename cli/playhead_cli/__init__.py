"""The command line ``playhead``: one file per command, loaded on demand."""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
import _signal as signal  # built in: ^C may come at any moment, so nothing here reads a file
import _tracemalloc as tracemalloc
import os


def main(arguments: list[str] | None = None) -> None:
    """The entry point. ^C during loading ends the process as it ends any program."""
    handler = signal.getsignal(signal.SIGINT)
    ours = handler is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if "PYTHONTRACEMALLOC" in os.environ:
        tracemalloc.stop()  # it is for the agent; this process would be ten times slower
    from playhead_cli import app

    if ours:
        signal.signal(signal.SIGINT, handler)
    app.main(arguments)
