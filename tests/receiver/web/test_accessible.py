"""The pages for everybody: what axe-core finds in each view, and all of it by keyboard alone."""

from functools import cache
from pathlib import Path

import pytest
from support.pages.chromium import Page
from support.pages.views import VIEWS

from playhead_receiver.server import Receiver

pytestmark = pytest.mark.browser

AXE = Path(__file__).parents[3] / "receiver" / "web" / "node_modules" / "axe-core" / "axe.min.js"
FOUND = """axe.run(document, {resultTypes: ['violations']}).then(found => found.violations.map(
  one => `${one.id}: ${one.nodes.map(node => node.html.slice(0, 200)).join(' ')}`))"""


@cache
def axe() -> str:
    assert AXE.exists(), "axe-core is not here: make receiver/web/node_modules/.installed"
    return AXE.read_text("utf-8")


def violations(page: Page) -> list[str]:
    page.run(f"{axe()}; undefined")
    return page.run(FOUND)


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_in_a_view_keeps_anybody_out(page: Page, receiver: Receiver, view: str):
    address, until = VIEWS[view]
    for scheme in ("light", "dark"):
        page.ask(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
        )
        page.open(receiver.query_endpoint + address, until)
        assert violations(page) == [], scheme
    page.press("?")
    page.wait("document.querySelector('dialog').open")
    assert violations(page) == []
