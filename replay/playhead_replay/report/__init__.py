"""The fidelity report: compares a replay with its tape."""
