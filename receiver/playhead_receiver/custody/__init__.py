"""Custody of runs in files: their chains and signatures."""

from playhead_receiver.custody.chains import Brought, Chains, redacted_chain

__all__ = ["Brought", "Chains", "redacted_chain"]
