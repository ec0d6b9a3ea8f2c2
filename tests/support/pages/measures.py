"""What is measured of pages, by scripts that run in them. Times are in ms, from the page's own clock."""

from __future__ import annotations

import json

from support.pages.chromium import Chromium, Page
from support.pages.views import PICTURES

FIGURES = PICTURES.parent / "pages.json"


def note(what: str, figures: dict[str, float]) -> None:
    """Keep figures in logs/pages.json, beside those of other measurements."""
    known = json.loads(FIGURES.read_text("utf-8")) if FIGURES.exists() else {}
    FIGURES.parent.mkdir(exist_ok=True)
    rounded = {name: round(value, 3) for name, value in figures.items()}
    FIGURES.write_text(json.dumps({**known, what: rounded}, indent=1) + "\n", "utf-8")


def share(of: list[float], part: float) -> float:
    """The value below which this part of all lies."""
    ordered = sorted(of)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def first_seen(browser: Chromium, url: str, selector: str) -> dict[str, float]:
    """When a page that is opened anew paints first, and when it shows an element."""
    with browser.tab() as page:
        page.ask("Page.addScriptToEvaluateOnNewDocument", source=SEEN % json.dumps(selector))
        page.open(url, selector)
        page.wait("window.painted > 0 && window.seen > 0")
        return {
            "first_paint_ms": page.run("window.painted"),
            "first_rows_ms": page.run("window.seen"),
            "first_rows_work_ms": work_ms(page),
            "loaded_kb": page.run(LOADED) / 1000,
        }


def heap_mb(page: Page) -> float:
    """What a page keeps: objects, typed arrays, and elements."""
    page.ask("HeapProfiler.collectGarbage")
    used = page.ask("Runtime.getHeapUsage")
    return sum(used[name] for name in ("usedSize", "embedderHeapUsedSize", "backingStorageSize")) / 1e6


def work_ms(page: Page) -> float:
    """Processor time that the thread of a page has taken: what a busy machine does not change."""
    metrics = {one["name"]: one["value"] for one in page.ask("Performance.getMetrics")["metrics"]}
    return metrics["ThreadTime"] * 1000


SEEN = """
const now = () => performance.now();
new PerformanceObserver(list => {
  for (const one of list.getEntries())
    if (one.name === 'first-contentful-paint') window.painted = one.startTime;
}).observe({type: 'paint', buffered: true});
const watch = new MutationObserver(() => {
  if (!document.querySelector(%s)) return;
  watch.disconnect();
  requestAnimationFrame(() => setTimeout(() => { window.seen = now(); }));
});
watch.observe(document, {subtree: true, childList: true});
"""

LOADED = """['navigation', 'resource'].flatMap(kind => performance.getEntriesByType(kind))
  .reduce((sum, one) => sum + one.transferSize, 0)"""
"""Bytes that came over the network until now: scripts, styles, and answers."""

FRAMES = """(async (count, act) => {
  const frames = [];
  let before = await new Promise(requestAnimationFrame);
  for (let at = 0; at < count; at++) {
    act(at);
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - before);
    before = now;
  }
  return frames;
})"""
SCROLLING = f"{FRAMES}(180, () => {{ document.querySelector('.rows').scrollTop += 1777; }})"
ZOOMING = (
    f"{FRAMES}(120, at => document.querySelector('.rows').dispatchEvent(new KeyboardEvent("
    "'keydown', {key: at % 12 ? '+' : '0', bubbles: true})))"
)
"""Times of frames."""

KEYS = """(async () => {
  const box = document.querySelector('.rows');
  box.focus();
  const took = [];
  for (let at = 0; at < 40; at++) {
    const before = location.search;
    const began = performance.now();
    box.dispatchEvent(new KeyboardEvent('keydown', {key: 'kk+0'[at % 4], bubbles: true}));
    await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    took.push(performance.now() - began);
    if (location.search === before) throw new Error('the key did nothing');
  }
  return took;
})()"""
"""From each of many keys to the end of the frame after it."""

PRESSING = """(async name => {
  const began = performance.now();
  [...document.querySelectorAll('button')].find(one => one.textContent === name).click();
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - began;
})"""
COLLAPSING = f"{PRESSING}('collapse all')"
EVERYTHING = f"{PRESSING}('all spans')"
"""From a click to the end of the frame after it."""
