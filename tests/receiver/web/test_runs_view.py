"""The board of runs: sums by time, narrowing, completion, columns, kept queries, marks, deletion."""

import json
import time

import pytest
from support.pages.chromium import Page
from support.tapes.batches import span_of
from support.tapes.handmade import HandMade

from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch

pytestmark = pytest.mark.browser

NAMES = "[...document.querySelectorAll('main > table tbody a')].map(one => one.textContent)"


@pytest.fixture
def board(page: Page, receiver: Receiver) -> Page:
    """The board, with three runs of another agent beside refund-1."""
    call = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "gpt-4o"}
    for number in (1, 2, 3):
        receiver.store.commit(
            Batch([span_of(bytes([number]) * 16, 1, service="my agent", error=number == 1, **call)])
        )
    page.open(f"{receiver.query_endpoint}/", "main > table tbody a")
    page.wait("document.querySelectorAll('.chart canvas').length === 3")
    return page


def typed(page: Page, text: str) -> list[str]:
    """What is offered behind a text."""
    page.run(f"""(field => {{
        field.value = {json.dumps(text)};
        field.dispatchEvent(new Event('input', {{bubbles: true}}));
    }})(document.querySelector('[name=q]'))""")
    page.run("new Promise(done => requestAnimationFrame(() => done(0)))")
    return page.run("[...document.querySelectorAll('#queries option')].map(one => one.value)")


def click(page: Page, selector: str) -> None:
    clicked(page, f"document.querySelector({json.dumps(selector)})")


def clicked(page: Page, element: str) -> None:
    """Click an element in the moment in which it is there: a view may be drawn again at any time."""
    page.wait(f"(one => Boolean(one) && (one.click(), true))({element})")


FACETS = """[...document.querySelectorAll('.facets section')].flatMap(section =>
  [...section.querySelectorAll('.share')].map(
    one => [section.ariaLabel, one.title, one.lastChild.textContent]))"""


def test_counts_of_facets_are_those_of_the_list_they_lead_to(board: Page, receiver: Receiver):
    """Every value of every facet is clicked: as many runs are listed as it says."""
    idle = HandMade(b"\x21" * 16, b"\x22" * 16)
    idle.start().exit()
    receiver.store.commit(Batch(idle.spans, idle.facts, {}))  # a list without a query leaves it out
    while receiver.store.sum_up():
        pass
    board.open(board.run("location.origin") + "/", ".facets .share")
    found = board.run(FACETS)
    assert ["Agent", "my agent", "3"] in found
    assert {name for name, _, _ in found} >= {"Status", "Agent", "Model", "Tool"}
    rows = "document.querySelectorAll('main > table tbody tr').length"
    for name, value, count in found:
        button = (
            f"[...document.querySelectorAll('.facets section[aria-label={name}] .share')]"
            f".find(one => one.title === {json.dumps(value)})"
        )
        clicked(board, button)
        board.wait(f"{button}?.ariaPressed === 'true' && {rows} === {count}")
        clicked(board, button)
        board.wait(f"{button}?.ariaPressed === 'false' && {rows} === 4")
    click(board, '.facets [title="my agent"]')
    board.wait("document.querySelector('.facets [title=\"my agent\"]')?.ariaPressed === 'true'")
    click(board, ".facets [title=refund]")  # takes its place
    board.wait("location.search === '?view=runs&q=agent%3Arefund'")
    assert board.complaints == []


