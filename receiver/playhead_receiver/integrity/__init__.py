"""Integrity of runs in files: their hash chains and signatures."""

from playhead_receiver.integrity.chains import FileChains, StoreChains, redacted_chain

__all__ = ["FileChains", "StoreChains", "redacted_chain"]
