"""Each view shows itself, loads nothing from elsewhere, and axe-core finds nothing in it."""

from functools import cache
from pathlib import Path

import pytest
from support.pages.chromium import Page
from support.pages.views import PICTURES, VIEWS

from playhead_receiver.server import Receiver

pytestmark = pytest.mark.browser

AXE = Path(__file__).parents[3] / "receiver" / "web" / "node_modules" / "axe-core" / "axe.min.js"
FOUND = """axe.run(document, {resultTypes: ['violations'], RULES}).then(found => found.violations.map(
  one => `${one.id}: ${one.nodes.map(node => node.html.slice(0, 200)).join(' ')}`))"""


@cache
def axe() -> str:
    assert AXE.exists(), "axe-core is not here: make receiver/web/node_modules/.installed"
    return AXE.read_text("utf-8")


def violations(page: Page, *rules: str) -> list[str]:
    """What axe finds; ``rules``: of these alone, which takes a fraction of the time."""
    if not page.run("'axe' in window"):
        page.run(f"{axe()}; undefined")
    return page.run(FOUND.replace("RULES", f"runOnly: {list(rules)}" if rules else ""))


def paint(page: Page, scheme: str, width: int = 0) -> None:
    """Emulate a colour scheme, and a width if there is one. The open page follows."""
    page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    if width:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        page.ask("Emulation.setDeviceMetricsOverride", **size)
    page.wait(f"document.documentElement.dataset.mantineColorScheme === '{scheme}'")


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_shown_and_accessible(page: Page, viewed: Receiver, view: str):
    address, until = VIEWS[view]
    page.open(viewed.query_endpoint + address, until)
    paint(page, "light")
    page.photograph(PICTURES / f"{view}.png")
    assert violations(page) == []
    paint(page, "dark")
    assert violations(page, "color-contrast") == []
    assert page.complaints == []
    assert {one.split("/")[2] for one in page.requested} == {viewed.query_endpoint.split("/")[2]}


def test_the_list_of_keys_is_accessible(page: Page, viewed: Receiver):
    page.open(f"{viewed.query_endpoint}/", "main tbody a")
    page.press("?")
    page.wait("document.querySelector('dialog').open")
    assert violations(page) == []
