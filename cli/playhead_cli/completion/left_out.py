"""Leaves out of a completion what only the bodies of commands use.

To offer the options of a command its module is imported, and with it the store, protobuf and rich,
which take far longer than a shell may wait. A completion reads declarations and runs no command, so
these packages are replaced by empty ones.
"""

from __future__ import annotations

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

LEFT_OUT: Final = (
    *("playhead_analysis", "playhead_checkpoint", "playhead_exporter", "playhead_replay"),
    *("playhead_cli.demo", "playhead_cli.doctor", "playhead_cli.integrity"),
    *("playhead_cli.output", "playhead_cli.store_changes"),
    *("playhead_core.credentials", "playhead_core.integrity", "playhead_core.tape", "playhead_genai"),
    *(f"playhead_receiver.{one}" for one in ("archive", "auth", "config", "endpoints", "forward")),
    *(f"playhead_receiver.{one}" for one in ("importers", "ingest", "integrity", "maintenance")),
    *(f"playhead_receiver.{one}" for one in ("queries", "server", "standalone", "storage", "tenants")),
    *("playhead_receiver.system.impatient_protocol", "playhead_receiver.system.listening"),
    *("blake3", "google", "opentelemetry", "rich", "urllib3", "uvicorn"),
)
"""Packages that are replaced, with all modules in them."""


def leave_out() -> None:
    """Replace the packages in this process, which must end without running a command."""
    sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder, Loader):
    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """Answer for the packages that are left out."""
        left_out = any(fullname == one or fullname.startswith(f"{one}.") for one in LEFT_OUT)
        return ModuleSpec(fullname, self, is_package=True) if left_out else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return a module that has every name."""
        return _LeftOut(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """No-op: there is nothing in it."""


class _LeftOut(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})
