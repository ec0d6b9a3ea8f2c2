"""The pages for everybody: what axe-core finds in each view, and all of it by keyboard alone."""

import json
from functools import cache
from pathlib import Path

import pytest

from playhead_receiver.server import Receiver

from .chromium import Page
from .views import VIEWS

pytestmark = pytest.mark.browser

AXE = Path(__file__).parents[3] / ".web-tools" / "node_modules" / "axe-core" / "axe.min.js"
FOUND = """axe.run(document, {resultTypes: ['violations']}).then(found => found.violations.map(
  one => `${one.id}: ${one.nodes.map(node => node.html.slice(0, 200)).join(' ')}`))"""
MOST_TABS = 200


@cache
def axe() -> str:
    assert AXE.exists(), "axe-core is not here: make .web-tools/ready"
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


def reach(page: Page, selector: str) -> None:
    """Press Tab until the focus is on an element."""
    for _ in range(MOST_TABS):
        if page.run(f"document.activeElement?.matches({json.dumps(selector)}) ?? false"):
            return
        page.press("Tab")
    raise AssertionError(f"the keyboard does not get to {selector}")


def test_the_whole_way_by_keyboard_alone(page: Page, receiver: Receiver):
    page.open(f"{receiver.query_endpoint}/", "main tbody a")
    reach(page, "nav a[href*='view=find']")
    page.press("Enter")
    page.wait("document.querySelector('main input[name=q]') !== null")
    reach(page, "main input[name=q]")
    for letter in '"order 81"':
        page.press(letter)
    page.press("Enter")
    page.wait("document.querySelector('mark') !== null")
    reach(page, "main .said a")
    page.press("Enter")
    page.wait("document.querySelector('.row[aria-selected=true]') !== null")
    reach(page, "[role=treegrid]")
    page.press("g")
    page.press("2")
    page.wait(
        "location.search.includes('tab=raw') && document.querySelector('.detail summary') !== null"
    )
    reach(page, ".detail summary")
    page.press("Enter")
    page.wait("document.querySelector('.detail details[open]') !== null")
    reach(page, "nav[aria-label='views of the run'] a[href*='transcript']")
    page.press("Enter")
    page.wait("document.querySelector('article') !== null")
    page.press("q")
    page.wait("document.querySelector('main tbody a') !== null")
    page.press("m")
    page.wait("location.search.includes('left=refund-1')")
    page.press("d")
    page.wait(
        "location.search.includes('view=compare') && document.querySelector('main table') !== null"
    )
    reach(page, "main table a")
    page.press("Enter")
    page.wait("document.querySelector('.row[aria-selected=true]') !== null")
    page.press("x")
    page.wait("document.querySelector('.detail .command') !== null")
    reach(page, ".detail input[name=path]")
    for letter in "request.model":
        page.press(letter)
    reach(page, ".detail input[name=value]")
    for letter in "gpt-4.1":
        page.press(letter)
    page.wait(
        "[...document.querySelectorAll('.command')].at(-1).textContent"
        " === 'playhead fork refund-1:11 --edit request.model=gpt-4.1'"
    )
    assert page.complaints == []
