"""State and comparison: what a step changed, two runs step by step, several by their figures."""

import json

import httpx
import pytest
from support.answers.spoken import answer, request
from support.pages.chromium import Page
from support.pages.views import PICTURES
from support.tapes.handmade import MAIN, HandMade

from playhead_core.facts import Content, ExchangeId, digest_of
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch
from playhead_semconv import attributes as a
from playhead_semconv import events as e

from .test_accessible import violations

pytestmark = pytest.mark.browser

SIZES = [(1400, "light"), (700, "dark")]


def stored(receiver: Receiver, number: int, *answers: str) -> str:
    """A run of one call for each answer, with a state after each but the last. Its trace id."""
    made = HandMade(bytes([number]) * 16, bytes([number + 64]) * 16)
    made.start(**{a.PLAYHEAD_RUN_AGENT: "planner"})
    for place, text in enumerate(answers, 1):
        made.chat(request({"role": "user", "content": f"plan {place}"}), (answer(content=text),))
        if place < len(answers):
            state = json.dumps({"goal": "refund", "decided": text}).encode()
            named = {a.PLAYHEAD_STATE_NAME: "plan", a.PLAYHEAD_STATE_DIGEST: digest_of(state).hex()}
            made.fact(
                e.PLAYHEAD_STATE,
                attributes=named,
                exchange=ExchangeId(MAIN, "state", place - 1),
                body=Content.of(state),
            )
    made.exit()
    receiver.store.commit(Batch(made.spans, made.facts, {}))
    return made.trace_id.hex()


def fits(page: Page, name: str, address: str, until: str) -> None:
    """A view fits both screens in both schemes, and axe finds nothing."""
    for width, scheme in SIZES:
        emulated = [{"name": "prefers-color-scheme", "value": scheme}]
        page.ask("Emulation.setEmulatedMedia", features=emulated)
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        page.ask("Emulation.setDeviceMetricsOverride", **size)
        page.open(address, until)
        page.wait("!document.body.innerText.includes('loading')")
        assert page.run("document.documentElement.scrollWidth") <= width
        assert violations(page) == []
        page.photograph(PICTURES / f"{name}-{width}-{scheme}.png")


def test_the_state_opens_where_it_changed_last_and_says_what_changed(page: Page, receiver: Receiver):
    run = stored(receiver, 5, "ask the shop", "ask the bank", "done")
    fits(page, "state", f"{receiver.query_endpoint}/?view=playhead&run={run}", ".changes ins")
    assert page.run("document.querySelector('[role=status]').textContent") == "after step 2 of 3"
    assert page.run("document.querySelector('.changes summary').textContent").endswith("plan changed")
    assert page.run("[...document.querySelectorAll('.changes del')].map(one => one.textContent)") == [
        "shop"
    ]
    page.press("ArrowRight")
    page.wait("document.querySelector('.changes h2')?.textContent === 'Changes in step 3 none'")
    made = HandMade(b"\x09" * 16, b"\x49" * 16).start()
    made.chat()
    made.exit()
    receiver.store.commit(Batch(made.spans, made.facts, {}))
    page.open(f"{receiver.query_endpoint}/?view=playhead&run={made.trace_id.hex()}", ".empty h2")
    page.wait("document.querySelector('.empty').innerText.includes('playhead.state(')")
    assert page.complaints == []


def test_runs_are_picked_and_compared_up_to_several(page: Page, receiver: Receiver):
    for number, last in ((5, "paid"), (6, "refused"), (7, "paid")):
        stored(receiver, number, "ask the shop", last)
    page.open(f"{receiver.query_endpoint}/?run=planner-1", ".over a[href*='view=compare']")
    page.run("document.querySelector('.over a[href*=\"view=compare\"]').click()")
    page.wait("document.querySelectorAll('.pick').length === 2")  # of the same agent alone
    picks = "[...document.querySelectorAll('.pick')]"
    page.run(f"{picks}.find(one => one.textContent === 'planner-2').click()")
    page.wait("document.querySelector('.first del')?.textContent === 'paid'")
    assert page.run("document.querySelector('.first ins').textContent") == "refused"
    why = page.run("document.querySelector('.why').innerText")
    assert "1 step is the same; first difference: step 2 and 2" in why
    assert "The same request was answered differently." in why
    pair = page.run("document.querySelector('.pair').innerText").split("\n")
    assert [one.strip() for one in pair if one.strip()] == ["steps 1", "same"]
    fits(page, "compare", page.run("location.href"), ".first")
    page.open(f"{receiver.query_endpoint}/?q=agent:planner", "td.name input")
    page.wait("document.querySelectorAll('td.name input').length === 3")
    page.run("document.querySelectorAll('td.name input').forEach(one => one.click())")
    page.wait("document.querySelector('button.main')?.textContent === 'Compare 3 runs'")
    page.run("document.querySelector('button.main').click()")
    page.wait("document.querySelectorAll('.metrics thead th').length === 3")
    rows = "[...document.querySelectorAll('.metrics tbody tr')].map(row => row.innerText)"
    parted = next(row for row in page.run(rows) if row.startswith("Parts"))
    assert parted.count("at step 2") in (1, 2)
    assert page.complaints == []


def test_two_groups_are_tested_as_the_command_does(page: Page, receiver: Receiver):
    for number in range(60):
        made = HandMade(bytes([number + 1]) * 16, bytes([number + 64]) * 16)
        made.start(**{a.PLAYHEAD_RUN_AGENT: f"version-{number % 2}"})
        made.chat()
        if number % 2:
            made.tool("search", "{}", error="TimeoutError: no answer")
        receiver.store.commit(Batch(made.spans, made.exit(number % 2).facts, {}))
    while receiver.store.sum_up():
        pass
    page.open(f"{receiver.query_endpoint}/?view=compare", "form [name=first]")
    assert violations(page) == []
    for name, query in ("first", "agent:version-0"), ("second", "agent:version-1"):
        page.run(f"document.querySelector('form [name={name}]').value = '{query}'")
    page.run("document.querySelector('[name=compare-groups]').click()")
    page.wait("document.querySelector('.groups table') !== null")
    address = page.run("location.href")
    wanted = {"left": "agent:version-0", "right": "agent:version-1"}
    api = httpx.get(f"{receiver.query_endpoint}/v1/compare", params=wanted).json()
    status = page.run("document.querySelector('.groups [role=status]').innerText")
    assert api["verdict"] == "difference" and status.startswith("difference: agent:version-0 (30 runs)")
    rows = page.run("[...document.querySelectorAll('.groups tbody tr')].map(row => row.innerText)")
    assert len(rows) == len(api["measures"])
    (success,) = (row.split("\t") for row in rows if row.startswith("success"))
    assert success == ["success", "100 %", "0 %", "\N{MINUS SIGN}100\xa0points", "<\xa00.001", "yes"]
    assert ["calls search", "0 %", "100 %", "+100\xa0points", "<\xa00.001", "yes"] in [
        row.split("\t") for row in rows
    ]
    fits(page, "groups", address, ".groups table")
