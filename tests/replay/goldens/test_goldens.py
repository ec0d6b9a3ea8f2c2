"""Goldens under a pytest of their own: passing, failing, recording, updating, xdist, parameters."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import httpx
import pytest
from support.observed.asking import ASKING
from support.starting.inner_pytest import run_pytest
from support.tapes.handmade import HandMade

from playhead_cli.demo.provider import Provider
from playhead_receiver.storage import Query, open_store
from playhead_replay import Run
from playhead_replay.goldens import read_golden, write_golden
from playhead_semconv import attributes as a

AGENT = f"""
import sys
{ASKING}
question = sys.argv[1]
message = answered(
    messages=[{{"role": "system", "content": "You advise."}}, {{"role": "user", "content": question}}],
    tools=[{{"type": "function", "function": {{"name": "weather", "description": "Now.",
        "parameters": {{"type": "object", "properties": {{"city": {{"type": "string"}}}}}}}}}}],
)
calls = message.get("tool_calls") or ()
print(question, [call["function"]["name"] for call in calls], message["content"])
"""

TEST = """
def test_oslo(tape):
    run = tape.replay("oslo", command=["agent.py", "What do I pack for Oslo and Rome?"])
    run.assert_tool_sequence(["weather", "weather"])
    run.assert_tool("weather", at_most=3)
    run.assert_steps(at_most=2)  # the provider is busy at first
    run.assert_status("success")
    run.assert_printed("['weather', 'weather']")
    assert [part.content for part in run.messages[0].input[1].parts] == [
        "What do I pack for Oslo and Rome?"
    ]
    assert sum(run.tokens) > 0
    run.assert_cost(at_most=0.05)
"""


class Project:
    """A repository with an agent and tests."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        self.folder = folder
        self.provider = provider
        self.goldens = folder / "tests" / "goldens"
        (folder / "tests").mkdir(parents=True)
        (folder / "agent.py").write_text(AGENT)
        (folder / "pytest.ini").write_text("[pytest]\ntestpaths = tests\naddopts = --strict-markers\n")
        self.test(TEST)

    def test(self, text: str, name: str = "test_agent.py") -> None:
        (self.folder / "tests" / name).write_text(text)

    def edit(self, old: str, new: str) -> None:
        path = self.folder / "agent.py"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def pytest(
        self, *words: str, live: bool = False, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTEST", "OPENAI", "PLAYHEAD", "OTEL", "CI"))
        }
        kept |= self.provider.environment if live else {"OPENAI_API_KEY": "none"}
        kept |= {"PLAYHEAD_QUIET": "1", **environ}
        return run_pytest("-p", "xdist.plugin", *words, cwd=self.folder, environ=kept)


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(pace_s=0.0) as provider:
        yield provider


@pytest.fixture
def project(tmp_path: Path, provider: Provider) -> Project:
    return Project(tmp_path / "project", provider)


