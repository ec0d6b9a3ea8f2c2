"""Custody: a chain over the facts of a process that shows whether somebody has changed them."""

from playhead_core.integrity.chain import (
    DIGEST_BYTES,
    MOST_FACTS,
    Link,
    Said,
    What,
    digests_of,
    fact_digest,
    first_link,
    next_link,
    said_of,
)
from playhead_core.integrity.records import ChainMapping, Signature, Signed, signed_bytes, signed_of

__all__ = [
    "DIGEST_BYTES",
    "MOST_FACTS",
    "ChainMapping",
    "Link",
    "Said",
    "Signature",
    "Signed",
    "What",
    "digests_of",
    "fact_digest",
    "first_link",
    "next_link",
    "said_of",
    "signed_bytes",
    "signed_of",
]
