"""The pages in a real browser: each view, hostile content, tokens, sums, keys."""

import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.batches import span_of
from support.cli import refund, store_run

from playhead_receiver.configuration import Access, Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.store import Batch

from .chromium import Page, chromium
from .views import PICTURES, VIEWS

pytestmark = pytest.mark.browser

HOSTILE = [
    "<img src=http://203.0.113.9/x.png onerror=alert(1)>",
    "<svg onload=alert(1)><script>alert(1)</script></svg>",
    "![a](http://203.0.113.9/m.png) [b](javascript:alert(1))",
    "\u202eright to left\u2066",
    "\x1b[31mred\x07\x00",
    '"><iframe src=//203.0.113.9></iframe>',
    "${alert(1)} {{constructor.constructor('alert(1)')()}}",
]


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_shows_itself(page: Page, receiver: Receiver, view: str):
    address, until = VIEWS[view]
    page.open(receiver.query_endpoint + address, until)
    page.photograph(PICTURES / f"{view}.png")
    assert page.complaints == []
    assert {one.split("/")[2] for one in page.requested} == {receiver.query_endpoint.split("/")[2]}


def test_what_the_page_sums_up_is_what_the_api_says(page: Page, receiver: Receiver):
    page.open(receiver.query_endpoint + "/?run=refund-1&rows=tree", ".row")
    [run] = httpx.get(f"{receiver.query_endpoint}/v1/runs").json()["runs"]
    spans = httpx.get(f"{receiver.query_endpoint}/v1/runs/refund-1?limit=1000").json()["spans"]
    said = page.text
    assert f"{run['steps']} steps, {run['spans']} spans" in said
    assert f"{run['input_tokens']}→{run['output_tokens']} tokens" in said
    assert page.run("Number(document.querySelector('.rows').ariaRowCount)") == len(spans)
    levels = page.run("[...document.querySelectorAll('.row')].map(row => Number(row.ariaLevel))")
    assert levels == [one["depth"] + 1 for one in spans]


def test_a_run_is_walked_through_by_keys_alone(page: Page, receiver: Receiver):
    page.open(f"{receiver.query_endpoint}/", "main tbody a")
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
    page.wait("location.search.includes('view=playhead')")
    page.press("ArrowRight")
    page.wait("location.search.includes('after=2')")
    page.press("?")
    page.wait("document.querySelector('dialog').open")
    page.press("?")
    page.press("q")
    page.wait("location.search.includes('view=runs')")
    assert page.complaints == []


def test_hostile_content_is_text_in_every_view(page: Page, tmp_path: Path):
    with Receiver(
        tmp_path / "data", Configuration(Addresses(http_port=0, grpc_port=None, query_port=0))
    ) as receiver:
        trace = b"\x07" * 16
        spans = [span_of(trace, 1, name=HOSTILE[0], service=HOSTILE[1])]
        for number, text in enumerate(HOSTILE, 2):
            said: Any = httpx.Request("POST", "http://a", json=[_message(text)]).content.decode()
            spans.append(
                span_of(
                    trace,
                    number,
                    parent=1,
                    name=text,
                    error=True,
                    gen_ai__operation__name="chat",
                    gen_ai__request__model=text,
                    gen_ai__input__messages=said,
                    gen_ai__output__messages=said,
                )
            )
        receiver.store.commit(Batch(spans))
        while receiver.store.index():
            pass
        before = len(page.requested)
        for view, (address, _) in VIEWS.items():
            at = (
                address.replace("refund-1", trace.hex())
                .replace("%22order%2081%22", "left")
                .replace("after=11", "after=1")
            )
            page.open(receiver.query_endpoint + at)
            page.wait("document.querySelector('[role=status]')?.textContent !== 'loading'")
            page.wait("!document.body.innerText.includes('loading')")
            assert (
                page.run(
                    "document.querySelectorAll('main img, main svg, main iframe, main script').length"
                )
                == 0
            )
            assert page.complaints == [], view
        page.open(f"{receiver.query_endpoint}/?view=transcript&run={trace.hex()}", "article")
        said = page.text
        for text in (HOSTILE[0], HOSTILE[1], HOSTILE[2], "\\u202eright to left", "\\u001b[31mred"):
            assert text in said
        asked = {one.split("/")[2] for one in page.requested[before:]}
        assert asked == {receiver.query_endpoint.split("/")[2]}


