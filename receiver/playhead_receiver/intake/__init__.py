"""OTLP in: bodies to batches, over HTTP and gRPC, acknowledged when they are on disk."""

from playhead_receiver.intake.export import Answer, Intake

__all__ = ["Answer", "Intake"]
