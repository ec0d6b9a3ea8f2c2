"""A pytest in a process of its own, without the plugins of this suite: they take long to import."""

from __future__ import annotations

NO_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Variables for one that needs none."""

ONLY_OURS = {**NO_PLUGINS, "PYTEST_PLUGINS": "playhead_replay.goldens.plugin"}
"""Variables for one that replays goldens."""