def _message(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"type": "text", "content": text}], "finish_reason": "stop"}


def test_a_token_is_taken_from_the_fragment_and_leaves_the_address(page: Page, tmp_path: Path):
    store_run(tmp_path / "data", refund())
    addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
    with Receiver(
        tmp_path / "data", Configuration(addresses, Access(token="s3cret", guarded=True))
    ) as receiver:
        page.open(f"{receiver.query_endpoint}/", "[role=alert]")
        assert "token" in page.text
        assert "refund-1" not in page.text
        page.open("about:blank", "body")
        page.open(f"{receiver.query_endpoint}/#token=s3cret", "main tbody a")
        assert page.run("location.href") == f"{receiver.query_endpoint}/"
        page.open(f"{receiver.query_endpoint}/?run=refund-1", ".row")


@pytest.mark.timeout(600)
def test_a_run_of_fifty_thousand_spans_is_shown_at_once_and_scrolls(tmp_path: Path):
    many = 50_000
    with Receiver(
        tmp_path / "data", Configuration(Addresses(http_port=0, grpc_port=None, query_port=0))
    ) as receiver:
        trace = b"\x05" * 16
        for begin in range(1, many, 5000):
            spans = [
                span_of(
                    trace, one, parent=one // 8, name=f"call {one % 40}", gen_ai__operation__name="chat"
                )
                for one in range(begin, begin + 5000)
            ]
            receiver.store.commit(Batch(spans))
        began = time.perf_counter()
        answer = httpx.get(
            f"{receiver.query_endpoint}/v1/runs/{trace.hex()}/outline",
            headers={"accept-encoding": "gzip"},
            timeout=60,
        )
        figures: dict[str, float] = {"outline_s": time.perf_counter() - began}
        figures["outline_mb"] = answer.num_bytes_downloaded / 1e6
        with chromium(tmp_path / "profile") as page:
            page.open(f"{receiver.query_endpoint}/?run={trace.hex()}&rows=tree", ".row")
            figures["first_rows_ms"] = page.run("performance.now()")
            page.wait("Number(document.querySelector('.rows').ariaRowCount) > 10_000")
            figures["all_rows_ms"] = page.run("performance.now()")
            page.ask("HeapProfiler.collectGarbage")
            figures["heap_mb"] = page.run("performance.memory.usedJSHeapSize") / 1e6
            figures["frame_p99_ms"] = page.run(SCROLLING)
            figures["key_p95_ms"] = page.run(KEYS)
            figures["collapse_all_ms"] = page.run(COLLAPSING)
            assert page.run("Number(document.querySelector('.rows').ariaRowCount)") == 7 + 7 * 8
            assert page.complaints == []
        PICTURES.parent.mkdir(exist_ok=True)
        (PICTURES.parent / "pages.json").write_text(json.dumps(figures))
        assert figures["outline_mb"] < 1.5
        assert figures["heap_mb"] < 150


SCROLLING = """(async () => {
  const box = document.querySelector('.rows');
  const frames = [];
  let before = await new Promise(requestAnimationFrame);
  for (let at = 0; at < 180; at++) {
    box.scrollTop += 1777;
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - before);
    before = now;
  }
  return frames.sort((one, other) => one - other)[Math.floor(frames.length * 0.99)];
})()"""
KEYS = """(async () => {
  const box = document.querySelector('.rows');
  box.focus();
  const took = [];
  for (let at = 0; at < 40; at++) {
    const before = location.search;
    const began = performance.now();
    box.dispatchEvent(new KeyboardEvent('keydown', { key: at % 4 ? 'k' : '+', bubbles: true }));
    await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    took.push(performance.now() - began);
    if (location.search === before) throw new Error('the key did nothing');
  }
  return took.sort((one, other) => one - other)[Math.floor(took.length * 0.95)];
})()"""
COLLAPSING = """(async () => {
  const began = performance.now();
  [...document.querySelectorAll('button')].find(one => one.textContent === 'collapse all').click();
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - began;
})()"""
