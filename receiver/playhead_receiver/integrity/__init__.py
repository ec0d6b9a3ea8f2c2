"""Custody of runs in files: their chains and signatures."""

from playhead_receiver.integrity.chains import Brought, Chains, redacted_chain

__all__ = ["Brought", "Chains", "redacted_chain"]
