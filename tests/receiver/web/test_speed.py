"""Large runs on the pages: all of them is reached. How fast goes to logs/pages.json."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from support.pages.chromium import Chromium, Page
from support.pages.large_runs import long_talk, many_runs, many_spans
from support.pages.measures import (
    COLLAPSING,
    EVERYTHING,
    FRAMES,
    KEYS,
    SCROLLING,
    ZOOMING,
    first_seen,
    heap_mb,
    note,
    share,
    work_ms,
)
from support.pages.serving import served

from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.storage import open_store

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

ALL = pytest.mark.acceptance
ROWS = "Number(document.querySelector('.rows').ariaRowCount)"


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
    with Receiver(tmp_path / "data", Configuration(addresses)) as running:
        yield running


def outline(endpoint: str, run: str) -> dict[str, float]:
    began = time.perf_counter()
    answer = httpx.get(
        f"{endpoint}/v1/runs/{run}/outline",
        headers={"accept-encoding": "gzip"},
        timeout=120,
    )
    took = time.perf_counter() - began
    assert answer.status_code == 200
    return {"outline_ms": took * 1000, "outline_mb": answer.num_bytes_downloaded / 1e6}


def walked(page: Page) -> dict[str, float]:
    """Scroll, zoom, press keys: the slowest of what took the clock, and what took the processor."""
    figures: dict[str, float] = {}
    for what, script, part in (
        ("scroll", SCROLLING, 0.99),
        ("zoom", ZOOMING, 0.99),
        ("key", KEYS, 0.95),
    ):
        before = work_ms(page)
        took = page.run(script)
        figures[f"{what}_p{part * 100:.0f}_ms"] = share(took, part)
        figures[f"{what}_work_ms"] = (work_ms(page) - before) / len(took)
        assert page.run("document.querySelectorAll('.row').length") > 20
        page.press("0")
    return figures


def in_time(page: Page, count: int) -> dict[str, float]:
    """All rows in the order in which they began: what it takes to put them so, and to scroll them."""
    before = work_ms(page)
    figures = {"everything_ms": page.run(EVERYTHING), "everything_work_ms": work_ms(page) - before}
    assert page.run(ROWS) == count
    figures["everything_scroll_p99_ms"] = share(page.run(SCROLLING), 0.99)
    assert page.run("document.querySelectorAll('.row').length") > 20
    return figures


@pytest.mark.parametrize("count", [5_000, pytest.param(50_000, marks=ALL)])
def test_a_run_of_many_spans(browser: Chromium, page: Page, tmp_path: Path, count: int):
    with closing(open_store(tmp_path)) as store:
        run = many_spans(store, count)
    with served(tmp_path) as endpoint:
        look_at(browser, page, endpoint, run, count)


def look_at(browser: Chromium, page: Page, endpoint: str, run: str, count: int) -> None:
    address = f"{endpoint}/?run={run}&rows=tree"
    figures = first_seen(browser, address, ".row")
    figures |= outline(endpoint, run)
    page.open(address, ".row")
    page.wait(f"{ROWS} === {count}")
    figures["all_rows_ms"] = page.run("performance.now()")
    figures["heap_mb"] = heap_mb(page)
    figures |= walked(page)
    figures["collapse_all_ms"] = page.run(COLLAPSING)
    assert page.run(ROWS) == 1 + 8
    figures |= in_time(page, count)
    for part in ("overview", "findings"):
        seen = first_seen(browser, f"{address}&step={part}", f".{part} .card td")
        figures[f"{part}_ms"] = seen["first_rows_ms"]
    note(f"{count} spans", figures)
    assert page.complaints == []
    assert figures["outline_mb"] < 1.5
    assert figures["heap_mb"] < 150


@pytest.mark.parametrize("calls", [200, pytest.param(5_000, marks=ALL)])
def test_a_run_of_calls_with_growing_histories(
    browser: Chromium, page: Page, receiver: Receiver, calls: int
):
    run = long_talk(receiver.store, calls)
    address = f"{receiver.query_endpoint}/?run={run}"
    figures = first_seen(browser, address, ".row")
    page.open(f"{address}&step=end", ".said")
    figures["last_step_ms"] = page.run("performance.now()")
    earlier = "[...document.querySelectorAll('button')].find(one => one.textContent.includes('earlier'))"
    assert page.run(f"{earlier}.textContent") == f"{2 * calls - 1 - 50} earlier messages"
    figures["heap_mb"] = heap_mb(page)
    page.press("t")
    page.wait(f"{ROWS} === {calls + 1}")
    figures |= walked(page)
    assert page.complaints == []
    assert figures["heap_mb"] < 150
    transcript = f"{receiver.query_endpoint}/?view=transcript&run={run}"
    said = first_seen(browser, transcript, "article")
    figures["transcript_ms"] = said["first_rows_ms"]
    page.open(transcript, "article")
    page.wait(f"document.querySelectorAll('article').length === {2 * calls}")
    figures["whole_transcript_ms"] = page.run("performance.now()")
    note(f"{calls} calls with growing histories", figures)
    assert page.complaints == []


@pytest.mark.parametrize(("runs", "calls"), [(50, 10), pytest.param(10_000, 100, marks=ALL)])
def test_the_list_of_a_store_of_many_spans(
    browser: Chromium, page: Page, receiver: Receiver, runs: int, calls: int
):
    many_runs(receiver.store, runs, calls)
    address = f"{receiver.query_endpoint}/"
    seen = [first_seen(browser, address, "main > table tbody a") for _ in range(5)]
    figures = {name: share([one[name] for one in seen], 0.5) for name in seen[0]}
    page.open(address, "main > table tbody a")
    for what, until in (("facets", ".facets .share"), ("charts", ".board .chart canvas")):
        page.wait(f"document.querySelector({until!r}) !== null")
        figures[f"{what}_ms"] = page.run("performance.now()")
    end = "document.querySelector('main').scrollTop = 1e9, document.querySelector('main > table')"
    page.wait(f"({end}).ariaRowCount === '{runs + 1}'")
    figures["whole_list_ms"] = page.run("performance.now()")
    figures["heap_mb"] = heap_mb(page)
    scrolled = f"{FRAMES}(180, at => {{ document.querySelector('main').scrollTop = at * 1777; }})"
    figures["scroll_p99_ms"] = share(page.run(scrolled), 0.99)
    assert page.run("document.querySelectorAll('main > table tbody tr').length") <= 300
    note(f"list of {runs} runs, {runs * calls} spans", figures)
    assert page.complaints == []


@pytest.mark.acceptance
def test_a_million_rows_are_scrolled(browser: Chromium, page: Page, receiver: Receiver):
    count = 1_000_000
    run = many_spans(receiver.store, count)
    address = f"{receiver.query_endpoint}/?run={run}&rows=tree"
    figures = first_seen(browser, address, ".row")
    figures |= outline(receiver.query_endpoint, run)
    page.open(address, ".row")
    page.wait(f"{ROWS} === {count}")
    figures["all_rows_ms"] = page.run("performance.now()")
    figures["heap_mb"] = heap_mb(page)
    figures |= walked(page)
    page.press("G")
    last = f"document.querySelector('.row[aria-rowindex=\"{count}\"]')"
    page.wait(f"{last} !== null")
    assert page.run(f"{last}.textContent").strip()
    figures |= in_time(page, count)
    note("1000000 rows", figures)
    assert page.complaints == []
