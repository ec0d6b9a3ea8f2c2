"""What a program needs to ask a model without an SDK, for programs that are written by a test."""

from pathlib import Path

ASKING = (Path(__file__).parents[2] / "end_to_end" / "agents" / "asking.py").read_text("utf-8")
