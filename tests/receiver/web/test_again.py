"""A recorded program from the pages: replayed, forked with a change, and the whole way by keyboard."""

import json
from collections.abc import Iterator

import pytest
from support.outside.executing import Executing, executing
from support.pages.chromium import Chromium, Page
from support.pages.keyboard import reach, write

from .test_accessible import violations

pytestmark = pytest.mark.browser

MESSAGE = "document.querySelector('textarea[name=\"messages.0.content\"]')"
SELECTED = "document.querySelector('.row[aria-selected=true]')"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Executing]:
    with executing(tmp_path_factory.mktemp("executing")) as made:
        script = made.home.folder / "agent.py"
        assert made.home.playhead("record", script).returncode == 0
        with made.asking(made.key) as api:
            while not api.get("/v1/search", params={"q": "second"}).json()["hits"]:
                pass
        yield made


@pytest.fixture
def page(browser: Chromium, stage: Executing) -> Iterator[Page]:
    """A page with the token that `playhead open` brings along."""
    with browser.tab() as opened:
        opened.open(f"{stage.receiver.query_endpoint}/#token={stage.key}", "main tbody a")
        yield opened


def ended_well(page: Page, stage: Executing) -> None:
    """Wait until the rerun on the page has ended."""
    page.wait("document.querySelector('.rerun [role=status]')?.textContent.startsWith('ended')")
    with stage.asking(stage.key) as api:
        last = api.get("/v1/reruns").json()["reruns"][0]
        assert last["exit_code"] == 0, api.get(f"/v1/reruns/{last['id']}").json()


def test_a_replay_is_drawn_into_the_steps(page: Page, stage: Executing):
    page.open(f"{stage.receiver.query_endpoint}/?run=agent-1", "[title^='execute the program']")
    page.run("document.querySelector('[name=replay-run]').click()")
    page.wait("location.search.includes('act=replay') && location.search.includes('rerun=')")
    page.wait("document.querySelector('.rerun [role=status]')?.textContent === 'identical'")
    tags = "[...document.querySelectorAll('.row .tag')].map(one => one.textContent).join()"
    page.wait(f"{tags} === '= exact,= exact'")  # the last two steps are folded
    page.run("document.querySelector('.rerun summary').click()")
    page.wait("document.querySelector('.rerun details').innerText.includes('stdout same')")
    assert violations(page) == []
    assert page.complaints == []


def test_what_is_typed_in_the_form_reaches_the_fork_as_text(page: Page, stage: Executing):
    asked = len(stage.provider.requests)
    typed = "<img src=x onerror=alert(1)> @/etc/passwd $(id) \u202e"
    page.open(f"{stage.receiver.query_endpoint}/?run=agent-1&step=3", "[name=fork-run]")
    page.run("document.querySelector('[name=fork-run]').click()")
    page.wait(f"{MESSAGE} !== null && document.querySelector('[name=fork]') !== null")
    assert page.run("document.querySelector('[name=replay]')") is None
    assert violations(page) == []
    page.run(f"""(field => {{
        field.value = {json.dumps(typed)};
        field.dispatchEvent(new Event('input', {{bubbles: true}}));
    }})({MESSAGE})""")
    page.wait("document.querySelector('.detail ins') !== null")
    page.run("document.querySelector('[name=fork]').click()")
    ended_well(page, stage)
    page.wait(f"!location.search.includes('run=agent-1&') && {SELECTED} !== null")
    page.wait("document.querySelectorAll('.side-by-side .metrics thead th').length === 2")
    sent = [one.json["messages"][0]["content"] for one in stage.provider.requests[asked:]]
    assert sent == [typed]
    assert page.run("document.querySelectorAll('main img').length") == 0
    page.run("history.back()")
    page.wait("location.search.includes('run=agent-1&')")
    assert page.complaints == []


def test_who_may_not_is_shown_the_commands_alone(browser: Chromium, stage: Executing):
    with browser.tab() as page:
        at = f"{stage.receiver.query_endpoint}/?run=agent-1&step=2&tab=again"
        page.open(at, ".detail .command")
        page.wait("document.body.innerText.includes('open the page with playhead open')")
        assert page.run("document.querySelectorAll('[name=fork], [name=replay]').length") == 0
        assert "playhead fork agent-1:2" in page.text


def test_the_whole_way_by_keyboard_alone(page: Page, stage: Executing):
    """Record (the fixture has), find, step, transcript, compare, fork."""
    asked = len(stage.provider.requests)
    reach(page, "nav a[href*='view=find']")
    page.press("Enter")
    page.wait("document.querySelector('main input[name=q]') !== null")
    reach(page, "main input[name=q]")
    write(page, "second")
    page.press("Enter")
    page.wait("document.querySelector('mark') !== null")
    reach(page, "main .said a")
    page.press("Enter")
    page.wait(f"{SELECTED} !== null")
    run = page.run("new URLSearchParams(location.search).get('run')")
    reach(page, "[role=treegrid]")
    for key, step in (("g", 1), ("s", 2)):
        page.press(key)
        page.wait(f"location.search.includes('step={step}')")
    page.press("2")
    page.wait(
        "location.search.includes('tab=raw') && document.querySelector('.detail summary') !== null"
    )
    reach(page, ".detail summary")
    page.press("Enter")
    page.wait("document.querySelector('.detail details[open]') !== null")
    reach(page, "nav[aria-label='views of the run'] a[href*='transcript']")
    page.press("Enter")
    page.wait("document.querySelectorAll('article').length > 4")
    page.press("q")
    page.wait("document.querySelector('main tbody a') !== null")
    page.press("m")
    page.wait("location.search.includes('left=')")
    page.press("j")
    page.press("d")
    page.wait(
        "location.search.includes('view=compare') && document.querySelector('main table') !== null"
    )
    reach(page, "main table a")
    page.press("Enter")
    page.wait("document.querySelector('.overview') !== null")
    reach(page, "[role=treegrid]")
    page.press("g")
    page.press("s")
    page.press("a")
    page.wait("document.querySelector('textarea[name=request]') !== null")
    assert violations(page) == []
    reach(page, "textarea[name=request]")
    page.press("End", control=True)
    page.press("ArrowUp")
    page.press("End")
    write(page, ', "user": "by keyboard"')
    page.wait("document.querySelector('ins')?.textContent.includes('by keyboard')")
    reach(page, "[name=fork]")
    page.press("Enter")
    ended_well(page, stage)
    seen = json.dumps(["agent-1", "agent-2", run])
    page.wait(f"!{seen}.includes(new URLSearchParams(location.search).get('run'))")
    assert [one.json.get("user") for one in stage.provider.requests[asked:]] == ["by keyboard", None]
    assert page.complaints == []
