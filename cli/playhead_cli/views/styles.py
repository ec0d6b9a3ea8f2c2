"""The styles of all views."""

from __future__ import annotations

ERROR, FAINT, NUMBER, TITLE = "bold red", "dim", "cyan", "bold"
STATUS_STYLES = {"failure": "red", "interrupted": "yellow", "running": "cyan", "success": "green"}
