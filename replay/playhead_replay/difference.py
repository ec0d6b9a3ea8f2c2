"""The first difference of two values; what it is, `playhead_semconv.difference` says."""

from playhead_semconv.difference import (
    Difference,
    body_difference,
    first_difference,
    json_difference,
    text_difference,
)

__all__ = ["Difference", "body_difference", "first_difference", "json_difference", "text_difference"]
