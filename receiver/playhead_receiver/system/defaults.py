"""Defaults that commands need without loading the receiver: addresses and the data folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import platformdirs

from playhead_core.settings import Settings

HTTP_PORT = 4318
GRPC_PORT = 4317
QUERY_PORT = 4319


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """A host and its ports; port 0 is any free one."""

    host: str = "127.0.0.1"
    http_port: int = HTTP_PORT
    grpc_port: int = GRPC_PORT
    query_port: int = QUERY_PORT


def data_dir(settings: Settings) -> Path:
    """The receiver's data folder: the setting, else ``playhead`` in the user's data folder."""
    if settings.data_dir:
        return Path(settings.data_dir).expanduser().absolute()
    return platformdirs.user_data_path("playhead", appauthor=False)
