"""OpenAI embeddings: ``POST /v1/embeddings``."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence

from playhead_cli.demo.shapes.sse import Json

MODEL = "text-embedding-3-small"


def embeddings(
    vectors: Sequence[Sequence[float]], *, model: str = MODEL, tokens: int = 8, as_base64: bool = True
) -> Json:
    """One vector per input; ``as_base64`` (float32, little-endian) is the SDK's default."""

    def packed(vector: Sequence[float]) -> str | list[float]:
        if not as_base64:
            return list(vector)
        return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()

    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": packed(vector)}
            for index, vector in enumerate(vectors)
        ],
        "model": model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }
