"""Sessions of the OpenAI Agents SDK in a store of playhead. The SDK itself is not imported."""

from playhead_checkpoint.openai_agents.session import PlayheadSession

__all__ = ["PlayheadSession"]
