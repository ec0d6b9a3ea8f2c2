"""How fast the pages are. Times go to logs/pages.json."""

import json
import time
from pathlib import Path

import httpx
import pytest
from support.batches import span_of

from playhead_receiver.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.store import Batch

from .chromium import Chromium
from .views import PICTURES

pytestmark = pytest.mark.browser


@pytest.mark.timeout(600)
def test_a_run_of_fifty_thousand_spans_is_shown_at_once_and_scrolls(tmp_path: Path, browser: Chromium):
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
        with browser.tab() as page:
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
