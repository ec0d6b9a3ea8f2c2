"""Forwards what the store receives to other OTLP endpoints, off the acknowledgement path."""

from playhead_receiver.forward.delivery import Say, say_nothing
from playhead_receiver.forward.destination import Destination, destinations_of
from playhead_receiver.forward.forwarder import Forwarder
from playhead_receiver.forward.relay import Relay

__all__ = ["Destination", "Forwarder", "Relay", "Say", "destinations_of", "say_nothing"]
