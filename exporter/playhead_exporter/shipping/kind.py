"""Whether an endpoint is a playhead receiver: by setting, its own answer, or its last known answer."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, cast

from playhead_core.errors import ConfigurationError
from playhead_core.process.own_descriptors import read_file, write_file
from playhead_exporter.delivery import Endpoint
from playhead_exporter.shipping.endpoint_answers import About
from playhead_exporter.spool.folders import ENDPOINT, make_folder

KINDS = ("auto", "playhead", "other")


class EndpointKind:
    """State of one endpoint. Until the endpoint has answered, it counts as playhead."""

    def __init__(self, endpoint: Endpoint, setting: str, spool: Path) -> None:
        """Raises `ConfigurationError` if ``setting`` is not one of `KINDS`."""
        if setting not in KINDS:
            raise ConfigurationError(f"endpoint-kind is {setting!r}", hint=f"use {', '.join(KINDS)}")
        self._base = endpoint.base
        self._path = spool / ENDPOINT
        self.asks = setting != "other"
        """Whether to ask the endpoint. A receiver also says what it reads."""
        self._set = setting != "auto"
        self._playhead = setting == "playhead" if self._set else self._remembered()

    def whole(self) -> bool:
        """Whether spans must be sent complete."""
        return not self._playhead

    def on_about(self, about: About) -> None:
        """Note what the endpoint has said about itself. A setting takes precedence."""
        if self._set:
            return
        playhead = about.playhead
        changed = playhead != self._playhead or not self._path.exists()
        self._playhead = playhead
        if changed:
            self._remember(playhead)

    def _remembered(self) -> bool:
        try:
            found: Any = json.loads(read_file(self._path))
        except (OSError, ValueError):
            return True
        return not (isinstance(found, dict) and cast(dict[str, Any], found).get(self._base) is False)

    def _remember(self, playhead: bool) -> None:
        draft = self._path.with_suffix(".draft")
        try:
            make_folder(self._path.parent)
            write_file(draft, json.dumps({self._base: playhead}).encode())
            os.replace(draft, self._path)
        except OSError:
            return  # it is asked again next time
