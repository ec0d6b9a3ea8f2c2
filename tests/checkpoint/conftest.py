"""LangGraph's packages stand apart: a plugin of pytest among them would be loaded in every test."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / ".venv" / "apart-langgraph"))
