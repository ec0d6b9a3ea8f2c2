"""The view of a run: its three densities, and when the pieces of answers came."""

import json

import httpx
import pytest
from support.pages.chromium import Page
from support.pages.views import PICTURES
from support.tapes.handmade import HandMade

from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch

from .test_accessible import violations

pytestmark = pytest.mark.browser

ROWS = "Number(document.querySelector('.rows').ariaRowCount)"
PARTS = """(row => {
  const canvas = document.querySelector('.rows canvas');
  const y = Math.round((row + 0.5) * 24 * devicePixelRatio);
  const { data } = canvas.getContext('2d').getImageData(0, y, canvas.width, 1);
  const pen = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d');
  pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--ground");
  pen.fillRect(0, 0, 1, 1);
  const ground = `${pen.getImageData(0, 0, 1, 1).data.slice(0, 3)}`;
  let parts = 0;
  let within = false;
  for (let at = 0; at < data.length; at += 4) {
    const bar = data[at + 3] > 0 && `${data.slice(at, at + 3)}` !== ground;
    if (bar && !within) parts++;
    within = bar;
  }
  return parts;
})"""
"""How many pieces the bar of a row has."""


@pytest.fixture
def streamed(receiver: Receiver) -> str:
    """The trace id of a run of two calls: one that came in four pieces, one in a single piece."""
    made = HandMade(b"\x05" * 16, b"\x06" * 16).start()
    made.stream((b"a", b"b", b"c", b"d"))
    made.wait(0.1).stream((b"whole",))
    made.exit()
    receiver.store.commit(Batch(made.spans, made.facts, {}))
    return made.trace_id.hex()


def test_a_streamed_call_is_cut_where_its_pieces_came(page: Page, receiver: Receiver, streamed: str):
    for rows, first, last in (("steps", 0, 1), ("tree", 1, 3), ("everything", 1, 3)):
        page.open(f"{receiver.query_endpoint}/?run={streamed}&rows={rows}", ".row")
        page.wait(f"{PARTS}({first}) === 4")
        page.press("g")
        page.wait(f"{PARTS}({last}) === 1")
        page.photograph(PICTURES / f"run-{rows}.png")
    assert page.complaints == []


NODES = "document.querySelectorAll('.detail *').length"
ROWS_OF_BODY = 100_000


def test_a_body_of_ten_megabytes_is_a_tree_that_opens_branch_by_branch(page: Page, receiver: Receiver):
    rows = [
        {"id": number, "text": "x" * 60, "more": {"at": [number, {}]}} for number in range(ROWS_OF_BODY)
    ]
    body = json.dumps({"model": "gpt-4o", "rows": rows}).encode()
    assert len(body) > 10_000_000
    made = HandMade(b"\x05" * 16, b"\x06" * 16).start()
    made.chat(body)
    made.exit()
    receiver.store.commit(Batch(made.spans, made.facts, {}))
    page.open(f"{receiver.query_endpoint}/?run={made.trace_id.hex()}&step=1&tab=raw", ".detail h3")
    page.wait(f"document.querySelector('.detail').textContent.includes('{len(body)} characters')")
    assert page.run(NODES) < 200
    opened = (
        "[...document.querySelectorAll('.detail details')].find(one => one.innerText.startsWith(%s))"
    )
    for name, children in (("as a tree", 2), ("rows", 100), ("0", 3)):
        branch = opened % json.dumps(name)
        before = page.run(NODES)
        page.run(f"{branch}.open = true")
        page.wait(f"{branch}.querySelectorAll(':scope > .said').length === {children}")
        assert page.run(NODES) - before < 20 * children
    more = f"{opened % json.dumps('rows')}.querySelector(':scope > button')"
    assert page.run(f"{more}.textContent") == f"{ROWS_OF_BODY - 100} more"
    assert page.complaints == []


def test_everything_has_all_spans_whatever_is_collapsed(page: Page, viewed: Receiver):
    page.open(f"{viewed.query_endpoint}/?run=refund-1", ".row")
    page.press("t")
    page.wait("location.search.includes('rows=tree')")
    spans = page.run(ROWS)
    page.press("-")
    page.wait(f"{ROWS} < {spans}")
    page.press("t")
    page.wait(f"location.search.includes('rows=everything') && {ROWS} === {spans}")
    page.press("t")
    page.wait("location.search.includes('rows=steps')")
    assert page.complaints == []


def test_a_person_marks_a_step_and_writes_a_note_with_a_score(page: Page, receiver: Receiver):
    text = "<img src=x onerror=alert(1)> asks twice \u202e"
    notes = "document.querySelectorAll('.notes .said').length"
    page.open(f"{receiver.query_endpoint}/?run=refund-1&step=3", "[name=mark-wrong]")
    page.run("document.querySelector('[name=mark-wrong]').click()")
    page.wait("document.querySelector('[name=mark-wrong]').ariaPressed === 'true'")
    page.run("document.querySelector('[name=write-note]').click()")
    page.wait("document.querySelector('[name=note-text]') !== null")
    for name, typed in (("text", text), ("name", "tone"), ("value", "0.25"), ("author", "ann")):
        page.run(f"""(field => {{
            field.value = {json.dumps(typed)};
            field.dispatchEvent(new Event('input', {{bubbles: true}}));
        }})(document.querySelector('[name=note-{name}]'))""")
    page.wait("!document.querySelector('[name=add-note]').disabled")
    page.run("document.querySelector('[name=add-note]').click()")
    page.wait(f"{notes} === 2")
    page.open(f"{receiver.query_endpoint}/?run=refund-1&step=3", ".notes .said:nth-of-type(3)")
    said = page.run("document.querySelector('.notes').innerText")
    for shown in ("ann", "tone 0.25", "<img src=x", "\\u202e", "wrong"):
        assert shown in said
    [run] = httpx.get(f"{receiver.query_endpoint}/v1/runs", params={"q": "score.tone<0.5"}).json()[
        "runs"
    ]
    assert run["name"] == "refund-1"
    assert violations(page) == []
    page.run("document.querySelector('[name=mark-wrong]').click()")
    page.wait(f"{notes} === 1")
    assert page.complaints == []
