"""The pages in a real browser: sums, keys, what waits on the machine."""

import os
import socket
from pathlib import Path

import httpx
import pytest
from support.pages.chromium import Page
from support.tapes.spools import undelivered

from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver

pytestmark = pytest.mark.browser


def test_what_the_page_sums_up_is_what_the_api_says(page: Page, viewed: Receiver):
    page.open(viewed.query_endpoint + "/?run=refund-1&rows=tree", ".row")
    [run] = httpx.get(f"{viewed.query_endpoint}/v1/runs").json()["runs"]
    spans = httpx.get(f"{viewed.query_endpoint}/v1/runs/refund-1?limit=1000").json()["spans"]
    said = page.text
    assert f"{run['steps']} steps, {run['spans']} spans" in said
    assert f"{run['input_tokens']}→{run['output_tokens']} tokens" in said
    assert page.run("Number(document.querySelector('.rows').ariaRowCount)") == len(spans)
    levels = page.run("[...document.querySelectorAll('.row')].map(row => Number(row.ariaLevel))")
    assert levels == [one["depth"] + 1 for one in spans]


def test_operations_show_what_waits_on_the_machine(page: Page, tmp_path: Path):
    addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
    with (
        undelivered(tmp_path / "spool") as settings,
        Receiver(tmp_path / "data", Configuration(addresses, agents=settings)) as receiver,
    ):
        page.open(f"{receiver.query_endpoint}/?view=operations", "table[aria-label=spool] tbody tr")
        row = "[...document.querySelector('table[aria-label=spool] tbody tr').cells]"
        found = page.run(f"{row}.map(one => one.textContent)")
        assert found[:4] == ["refund", str(os.getpid()), "3", "0"]
        assert found[5] == "its own process"
        assert page.run("document.querySelector('main').innerText").count(socket.gethostname()) == 1
        page.wait("document.querySelectorAll('.operations .chart canvas').length === 5")
        page.wait("document.querySelector('.health').innerText.includes('nothing waits')")
        page.run("document.querySelector('.operations .board summary').click()")
        page.wait("document.querySelectorAll('table[aria-label=looks] tbody tr').length > 1")
        # They begin when the receiver began, before the page was opened.
        began_s = (
            httpx.get(f"{receiver.query_endpoint}/v1/metrics/history").json()["time_ns"][0] // 10**9
        )
        times = "[...document.querySelectorAll('table[aria-label=looks] th[scope=row]')]"
        page.wait(f"Date.parse({times}.at(-1).textContent) === {began_s * 1000}")
        page.run("document.querySelector('.operations [name=\"24h\"]').click()")
        page.wait("location.search.includes('range=24h')")
        captions = page.run("document.querySelector('.operations .board').innerText")
        for unit in ("spans, facts per second", "batches not searchable yet", "store, checkpoints"):
            assert unit in captions
        assert page.complaints == []


def test_a_run_is_walked_through_by_keys_alone(page: Page, viewed: Receiver):
    page.open(f"{viewed.query_endpoint}/", "main tbody a")
    page.press("Enter")
    page.wait("document.querySelector('.row[aria-selected=true]')?.textContent.includes('refund')")
    page.press("S")
    page.wait("location.search.includes('step=10')")
    page.press("e")
    page.wait("location.search.includes('span=') || location.search.includes('step=11')")
    page.press("g")
    page.wait("location.search.includes('step=1') && !location.search.includes('step=11')")
    page.press("2")
    page.wait("location.search.includes('tab=raw')")
    page.press("t")
    page.wait("document.querySelector('.row[aria-expanded=true]') !== null")
    page.press("p")
    page.wait("document.querySelector('main input[type=range]') !== null")
    page.press("ArrowRight")
    page.wait("location.search.includes('after=2')")
    page.press("?")
    page.wait("document.querySelector('dialog').open")
    page.press("?")
    page.press("q")
    page.wait("location.search.includes('view=runs')")
    assert page.complaints == []
