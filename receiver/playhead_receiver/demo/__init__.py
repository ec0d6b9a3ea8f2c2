"""The demonstration: a scripted provider on loopback, and the agents that it answers."""

from playhead_receiver.demo.tour import run_demo

__all__ = ["run_demo"]
