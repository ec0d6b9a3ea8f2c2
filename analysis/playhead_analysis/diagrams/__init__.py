"""Diagrams of runs and flows, and exports for process-mining tools."""
