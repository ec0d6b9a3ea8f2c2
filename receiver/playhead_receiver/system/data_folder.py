"""The folder in which a receiver keeps its data."""

from __future__ import annotations

from pathlib import Path

import platformdirs

from playhead_core.settings import Settings


def data_dir(settings: Settings) -> Path:
    """The receiver's data folder: the setting, else ``playhead`` in the user's data folder."""
    if settings.data_dir:
        return Path(settings.data_dir).expanduser().absolute()
    return platformdirs.user_data_path("playhead", appauthor=False)
