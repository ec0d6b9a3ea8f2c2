"""LangGraph's checkpoints and memory in a store of playhead. It needs the extra ``langgraph``."""

from playhead_checkpoint.langgraph.memory import PlayheadStore
from playhead_checkpoint.langgraph.saver import PlayheadSaver

__all__ = ["PlayheadSaver", "PlayheadStore"]
