"""What a real program reports, on the page: phases, their durations, applied rules, channels."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from support.pages.chromium import Page
from support.starting.home import Home

from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver

from .test_accessible import violations
from .test_findings import CELLS, SECTIONS

pytestmark = pytest.mark.browser

PHASES = ("specification", "pseudocode", "architecture", "refinement", "completion")
"""The phases of the SPARC method."""
AGENT = f"""
import subprocess, sys, threading
import playhead

@playhead.tool
def write(part):
    threading.Event().wait(0.3 if part == "refinement" else 0)
    return part

for name in {PHASES}:
    with playhead.phase(name):
        if name == "architecture":
            playhead.decision("which store", ["files", "database"], "database", method="rule_based",
                rules=["more than one writer", "no <b>new</b> service"],
                rejected={{"files": "one writer"}})
            playhead.message("reviewer", "question", "may I?", channel="slack")
            playhead.message("archive", "status_update", "half")
        write(name)
subprocess.run([sys.executable, "child.py"], check=True)
"""
CHILD = """
import playhead
playhead.message("agent", "result", "yes")
"""
WORKFLOW = "\n".join(
    ['name = "sparc"\nallow_other = true', *(f'[[state]]\nname = "{name}"' for name in PHASES)]
)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Home, Receiver]]:
    home = Home(tmp_path_factory.mktemp("meaning"), {})
    (home.folder / "agent.py").write_text(AGENT)
    (home.folder / "child.py").write_text(CHILD)
    done = home.playhead("record", "agent.py")
    assert done.returncode == 0, done.stderr
    addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
    with Receiver(home.data_dir, Configuration(addresses)) as running:
        yield home, running


def test_phases_rules_and_channels_of_a_program_are_on_the_page(
    page: Page, recorded: tuple[Home, Receiver]
):
    _, receiver = recorded
    page.open(f"{receiver.query_endpoint}/?run=agent-1&step=findings", ".findings .card")
    found = page.run(SECTIONS)
    [states] = [text for section, text in found.items() if section.startswith("States")]
    assert all(name in states for name in PHASES) and "reported" in states
    steps = page.run("""[...document.querySelectorAll('.findings .card')]
        .find(one => one.innerText.includes('Time in it')).querySelectorAll('tbody tr').length""")
    assert steps == 2 * len(PHASES)
    [decision] = [text for section, text in found.items() if section.startswith("Decisions")]
    assert "Rules more than one writer, no <b>new</b> service" in decision
    assert "rule based" in decision and "files: one writer" in decision
    messages = found["Messages to agents (3)"]
    assert "to reviewer" in messages and "question by slack" in messages
    assert violations(page) == []

    page.open(f"{receiver.query_endpoint}/?run=agent-1&step=overview", ".overview .graph .node")
    rows = page.run(CELLS.replace("NAME", "requests between agents"))
    assert [row[:3] for row in rows] == [
        ["agent", "archive", "message"],
        ["agent", "child bottleneck", "process"],
        ["agent", "reviewer", "slack"],
        ["child", "agent", "message"],
    ]
    assert page.complaints == []


def test_least_durations_of_states_are_checked_on_the_page(page: Page, recorded: tuple[Home, Receiver]):
    home, receiver = recorded
    page.open(f"{receiver.query_endpoint}/?view=flow", ".conformance summary")
    page.run("document.querySelector('.conformance summary').click()")
    page.wait("document.querySelectorAll('select[name=shipped] option').length > 4")

    def checked(workflow: str) -> list[str]:
        page.run(f"""(() => {{
            const field = document.querySelector('textarea[name=workflow]');
            field.value = {json.dumps(workflow)};
            field.dispatchEvent(new Event('input', {{bubbles: true}}));
        }})()""")
        page.wait("!document.querySelector('button[name=check-workflow]').disabled")
        page.run("document.querySelector('button[name=check-workflow]').click()")
        name = json.dumps(workflow.partition('"')[2].partition('"')[0])
        page.wait(f"document.querySelector('.conformance [role=status]')?.innerText.includes({name})")
        [row] = page.run(CELLS.replace("NAME", "conformance"))
        return row

    assert checked(WORKFLOW)[:4] == ["agent-1", "yes", "100 %", ""]
    longer = WORKFLOW.replace("sparc", "longer").replace(
        'name = "refinement"', 'name = "refinement"\nminimum_s = 0.2'
    )
    assert checked(longer)[1] == "yes"
    strict = longer.replace("longer", "strict").replace(
        'name = "specification"', 'name = "specification"\nminimum_s = 100'
    )
    row = checked(strict)
    assert row[:4] == ["agent-1", "no", "80 %", "state specification for 100 s"]
    assert violations(page) == []
    (home.folder / "sparc.toml").write_text(strict)
    done = home.playhead("conform", "-w", "sparc.toml")
    assert (done.returncode, "state specification for 100 s" in done.stdout) == (1, True)
    page.run("document.querySelector('table[aria-label=conformance] a').click()")
    page.wait("document.querySelector('main.run') !== null")
    assert page.complaints == []