def test_a_time_range_is_typed_and_the_table_behind_the_pictures_says_the_same(board: Page):
    click(board, ".board .wide summary")
    board.wait("document.querySelector('.board tbody tr') !== null")
    rows = board.run(
        "[...document.querySelectorAll('.board tbody tr')].map(one => Number(one.cells[1].textContent))"
    )
    assert sum(rows) == 4
    board.run("""(field => {
        field.value = 'between';
        field.dispatchEvent(new Event('change', {bubbles: true}));
    })(document.querySelector('[name=since]'))""")
    board.wait("document.querySelector('[name=from]') !== null")
    board.run("""(field => {
        field.focus();
        field.value = '2100-01-01T00:00:00';
        field.dispatchEvent(new Event('input', {bubbles: true}));
    })(document.querySelector('[name=from]'))""")
    board.run("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    board.run("document.querySelector('[name=from]').blur()")
    board.wait("document.querySelector('.empty') !== null")
    assert "since%3A2" in board.run("location.search")
    assert board.complaints == []


LAST_BAR = """(() => {
  const canvas = document.querySelector('.chart canvas');
  const pen = canvas.getContext('2d');
  const colour = getComputedStyle(document.documentElement).getPropertyValue('--bad');
  const other = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d');
  other.fillStyle = colour;
  other.fillRect(0, 0, 1, 1);
  const wanted = `${other.getImageData(0, 0, 1, 1).data}`;
  const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let at = 0; at < data.length; at += 4)
    if ((at / 4) % canvas.width > canvas.width * 0.75 && `${data.slice(at, at + 4)}` === wanted) found++;
  return found;
})()"""
"""How many dots of failures there are in the last quarter of the first picture."""


def test_the_last_part_of_time_is_drawn(page: Page, receiver: Receiver):
    """Of five minutes: a run went well in the first, and one failed in the last."""
    made = HandMade(b"\x05" * 16, b"\x06" * 16)
    made.at_ns = time.time_ns() - 5 * 60 * 10**9
    made.start().exit()
    receiver.store.commit(Batch(made.spans, made.facts, {}))
    page.open(f"{receiver.query_endpoint}/", ".chart canvas")
    page.wait(f"{LAST_BAR} > 10")
    assert page.complaints == []


def test_words_are_completed_from_the_language_and_from_the_runs_here(board: Page):
    assert "agent:refund status:" in typed(board, "agent:refund sta")
    typed(board, "agent:")
    board.wait("document.querySelectorAll('#queries option').length === 2")
    assert typed(board, "agent:") == ['agent:"my agent"', "agent:refund"]
    assert board.complaints == []


def test_columns_and_queries_are_kept(board: Page):
    click(board, ".menu summary")
    labels = "[...document.querySelectorAll('.menu label')]"
    board.run(f"{labels}.find(one => one.textContent.includes('Spans')).click()")
    board.wait(
        "[...document.querySelectorAll('main > table th')].some(one => one.textContent === 'Spans')"
    )
    typed(board, "status:failure")
    board.run("document.querySelector('form').requestSubmit()")
    board.wait(f"{NAMES}.length === 2")
    board.wait("document.querySelector('[name=view-name]') !== null")
    board.run("""(field => {
        field.value = 'to look at';
        field.dispatchEvent(new Event('input', {bubbles: true}));
    })(document.querySelector('[name=view-name]'))""")
    click(board, "[name=keep]")
    board.open(board.run("location.origin") + "/", "main > table tbody a")
    assert board.run(
        "[...document.querySelectorAll('main > table th')].some(one => one.textContent === 'Spans')"
    )
    saved = "document.querySelector('[title=\"status:failure\"]')"
    board.wait(f"{saved}?.textContent === 'to look at2'")  # with the number of its runs
    click(board, "[aria-label='forget to look at']")
    board.wait(f"{saved} === null")
    assert board.complaints == []


def test_a_run_is_marked_and_deleted(board: Page):
    board.press("j")
    first = board.run(f"{NAMES}[1]")
    board.wait(f"document.querySelector('.end .quiet').textContent === {json.dumps(first)}")
    click(board, "[name=flagged]")
    board.wait(
        "document.querySelector('main > table tr[aria-selected=true]').textContent.includes('flagged')"
    )
    click(board, "[name=delete]")
    board.wait("document.querySelector('[name=delete]').textContent === 'Delete for good'")
    click(board, "[name=delete]")
    board.wait(f"!{NAMES}.includes({json.dumps(first)})")
    assert board.complaints == []


def test_picked_runs_are_marked_at_once_and_the_marks_are_taken_back(board: Page):
    marked = (
        "[...document.querySelectorAll('[data-column=marks]')].filter(one => one.textContent).length"
    )
    click(board, "[name=pick-all]")
    board.wait("document.querySelector('.actions b')?.textContent.startsWith('4 runs picked')")
    click(board, "[name=flagged]")
    board.wait(f"{marked} === 4")
    board.wait("document.querySelector('.done').textContent.startsWith('Flagged: 4 runs')")
    click(board, "[name=undo]")
    board.wait("document.querySelector('[data-column=marks]') === null")
    click(board, "[name=delete]")
    board.wait("document.querySelector('[name=delete]').textContent === 'Delete 4 runs for good'")
    click(board, "[name=delete]")
    board.wait("document.querySelector('.empty') !== null")
    assert board.complaints == []


def test_a_session_is_a_thread_of_its_runs_in_order(page: Page, receiver: Receiver):
    for number in (1, 2):
        call = {"gen_ai__operation__name": "chat", "gen_ai__conversation__id": "order 81"}
        receiver.store.commit(Batch([span_of(bytes([number]) * 16, 1, service="desk", **call)]))
    page.open(f"{receiver.query_endpoint}/?view=sessions", ".sessions tbody a")
    row = "[...document.querySelector('.sessions tbody tr').cells].map(one => one.textContent)"
    assert page.run(row)[:4] == ["order 81", "desk", "success", "2"]
    click(page, ".sessions tbody a")
    page.wait("document.querySelectorAll('article').length === 2")
    assert page.run(
        "[...document.querySelectorAll('article h2')].map(one => one.textContent.slice(0, 8))"
    ) == ["1 desk-1", "2 desk-2"]
    assert page.complaints == []


def test_sessions_are_listed_by_user_too(page: Page, receiver: Receiver):
    for number, user in ((1, "anna"), (2, "anna"), (3, "ben")):
        call = {"gen_ai__operation__name": "chat", "gen_ai__conversation__id": f"order {number}"}
        call["user__id"] = user
        receiver.store.commit(Batch([span_of(bytes([number]) * 16, 1, service="desk", **call)]))
    page.open(f"{receiver.query_endpoint}/?view=sessions", "[name=by-users]")
    click(page, "[name=by-users]")
    cells = "[one.cells[0].textContent, one.cells[1].textContent]"
    rows = f"[...document.querySelectorAll('.sessions tbody tr')].map(one => {cells})"
    page.wait(f"{rows}.length === 2")
    assert page.run(rows) == [["anna", "2"], ["ben", "1"]]
    click(page, ".sessions tbody a")
    page.wait("document.querySelector('[role=status]')?.textContent === '2 sessions'")
    assert page.complaints == []


ROWS = "document.querySelectorAll('main > table tbody tr:not(.space)')"
FIRST_OF_LIST = f"Number({ROWS}[0].ariaRowIndex)"


def test_a_list_of_many_runs_is_scrolled_to_its_end_and_walked_by_keys(page: Page, receiver: Receiver):
    call = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "gpt-4o"}
    count = 1200  # with refund-1
    made = [span_of(number.to_bytes(16, "big"), 1, **call) for number in range(1, count)]
    receiver.store.commit(Batch(made))
    while receiver.store.sum_up():
        pass
    page.open(f"{receiver.query_endpoint}/?q=model:gpt-4o", "main > table tbody a")
    height = f"{ROWS}[1].getBoundingClientRect().top - {ROWS}[0].getBoundingClientRect().top"
    assert page.run(height) == 31  # as places in the list are computed
    seen = "document.querySelector('main').scrollTop = 1e9, document.querySelector('main > table')"
    page.wait(f"({seen}).ariaRowCount === '{count + 1}'")
    page.wait(f"({seen}).ariaRowCount === '{count + 1}' && {FIRST_OF_LIST} > {count - 100}")
    assert page.run(f"{ROWS}.length") < 100
    page.press("G")
    page.wait("document.querySelector('tr[aria-selected=true]')?.ariaRowIndex === '" + f"{count + 1}'")
    page.press("g")
    page.wait("document.querySelector('tr[aria-selected=true]')?.ariaRowIndex === '2'")
    assert page.complaints == []


def test_a_column_is_made_wider_and_stays_so(board: Page):
    wide = "document.querySelector('[name=sort-cost]').closest('th').offsetWidth"
    grip = "document.querySelector('[aria-label=\"width of Cost\"]')"
    before = board.run(wide)
    board.run(f"{grip}.focus()")
    for _ in range(3):
        board.run(
            f"{grip}.dispatchEvent(new KeyboardEvent('keydown', {{key: 'ArrowRight', bubbles: true}}))"
        )
        board.run("new Promise(done => requestAnimationFrame(() => done(0)))")
    board.wait(f"{wide} === {before} + 48")
    board.open(board.run("location.origin") + "/", "main > table tbody a")
    board.wait(f"{wide} === {before} + 48")
    board.run(f"{grip}.dispatchEvent(new MouseEvent('dblclick', {{bubbles: true}}))")
    board.wait(f"{wide} === {before}")
    assert board.complaints == []
