"""OTLP intake: turns request bodies into batches, and acknowledges them when they are on disk."""

from playhead_receiver.intake.export import Answer, Intake

__all__ = ["Answer", "Intake"]
