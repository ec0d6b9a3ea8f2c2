"""Objects of the query API: conversations."""

from __future__ import annotations

from playhead_receiver.api.models.model import Model, Status


class Conversation(Model):
    """The runs of one conversation."""

    id: str
    agent: str
    runs: int
    started_ns: int
    last_ns: int
    status: Status
    """Of its last run."""
    steps: int
    errors: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """Null if no price is known."""
    unpriced_runs: int
    """Runs with calls of unknown price, which the cost leaves out."""


class ConversationPage(Model):
    """Conversations, most recent first."""

    conversations: list[Conversation]
    truncated: bool
