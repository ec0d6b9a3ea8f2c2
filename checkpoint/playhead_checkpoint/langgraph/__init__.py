"""LangGraph's checkpoints in a store of playhead. It needs the extra ``langgraph``."""

from playhead_checkpoint.langgraph.saver import PlayheadSaver

__all__ = ["PlayheadSaver"]
