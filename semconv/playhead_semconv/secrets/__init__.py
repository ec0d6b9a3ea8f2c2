"""What credentials look like, and how they are found in any bytes: one engine for all places.

`fields` names what they stand under, `shapes` how providers make them, `finder` looks for both and for
values that are known, in one pass; `masks` says what replaces them on the tape, `scrubbing` puts
it there in what arrives in pieces, `codings` looks into what is compressed.
"""

from playhead_semconv.secrets.fields import FIELDS, Field, is_field
from playhead_semconv.secrets.finder import Finder, Span
from playhead_semconv.secrets.masks import mask, masked, replaced
from playhead_semconv.secrets.shapes import SHAPES, Shape

__all__ = [
    "FIELDS",
    "SHAPES",
    "Field",
    "Finder",
    "Shape",
    "Span",
    "is_field",
    "mask",
    "masked",
    "replaced",
]
