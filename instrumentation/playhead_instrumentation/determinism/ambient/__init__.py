"""Reads of clocks and entropy."""
