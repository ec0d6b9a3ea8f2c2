"""The demonstration: a scripted provider on loopback, and the agents that use it."""

from playhead_receiver.demo.incident import run_incident
from playhead_receiver.demo.tour import run_demo
from playhead_receiver.demo.travel import run_travel

__all__ = ["run_demo", "run_incident", "run_travel"]
