"""Objects of the query API: conversations."""

from __future__ import annotations

from playhead_receiver.query.models.model import Model, Status


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
    """Null where nothing of it has a known price."""
    unpriced_runs: int
    """Runs of which something has no known price: the cost is without it."""


class ConversationPage(Model):
    """Conversations, the one that went on last first."""

    conversations: list[Conversation]
    truncated: bool
