"""Reads the file that corrects prices."""

from __future__ import annotations

from pathlib import Path

from playhead_core.errors import ConfigurationError
from playhead_genai.price_corrections import read_corrections
from playhead_genai.prices import correct


def use_prices(path: str) -> None:
    """Let this process price calls as the file says first; an empty path: as the library says alone.

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
            f"the file of prices {path} cannot be read", cause=problem.strerror or str(problem)
        ) from None
