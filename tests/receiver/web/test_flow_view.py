"""Many runs: the graph of their ways, and the kinds of their failures, drawn and as tables."""

import httpx
import pytest
from support.pages.chromium import Page
from support.tapes.handmade import HandMade

from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch

from .test_accessible import violations

pytestmark = pytest.mark.browser

ROWS = "[...document.querySelectorAll('table[aria-label=\"NAME\"] tbody tr')].map(row => row.innerText)"


def test_a_flow_is_drawn_and_its_failures_lead_to_their_runs(page: Page, receiver: Receiver):
    for number in range(1, 6):
        made = HandMade(bytes([number]) * 16, bytes([number + 64]) * 16).start()
        made.chat()
        made.tool("search", "{}")
        if number > 2:
            made.tool("refund", "{}", error=f"ShopError: order {number} is refunded already")
        receiver.store.commit(Batch(made.spans, made.exit(int(number > 2)).facts, {}))
    while receiver.store.sum_up():
        pass
    api = httpx.get(f"{receiver.query_endpoint}/v1/flow").json()
    page.open(f"{receiver.query_endpoint}/?view=flow&least=0", ".graph .node")
    page.wait(f"document.querySelectorAll('.graph .node').length === {len(api['nodes'])}")
    between = [one for one in api["edges"] if one["source"] != one["target"]]
    assert page.run("document.querySelectorAll('.graph .edge').length") == len(between)
    names = page.run("[...document.querySelectorAll('.graph .name')].map(one => one.textContent)")
    assert {"(start)", "search", "refund", "(end)"} <= set(names)
    page.run("document.querySelector('.flow details summary').click()")
    page.wait(f"{ROWS.replace('NAME', 'edges')}.length === {len(api['edges'])}")
    assert len(page.run(ROWS.replace("NAME", "steps"))) == len(api["nodes"])
    page.wait(f"{ROWS.replace('NAME', 'kinds of failures')}.length > 0")
    kinds = page.run(ROWS.replace("NAME", "kinds of failures"))
    assert any("ShopError: order … is refunded already" in one and "3" in one for one in kinds), kinds
    assert violations(page) == []
    page.run("""[...document.querySelectorAll('table[aria-label="kinds of failures"] tbody tr')]
        .find(row => row.innerText.includes('…')).querySelector('td:last-child a').click()""")
    page.wait("document.querySelector('main.run') !== null")
    assert page.complaints == []
