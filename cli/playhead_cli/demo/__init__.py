"""The demonstration: a scripted provider on loopback, and the agents that use it."""

from playhead_cli.demo.incident import run_incident
from playhead_cli.demo.shell import Stage
from playhead_cli.demo.tour import run_demo, run_travel

__all__ = ["Stage", "run_demo", "run_incident", "run_travel"]
