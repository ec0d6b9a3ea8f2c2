"""Reads the file that corrects prices."""

from __future__ import annotations

from pathlib import Path

from playhead_core.errors import ConfigurationError
from playhead_genai.price_corrections import read_corrections
from playhead_genai.prices import correct


def use_prices(path: str) -> None:
    """Price calls in this process by the file first; with an empty path, only by the price library.

    `ConfigurationError` for a file that cannot be read.
    """
    if not path:
        correct(())
        return
    try:
        with Path(path).expanduser().open("rb") as file:
            correct(read_corrections(file, path))
    except OSError as problem:
        raise ConfigurationError(
            f"the price file {path} cannot be read", cause=problem.strerror or str(problem)
        ) from None
