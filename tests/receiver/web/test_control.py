"""A run that goes on, controlled from the pages: what waits is edited and let out, a run is paused."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.observed.asking import ASKING
from support.outside.controlling import Stage, on_stage, said_back
from support.pages.chromium import Page

from .test_accessible import violations

pytestmark = pytest.mark.browser

PROGRAM = f"""{ASKING}
for what in ("first", "second", "third"):
    print(asked(what), flush=True)
"""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with on_stage(tmp_path) as stage:
        stage.provider.on("/v1/chat/completions", said_back, repeat=True)
        yield stage


def test_what_waits_is_edited_approved_and_stepped(page: Page, stage: Stage):
    path = stage.home.folder / "agent.py"
    path.write_text(PROGRAM)
    agent = stage.start(path, control="pause model=*")
    stage.operator.halted("agent-1")
    page.open(f"{stage.receiver.query_endpoint}/?view=live", "textarea[name=waiting]")
    assert violations(page) == []
    agent_card = "document.querySelector('.agent').innerText"
    page.wait(f"{agent_card}.includes('takes orders') && {agent_card}.includes('waits for a person')")
    page.run("""(field => {
        field.value = 'ann <b>';
        field.dispatchEvent(new Event('input', {bubbles: true}));
    })(document.querySelector('[name=by]'))""")
    page.open(f"{stage.receiver.query_endpoint}/?run=agent-1", "textarea[name=waiting]")
    assert page.run("document.querySelector('[name=by]').value") == "ann <b>"
    page.run("""(field => {
        field.value = field.value.replace('first', 'edited <b>');
        field.dispatchEvent(new Event('input', {bubbles: true}));
    })(document.querySelector('[name=waiting]'))""")
    page.wait("document.querySelector('[name=approve]').textContent === 'approve as edited'")
    page.run("document.querySelector('[name=approve]').click()")
    page.wait("document.querySelector('[name=waiting]')?.value.includes('second')")
    interventions = "document.querySelector('[aria-label=interventions]')?.textContent"
    page.wait(f"/ann <b>edit.*ann <b>continue|ann <b>continue.*ann <b>edit/.test({interventions})")
    page.press(".")
    page.wait("document.querySelector('[name=waiting]')?.value.includes('third')")
    page.press("c")
    page.wait("document.querySelector('main.run > .bar').textContent.includes('success')")
    assert stage.ended(agent).splitlines() == [
        "You said edited <b>",
        "You said second",
        "You said third",
    ]
    assert page.complaints == []
