"""OTLP intake: turns request bodies into batches, and acknowledges them when they are on disk."""

from playhead_receiver.ingest.export import Acknowledgement, Intake

__all__ = ["Acknowledgement", "Intake"]
