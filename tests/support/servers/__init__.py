"""Servers on loopback that tests talk to: real ones, scripted ones, and ports."""
