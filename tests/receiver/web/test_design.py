"""What a person sees at once: overview, previews, axis, sorting, picking, small screens, schemes."""

from collections.abc import Iterator

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.pages.chromium import Page
from support.pages.views import PICTURES
from support.tapes.handmade import HandMade

from playhead_core.otlp import set_attributes
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch, StoredSpan
from playhead_semconv import attributes as a
from playhead_semconv import events as e

from .conftest import with_refund
from .test_accessible import paint, violations

pytestmark = pytest.mark.browser

RAISED = {
    "exception.type": "ShopError",
    "exception.stacktrace": (
        "Traceback (most recent call last):\n"
        '  File "/srv/agent.py", line 12, in main\n    refund(81)\n'
        '  File "/srv/lib/site-packages/shop/client.py", line 90, in refund\n    raise ShopError(text)\n'
        "shop.ShopError: order 81 is refunded already\n"
    ),
}
SCORED = {
    "gen_ai.evaluation.name": "helpfulness",
    "gen_ai.evaluation.score.value": 0.2,
    "gen_ai.evaluation.score.label": "bad",
    "gen_ai.evaluation.explanation": "the refund was refused twice",
}
WIDTH = "document.documentElement.scrollWidth"


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    """One for all tests here: they store nothing but the two runs below."""
    with with_refund(tmp_path_factory.mktemp("design") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def success(receiver: Receiver) -> str:
    """The trace id of a run that ended well after a retried request, and took long to start."""
    made = HandMade(b"\x05" * 16, b"\x06" * 16).start()
    made.wait(5)
    first = made.begin(
        "GET", kind=3, **{a.HTTP_REQUEST_METHOD: "GET", a.URL_FULL: "http://shop/orders/81"}
    )
    made.finish(first, error="429")
    made.chat()
    made.exit()
    receiver.store.commit(Batch(made.spans, made.facts, {}))
    return made.trace_id.hex()


@pytest.fixture(scope="module")
def failure(receiver: Receiver) -> str:
    """The trace id of a run that a tool ended, with a traceback and a score."""
    made = HandMade(b"\x07" * 16, b"\x08" * 16).start()
    made.chat()
    made.tool("refund", '{"order": 81}', error="ShopError: order 81 is refunded already")
    last = made.spans.pop()
    envelope = ResourceSpans.FromString(last.otlp)
    (span,) = envelope.scope_spans[0].spans
    for name, attributes in (("exception", RAISED), ("gen_ai.evaluation.result", SCORED)):
        event = span.events.add(name=name, time_unix_nano=span.end_time_unix_nano)
        set_attributes(event.attributes, attributes)
    made.spans.append(StoredSpan(last.trace_id, last.span_id, envelope.SerializeToString()))
    traffic = {
        a.PLAYHEAD_EFFECT_KIND: "socket",
        a.PLAYHEAD_EFFECT_TARGET: "shop.example:443",
        a.PLAYHEAD_EFFECT_LIBRARY: "tornado",
    }
    made.fact(e.PLAYHEAD_EFFECT, attributes=traffic)
    made.exit(1)
    receiver.store.commit(Batch(made.spans, made.facts, {}))
    return made.trace_id.hex()


def test_a_failure_opens_at_its_step_and_the_overview_says_why(
    page: Page, receiver: Receiver, failure: str
):
    page.open(f"{receiver.query_endpoint}/?run={failure}", ".row[aria-selected=true]")
    assert "refund" in page.run("document.querySelector('.row[aria-selected=true]').textContent")
    page.wait("document.querySelector('.detail').innerText.includes('the refund was refused twice')")
    assert "api error" in page.run("document.querySelector('main.run > .bar').innerText")
    names = "[...document.querySelectorAll('.over button')].map(one => one.ariaLabel)"
    assert {"copy a link to what is shown", "download this run"} <= set(page.run(names))
    page.open(f"{receiver.query_endpoint}/?run={failure}&step=overview", ".overview")
    for text in ("Failures (1)", "Scores (1)", "helpfulness", "order 81 is refunded already"):
        page.wait(f"document.querySelector('.overview').innerText.includes('{text}')")
    page.wait("document.querySelector('.overview').innerText.includes('agent.py')")
    page.wait("document.querySelector('.overview').innerText.includes('tornado with shop.example:443')")
    assert "site-packages" not in page.run("document.querySelector('.overview').innerText")
    assert page.complaints == []


def test_the_links_above_a_run_have_room(page: Page, receiver: Receiver, failure: str):
    page.open(f"{receiver.query_endpoint}/?run={failure}", ".of-run")
    for width in (1280, 1100, 700):
        paint(page, "light", width)
        navs = "[...document.querySelectorAll('header nav, header')]"
        assert page.run(f"{navs}.map(one => one.scrollWidth - one.clientWidth)") == [0, 0, 0], width


def test_a_success_opens_at_its_overview_and_not_at_a_retried_attempt(
    page: Page, receiver: Receiver, success: str
):
    page.open(f"{receiver.query_endpoint}/?run={success}", ".overview")
    headings = "[...document.querySelectorAll('.overview h2')].map(one => one.textContent)"
    assert {"Input", "Output", "Run"} <= set(page.run(headings))
    page.wait("document.querySelector('.overview .facts').innerText.includes('Exit status')")
    facts = page.run("document.querySelector('.overview .facts').innerText")
    for name in ("Status", "Started", "Duration", "Agent", "Trace id", success):
        assert name in facts
    labels = "[...document.querySelectorAll('.over button, .over a')].map(one => one.textContent)"
    assert {"Overview", "Replay", "Fork", "Save as test", "Compare"} <= set(page.run(labels))
    assert page.complaints == []


def test_a_row_names_the_path_and_the_axis_begins_where_the_work_does(
    page: Page, receiver: Receiver, success: str
):
    page.open(f"{receiver.query_endpoint}/?run={success}&rows=everything", ".row")
    page.wait("document.querySelector('.rows').textContent.includes('/orders/81')")
    assert page.run("document.querySelectorAll('.row svg.lucide').length") > 2
    assert page.run("document.querySelectorAll('.ticks span').length") > 2
    assert "whole run" in page.run("document.querySelector('.ticks-note').textContent")
    page.run("document.querySelector('.ticks-note button').click()")
    page.wait("document.querySelector('.ticks-note').textContent === ''")
    page.run("document.querySelector('.row').click()")
    page.wait("document.querySelector('.row[aria-selected=true]') !== null")
    assert page.complaints == []


def test_tabs_are_words_and_a_body_is_formatted_with_its_bytes_a_click_away(
    page: Page, receiver: Receiver, success: str
):
    page.open(f"{receiver.query_endpoint}/?run={success}&step=2&tab=raw", ".detail .small")
    tabs = "[...document.querySelectorAll('.tabs button')].map(one => one.textContent)"
    assert page.run(tabs) == ["Messages", "Raw", "Attributes", "Replay & fork", "Effects", "Logs"]
    lines = "document.querySelector('.detail pre').textContent.split('\\n').length"
    assert page.run(lines) == 3
    page.run("document.querySelectorAll('.detail .small button')[1].click()")
    page.wait(f"{lines} === 1")
    page.run("document.querySelectorAll('.tabs button')[5].click()")
    page.wait("document.querySelector('.detail').innerText.includes('No log records')")
    assert page.complaints == []


def test_a_step_without_messages_shows_its_call_or_its_request(page: Page, receiver: Receiver):
    detail = "document.querySelector('.detail').innerText"
    page.open(f"{receiver.query_endpoint}/?run=refund-1&step=2", ".detail .said.tool")
    said = page.run("document.querySelector('.detail .said.tool').innerText")
    assert "search called" in said and "order 81" in said
    page.open(f"{receiver.query_endpoint}/?run=refund-1&rows=everything", ".row")
    post = "[...document.querySelectorAll('.row')].find(one => /POST/.test(one.textContent))"
    page.wait(f"(one => Boolean(one) && (one.click(), true))({post})")
    page.wait(f"{detail}.includes('request headers') && {detail}.includes('Verbatim')")
    assert "no messages are recorded" not in page.run(detail)
    assert page.complaints == []


def test_runs_are_sorted_and_compared_by_clicks(
    page: Page, receiver: Receiver, success: str, failure: str
):
    heads = "[...document.querySelectorAll('main > table th')].map(one => one.textContent)"
    page.open(f"{receiver.query_endpoint}/", "main > table tbody a")
    found = page.run(heads)
    assert {"Status", "Started", "Duration"} <= set(found)
    assert not {"Marks", "Forked from"} & set(found)
    page.run("document.querySelector('[name=sort-steps]').click()")
    page.wait("document.querySelector('th[aria-sort]')?.textContent === 'Steps'")
    page.wait("document.querySelector('th[aria-sort]')?.ariaSort === 'descending'")
    page.wait("document.querySelector('[name=sort-steps]') !== null")
    page.run("document.querySelector('[name=sort-steps]').click()")
    page.wait("document.querySelector('th[aria-sort]')?.ariaSort === 'ascending'")
    page.wait("document.querySelectorAll('td.name input').length === 3")
    page.run("document.querySelectorAll('td.name input').forEach(one => one.click())")
    page.wait("document.querySelector('button.main')?.textContent.startsWith('Compare ')")
    page.run("document.querySelector('button.main').click()")
    page.wait("location.search.includes('view=compare')")
    assert page.complaints == []


def test_pictures_follow_the_colour_scheme(page: Page, receiver: Receiver):
    """The pixels of bars and of the minimap: as they are in a page that is opened in that scheme."""
    drawn = """[...document.querySelectorAll('.rows canvas, .minimap')].map(one => one.toDataURL())"""
    address = f"{receiver.query_endpoint}/?run=refund-1&step=2"
    page.open(address, ".detail .said")
    paint(page, "dark")
    page.open(address, ".detail .said")
    dark = page.run(drawn)
    paint(page, "light")
    page.wait(f"{drawn}.every((one, at) => one !== {dark}[at])")
    paint(page, "dark")
    page.wait(f"{drawn}.every((one, at) => one === {dark}[at])")


def test_an_empty_list_says_the_next_step(page: Page, receiver: Receiver):
    page.open(f"{receiver.query_endpoint}/?q=agent:nothing", ".empty")
    assert "No run matches" in page.text
    page.run("document.querySelector('.empty button').click()")
    page.wait("document.querySelector('main > table tbody a') !== null")


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("runs", ""),
        ("run", "run=refund-1"),
        ("overview", "run=refund-1&step=overview"),
        ("failure", "run={failure}"),
        ("failure-overview", "run={failure}&step=overview"),
        ("findings", "run={failure}&step=findings"),
    ],
)
def test_a_view_fits_the_screen(page: Page, receiver: Receiver, failure: str, name: str, query: str):
    """In both widths and schemes. `test_accessible` looks at the wide ones with axe."""
    page.open(f"{receiver.query_endpoint}/?{query.format(failure=failure)}", "main tbody a, .row")
    page.wait("!document.body.innerText.includes('loading')")
    for width in (1400, 700):
        for scheme in ("light", "dark"):
            paint(page, scheme, width)
            page.wait(f"{WIDTH} <= {width}")
            page.photograph(PICTURES / f"{name}-{width}-{scheme}.png")
    assert violations(page) == []
    assert page.complaints == []
