"""The command line ``playhead``: one file per verb, loaded when it is asked for."""

from playhead_receiver.cli.app import main

__all__ = ["main"]
