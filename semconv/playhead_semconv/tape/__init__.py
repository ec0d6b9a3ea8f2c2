"""Tapes of facts: what a fact must carry, what is folded of facts, tapes in memory and in frames."""
