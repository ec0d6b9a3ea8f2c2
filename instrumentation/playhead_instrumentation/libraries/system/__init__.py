"""Reads of the machine, connections without an adapter, and the guards of a replay."""