@pytest.fixture(scope="module")
def goldens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with Provider(pace_s=0.0) as provider:
        project = Project(tmp_path_factory.mktemp("recorded") / "project", provider)
        done = project.pytest("--playhead-record=missing", live=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "playhead: created tests/goldens/oslo.tape" in done.stdout
    return project.goldens


@pytest.fixture
def recorded(project: Project, goldens: Path) -> Project:
    shutil.copytree(goldens, project.goldens)
    return project


def test_a_golden_is_recorded_once_and_replayed_with_nobody_there(recorded: Project):
    done = recorded.pytest("-v", "--playhead-record=missing", live=True)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout and "created" not in done.stdout
    assert recorded.provider.requests == 0
    assert (recorded.goldens / "oslo.tape").stat().st_mode & 0o044


def test_a_golden_reads_as_text_and_stays_the_same_when_recorded_again(recorded: Project):
    golden = recorded.goldens / "oslo.tape"
    # The provider refuses a request that it has not seen; from then on it says the same each time.
    asked = read_golden(golden)[0].exchanges[0].request
    where = f"{recorded.provider.url}/v1/chat/completions"
    assert httpx.post(where, content=asked).status_code == 429
    assert recorded.pytest("--playhead-record=all", live=True).returncode == 0
    before = golden.read_text()
    assert before.startswith("playhead tape, text 1\n")
    assert '"content": "What do I pack for Oslo and Rome?"' in before
    done = recorded.pytest("--playhead-record=all", live=True)
    assert "playhead: updated tests/goldens/oslo.tape" in done.stdout
    after = golden.read_text()
    # Ids and dates of the provider, chunks' digests, the process, where the generator of `random` stood.
    changing = re.compile(
        r'"(?:created|id|playhead\.process\.(?:pid|identity)|end\.digest|base64)"|GMT"'
    )
    sides = [
        [line for line in text.splitlines() if not changing.search(line)] for text in (before, after)
    ]
    assert sides[0] == sides[1]


def test_a_changed_prompt_fails_and_names_both_sides(recorded: Project):
    recorded.edit("You advise.", "You refuse.")
    done = recorded.pytest("--junitxml=out.xml")
    assert done.returncode == 1
    said = [line.removeprefix("E").strip() for line in done.stdout.splitlines()]
    assert "golden diverged: oslo (tests/goldens/oslo.tape)" in said
    assert "- recorded: You advise." in said and "+ now:      You refuse." in said
    assert any("messages[0].content changed" in line for line in said)
    # What follows from the refused request is named, and nothing is said twice.
    assert done.stdout.count("You refuse.") == done.stdout.count("unused") == 1
    assert "after that: stderr, stdout, exit differ; 2 recordings unused" in said
    assert "look:   playhead diff tests/goldens/oslo.tape .playhead/failed/oslo.tape" in said
    assert (recorded.folder / ".playhead" / "failed" / "oslo.tape").is_file()
    [failed] = ElementTree.parse(recorded.folder / "out.xml").iter("failure")
    assert "golden diverged: oslo" in (failed.text or "") + failed.attrib["message"]


def test_a_divergence_that_the_agent_swallows_fails(recorded: Project):
    recorded.edit(
        "message = answered",
        "try:\n    urlopen(os.environ['OPENAI_BASE_URL'] + '/models')\n"
        "except Exception:\n    pass\nmessage = answered",
    )
    done = recorded.pytest()
    assert done.returncode == 1
    assert "golden diverged: oslo" in done.stdout and "/models" in done.stdout


def test_a_changed_outcome_is_accepted_on_request_and_nothing_goes_live(recorded: Project):
    recorded.edit("print(question,", 'print("now", question,')
    assert recorded.pytest().returncode == 1
    recorded.provider.close()
    done = recorded.pytest("--playhead-update")
    assert done.returncode == 0, done.stdout
    assert "playhead: updated tests/goldens/oslo.tape" in done.stdout
    assert recorded.pytest().returncode == 0
    assert '"text": "now What do I pack' in (recorded.goldens / "oslo.tape").read_text()


def test_an_update_does_not_accept_what_nothing_answers(recorded: Project):
    recorded.edit("You advise.", "You refuse.")
    before = (recorded.goldens / "oslo.tape").read_text()
    assert recorded.pytest("--playhead-update").returncode == 1
    assert (recorded.goldens / "oslo.tape").read_text() == before


def test_a_failed_assertion_shows_the_sides_and_the_command(recorded: Project):
    recorded.test(
        'def test_it(tape):\n    tape.replay("oslo").assert_tool_sequence(["weather", "refund"])\n'
        'def test_cost(tape):\n    tape.replay("oslo").assert_cost(at_most=0.0001)\n'
    )
    done = recorded.pytest()
    assert done.returncode == 1
    assert re.search(r"oslo.tape: cost: \$0\.00\d+, not at most \$0.0001", done.stdout), done.stdout
    assert "oslo.tape: tool 2 is another one" in done.stdout
    assert "- expected: refund" in done.stdout and "+ now:      weather" in done.stdout
    assert "look: playhead show tests/goldens/oslo.tape" in done.stdout
    assert "again: pytest tests/test_agent.py::test_it" in done.stdout


def test_what_is_missing_or_misspelt_is_said(recorded: Project):
    recorded.test(
        """
import pytest

def test_missing(tape):
    tape.replay("nowhere")

@pytest.mark.playhead("oslo", alow=["localhost"])
def test_misspelt(tape):
    tape.replay()
"""
    )
    done = recorded.pytest()
    assert "error[tape-missing]: no golden at tests/goldens/nowhere.tape" in done.stdout
    assert "test_missing --playhead-record=missing" in done.stdout
    assert (
        "takes a name and command, cwd, unused, outcome, edited, allow, checks, headers; not alow"
        in done.stdout
    )


def test_going_live_is_refused_in_ci(project: Project):
    done = project.pytest("--playhead-record=all", live=True, CI="true")
    assert done.returncode == 4
    assert "refused under CI unless PLAYHEAD_PYTEST_RECORD=1" in done.stderr
    assert project.provider.requests == 0


@pytest.mark.acceptance
def test_parameters_have_goldens_of_their_own_also_under_xdist(project: Project):
    project.test(
        """
import pytest

@pytest.mark.parametrize("city", ["Oslo", "Rome", "São Paulo/SP"])
def test_city(tape, city):
    run = tape.replay(command=["agent.py", f"What do I pack for {city}?"])
    run.assert_printed(city)
"""
    )
    done = project.pytest("--playhead-record=missing", "-n", "2", live=True)
    assert done.returncode == 0, done.stdout
    names = sorted(path.name for path in (project.goldens / "test_agent").iterdir())
    assert names[:2] == ["test_city,city=Oslo.tape", "test_city,city=Rome.tape"]
    assert re.fullmatch(r"test_city,city=S_o_Paulo_SP-[0-9a-f]{8}\.tape", names[2])
    assert done.stdout.count("playhead: created ") == 3
    assert project.pytest("-n", "2").returncode == 0


@pytest.mark.acceptance
def test_a_folder_of_goldens_is_one_test_also_under_xdist(project: Project):
    assert project.pytest("--playhead-record=missing", live=True).returncode == 0
    run, folder = read_golden(project.goldens / "oslo.tape")
    assert folder == project.folder
    write_golden(project.goldens / "packed.tape.gz", run, compressed=True)
    project.test(
        """
from pathlib import Path
import pytest

GOLDENS = sorted(Path(__file__).parent.glob("goldens/*.tape*"))

@pytest.mark.parametrize("golden", GOLDENS, ids=lambda path: path.name)
def test_each(tape, golden):
    tape.replay(golden).assert_tool("weather", times=2)
"""
    )
    done = project.pytest("-n", "2", "--junitxml=out.xml")
    assert done.returncode == 0, done.stdout
    suite = ElementTree.parse(project.folder / "out.xml")
    used = {Path(one.attrib["value"].partition(" ")[2]).name for one in suite.iter("property")}
    assert used == {"oslo.tape", "packed.tape.gz"}
    project.edit("You advise.", "You refuse.")
    assert project.pytest("-n", "2", "--junitxml=out.xml").returncode == 1
    failed = list(ElementTree.parse(project.folder / "out.xml").iter("failure"))
    assert ["golden diverged" in one.attrib["message"] for one in failed] == [True, True]


def test_the_golden_of_a_run_that_failed_asserts_that_it_no_longer_does(project: Project):
    project.edit("print(question,", "print(message['refund'],")
    project.test(
        """
def test_it(tape):
    run = tape.replay("oslo", command=["agent.py", "Oslo and Rome?"], outcome="changed")
    run.assert_status("success")
"""
    )
    done = project.pytest("--playhead-record=missing", live=True)
    assert done.returncode == 1
    assert "oslo.tape: it ended in failure" in done.stdout
    project.provider.close()
    assert project.pytest().returncode == 1
    project.edit("print(message['refund'],", "print(question,")
    assert project.pytest().returncode == 0
    project.edit("You advise.", "You refuse.")
    done = project.pytest()
    assert done.returncode == 1 and "messages[0].content changed" in done.stdout


def test_a_run_of_a_store_is_replayed_by_its_trace_id(project: Project, tmp_path: Path):
    store = {name: str(tmp_path / name) for name in ("PLAYHEAD_DATA_DIR", "PLAYHEAD_SPOOL_DIR")}
    environ = {**os.environ, **project.provider.environment, **store, "PLAYHEAD_QUIET": "1"}
    playhead = [sys.executable, "-m", "playhead_cli"]
    how = {"cwd": project.folder, "env": environ, "check": True, "timeout": 120}
    subprocess.run([*playhead, "record", "agent.py", "What do I pack for Oslo and Rome?"], **how)
    project.provider.close()
    kept = open_store(tmp_path / "PLAYHEAD_DATA_DIR", read_only=True)
    [run] = kept.runs(Query())
    kept.close()
    asked = f"--playhead-trace-id={run.trace_id}"
    done = project.pytest(asked, **store)
    assert done.returncode == 0, done.stdout
    assert not project.goldens.exists()
    done = project.pytest(f"--playhead-trace-id={'0' * 32}", **store)
    assert f"{'0' * 32} is not to be had from the store" in done.stdout


def test_only_a_whole_run_prunes(recorded: Project):
    left = recorded.goldens / "left_over.tape"
    left.write_bytes((recorded.goldens / "oslo.tape").read_bytes())
    recorded.test(f"{TEST}\ndef test_without(): ...\n")
    done = recorded.pytest("--playhead-prune", "-k", "without")
    assert "nothing pruned" in done.stdout and left.exists()
    done = recorded.pytest("--playhead-prune")
    assert "playhead: pruned tests/goldens/left_over.tape" in done.stdout
    assert not left.exists() and (recorded.goldens / "oslo.tape").exists()


def test_a_clone_elsewhere_runs_its_own_code(recorded: Project, tmp_path: Path):
    clone = tmp_path / "clone"
    recorded.folder.rename(clone)
    recorded.folder = clone
    assert recorded.pytest().returncode == 0
    recorded.edit("You advise.", "You refuse.")
    assert recorded.pytest().returncode == 1


def test_a_packed_golden_is_a_golden(recorded: Project):
    path = recorded.goldens / "oslo.tape"
    run, folder = read_golden(path)
    assert folder == recorded.folder
    path.unlink()
    made = write_golden(path.with_name("oslo.tape.gz"), run, compressed=True)
    assert made.size_bytes < 20_000
    assert recorded.pytest().returncode == 0


@pytest.mark.parametrize("compressed", [False, True])
def test_a_golden_keeps_words_that_are_no_utf_8(tmp_path: Path, compressed: bool):
    made = HandMade().start(**{a.PLAYHEAD_RUN_ARGV: ["agent.py", b"x\xff"]}).exit(0)
    write_golden(tmp_path / "oslo.tape", Run.of_tape(made.tape(), name="oslo"), compressed=compressed)
    run, _ = read_golden(tmp_path / "oslo.tape")
    assert run.command.words() == ["agent.py", "x\udcff"]
