"""The fidelity report: a replay held against its tape."""
