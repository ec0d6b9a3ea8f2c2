"""What the saver could not store, so that the program learns of it.

LangGraph puts checkpoints and writes in the background, and drops what is raised there if a node fails
meanwhile. So a refusal is a warning at once, and refused writes of a task, which
runs again when the graph is resumed, are an error of the next put in their thread.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Collection, Generator
from contextlib import contextmanager
from typing import Final

from playhead_semconv.errors import PlayheadError

_MOST_REMEMBERED: Final = 1_000


class Refusals:
    """Remembers whose writes were refused, by thread id and task id, until an error reports it."""

    def __init__(self) -> None:
        self._errors: dict[tuple[str, str], PlayheadError] = {}

    @contextmanager
    def of_task(
        self, thread_id: str, task_id: str, channels: Collection[str]
    ) -> Generator[None, None, None]:
        """Warn if the writes of a task are refused here, and remember why."""
        key = thread_id, task_id
        try:
            with _warning(f"what a task wrote to {', '.join(channels):.200}"):
                yield
        except PlayheadError as problem:
            if len(self._errors) < _MOST_REMEMBERED:
                self._errors[key] = copy.copy(problem)  # without the frames of its traceback
            raise
        self._errors.pop(key, None)

    @contextmanager
    def of_put(self, thread_id: str) -> Generator[None, None, None]:
        """Warn if a checkpoint is refused here; once it is stored, raise what is remembered."""
        keys = [key for key in list(self._errors) if key[0] == thread_id]
        errors = [error for key in keys if (error := self._errors.pop(key, None))]
        with _warning(f"a checkpoint of thread {thread_id:.100}"):
            yield
        if errors:
            raise errors[0]


@contextmanager
def _warning(what: str) -> Generator[None, None, None]:
    """Name in an error what is not stored, and warn of it."""
    try:
        yield
    except PlayheadError as problem:
        problem.what = f"{what} is not stored: {problem.what}"
        warnings.warn(str(problem), RuntimeWarning, stacklevel=1)
        raise
