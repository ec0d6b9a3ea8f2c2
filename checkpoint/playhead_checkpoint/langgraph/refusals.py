"""What the saver could not store, as a warning in the log.

LangGraph puts checkpoints and writes in the background, and drops an error there if a node fails
meanwhile: the warning is what a user then sees. It is logged, because `warnings.warn` is lost while
another thread is within `warnings.catch_warnings`.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager

from playhead_core.errors import PlayheadError

log = logging.getLogger(__name__)


@contextmanager
def refusals_reported(what: str) -> Generator[None, None, None]:
    """Name in an error what is not stored, and warn of it."""
    try:
        yield
    except PlayheadError as problem:
        problem.what = f"{what} is not stored: {problem.what}"
        log.warning("%s", problem)
        raise
