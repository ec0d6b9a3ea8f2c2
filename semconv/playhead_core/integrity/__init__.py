"""Integrity: a hash chain over the facts of a process, which shows whether they were changed."""

from playhead_core.integrity.chain import (
    DIGEST_BYTES,
    MOST_FACTS,
    Link,
    LinkStatement,
    What,
    digests_of,
    fact_digest,
    first_link,
    next_link,
    statement_of,
)
from playhead_core.integrity.records import ChainMapping, Signature, Signed, signed_bytes, signed_of

__all__ = [
    "DIGEST_BYTES",
    "MOST_FACTS",
    "ChainMapping",
    "Link",
    "LinkStatement",
    "Signature",
    "Signed",
    "What",
    "digests_of",
    "fact_digest",
    "first_link",
    "next_link",
    "signed_bytes",
    "signed_of",
    "statement_of",
]
