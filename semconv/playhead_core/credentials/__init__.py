"""Credentials: their names and formats, and one engine that finds them in any bytes.

`fields` lists the names of credentials, `rules` those of headers, query keys, options and variables,
`shapes` the formats that providers use. `finder` searches for both, and for known values, in one pass;
`named_values` decides what a name introduces. `masks` defines what replaces them on the tape,
`scrubbing` applies that to text that arrives in pieces, `event_frames` to event streams in binary
messages, `protobuf_messages` to messages that are sent, and `codings` looks into compressed data.
`responses` chooses between them.
"""

from playhead_core.credentials.fields import FIELDS, SecretField, is_field
from playhead_core.credentials.finder import Finder
from playhead_core.credentials.masks import mask, masked, replaced
from playhead_core.credentials.named_values import CredentialSpan
from playhead_core.credentials.shapes import SHAPES, Shape

__all__ = [
    "FIELDS",
    "SHAPES",
    "CredentialSpan",
    "Finder",
    "SecretField",
    "Shape",
    "is_field",
    "mask",
    "masked",
    "replaced",
]
