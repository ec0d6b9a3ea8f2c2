"""Tapes of facts: what facts must carry, folds of facts, tapes in memory and in frames."""
