"""Restorable state, addressed by its content. Today: the blobs that states are made of."""

from playhead_checkpoint.blobs import BlobFolder

__all__ = ["BlobFolder"]
