"""What commands need without loading the receiver: its addresses, data folder and needs."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from playhead_core.errors import ConfigurationError
from playhead_core.settings import Settings

HTTP_PORT = 4318
GRPC_PORT = 4317
QUERY_PORT = 4319
LEAST_DESCRIPTORS = 48
"""Open files and connections of a receiver: 32 without any work, and a few queries and senders."""


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


def require_descriptors() -> None:
    """Raise `ConfigurationError` if this process may not open as many files as a receiver needs."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit != resource.RLIM_INFINITY and limit < LEAST_DESCRIPTORS:
        raise ConfigurationError(
            f"a receiver needs {LEAST_DESCRIPTORS} file descriptors, the limit is {limit}",
            hint="raise it: ulimit -n 1024",
        )
