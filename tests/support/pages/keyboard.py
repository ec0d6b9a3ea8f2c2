"""Moves through a page by its keyboard alone."""

from __future__ import annotations

import json

from support.pages.chromium import Page

MOST_TABS = 200


def reach(page: Page, selector: str) -> None:
    """Press Tab until the focus is on an element."""
    for _ in range(MOST_TABS):
        if page.run(f"document.activeElement?.matches({json.dumps(selector)}) ?? false"):
            return
        page.press("Tab")
    raise AssertionError(f"the keyboard does not get to {selector}")


def write(page: Page, text: str) -> None:
    """Press the key of each letter."""
    for letter in text:
        page.press(letter)
