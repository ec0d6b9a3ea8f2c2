"""Sends what the store takes on to other OTLP endpoints, off the acknowledgement path."""

from playhead_receiver.forward.destination import Destination, destinations_of
from playhead_receiver.forward.forwarder import Forwarder

__all__ = ["Destination", "Forwarder", "destinations_of"]
