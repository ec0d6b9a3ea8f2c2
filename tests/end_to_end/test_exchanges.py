"""Level `exchanges`: what was recorded without clocks, entropy and order is replayed in virtual time."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.servers.jittered import Jittered
from support.servers.scripted import Gate, Reply, Request, ScriptedServer, json_reply
from support.starting.home import Home

FIFTY = Path(__file__).parent / "agents" / "fifty.py"
LONG = [pytest.mark.acceptance, pytest.mark.timeout(900)]
NAMES = [
    node.name
    for node in ast.parse(FIFTY.read_text("utf-8")).body
    if isinstance(node, ast.FunctionDef)
    and any(isinstance(one, ast.Name) and one.id == "program" for one in node.decorator_list)
]
FEW = (
    *("identifiers_again", "iso_time", "token", "shared_random", "echoed_in_a_stream", "threads"),
    *("polled_queue", "request_given_up", "hedged", "sdk_streams_at_once", "over_aiohttp", "children"),
)
"""Of all, those that stand for the others in the short suite, in one process."""


class Provider(Jittered):
    """It also repeats what it is asked, and leaves some without an answer."""

    def __call__(self, request: Request) -> Reply:
        if request.path.startswith("/echo"):
            return json_reply(request.json)
        if request.path.startswith("/slow"):
            return Reply(before=Gate())
        return super().__call__(request)


@contextmanager
def recorded(folder: Path, script: Path, *words: str, code: int = 0) -> Iterator[Home]:
    """A home in which ``script`` has been recorded at level `exchanges`; its provider is gone."""
    server = ScriptedServer()
    server.on(lambda _: True, Provider(), repeat=True)
    home = Home(
        folder,
        {
            "OPENAI_BASE_URL": server.openai_url,
            "OPENAI_API_KEY": "test",
            "TOOLS_URL": server.url,
            "NO_PROXY": "127.0.0.1",
            "PLAYHEAD_LEVEL": "exchanges",
        },
    )
    done = home.playhead("record", script, *words)
    server.close()
    assert done.returncode == code, done.stderr
    yield home


ALONE = [pytest.param([name], 20, id=f"{name}-20", marks=LONG) for name in NAMES]


@pytest.mark.parametrize(("names", "count"), [pytest.param(FEW, 1, id="few"), *ALONE])
def test_every_exchange_is_answered(tmp_path: Path, names: Sequence[str], count: int):
    with recorded(tmp_path, FIFTY, *names) as home:
        for number in range(count):
            status, report = home.report("last")
            found = json.dumps(report["divergences"][:3], indent=1)
            assert report["verdict"] in ("identical", "volatile"), f"replay {number + 1}: {found}"
            fidelity = report["fidelity"]
            assert (status, report["level"]) == (0, "exchanges")
            assert fidelity["exact"] + fidelity["volatile"] == report["asked"] >= len(names)
            assert not report["unused"]


def test_there_are_fifty():
    assert len(NAMES) >= 50
    assert set(FEW) <= set(NAMES)


@pytest.fixture(scope="module")
def identified(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A run with one request, which says an identifier of its own."""
    with recorded(tmp_path_factory.mktemp("home"), FIFTY, "identifier") as home:
        yield home


def test_a_volatile_replay_fails_where_the_match_is_to_be_strict(identified: Home):
    status, report = identified.report("last", "--strict-match")
    assert (status, report["verdict"], report["fidelity"]["volatile"]) == (1, "volatile", 1)


STATED = """
import os, time, uuid, httpx, playhead
said = {"id": str(uuid.uuid4()), "at": time.time(), "seen": ["a"]}
playhead.state(said)
httpx.post(os.environ["TOOLS_URL"] + "/echo", json={"id": said["id"]}, timeout=60)
said["seen"].append(open("word").read())
playhead.state(said, name="end")
"""


def test_states_may_differ_in_volatile_values_and_in_nothing_else(tmp_path: Path):
    script = tmp_path / "agent.py"
    script.write_text(STATED)
    (tmp_path / "word").write_text("b")
    with recorded(tmp_path, script) as home:
        status, report = home.report("last")
        assert report["divergences"] == []
        assert (status, report["verdict"]) == (0, "volatile")
        assert report["volatile_outputs"] == ["state state", "state end"]
        (tmp_path / "word").write_text("c")
        status, report = home.report("last")
        assert (status, report["verdict"]) == (1, "diverged")
        [found] = report["divergences"]
        assert (found["kind"], found["what"]) == ("state", "end")


CHANGED = """
import os, uuid, httpx
said = {"id": str(uuid.uuid4()), "text": "refund order 17"}
print(httpx.post(os.environ["TOOLS_URL"] + "/tool", json=said, timeout=60).json())
"""


def test_a_changed_prompt_is_refused_and_named_beside_what_is_volatile(tmp_path: Path):
    script = tmp_path / "agent.py"
    script.write_text(CHANGED, "utf-8")
    with recorded(tmp_path, script) as home:
        script.write_text(CHANGED.replace("order 17", "order 18"), "utf-8")
        status, report = home.report("last", "--force")
        first = report["first_divergence"]
        assert (status, report["verdict"], first["path"]) == (1, "diverged", "$.text")
        assert (first["tape"], first["now"]) == ("refund order 17", "refund order 18")


def test_a_request_that_has_no_recording_is_blocked(tmp_path: Path):
    script = tmp_path / "agent.py"
    script.write_text(CHANGED, "utf-8")
    with recorded(tmp_path, script) as home:
        script.write_text(CHANGED.replace('"/tool"', '"/other"'), "utf-8")
        status, report = home.report("last", "--force")
        assert (status, report["verdict"]) == (3, "blocked")


def test_the_report_names_what_the_level_does_not_keep(identified: Home):
    status, report = identified.report("last")
    assert (status, report["verdict"]) == (0, "volatile")
    assert "stdout" not in report["outputs"]
    assert "effects" not in report["outputs"]
    assert report["not_kept"]["clock"] == report["not_kept"]["output"] == "causal"
    text = identified.playhead("replay", "last", env=identified.bare).stdout
    assert "not recorded, so not compared: clock, entropy" in text


TICKS = """
import os, threading, time, httpx
print(httpx.post(os.environ["TOOLS_URL"] + "/tool", json={"said": 1}, timeout=60).json())
if "STOP" in os.environ:
    raise SystemExit
while True:
    time.sleep(1)
"""


def test_timers_without_an_exchange_are_a_standstill(tmp_path: Path):
    script = tmp_path / "agent.py"
    script.write_text(TICKS.replace('"STOP" in os.environ', "True"), "utf-8")
    with recorded(tmp_path, script) as home:
        script.write_text(TICKS, "utf-8")
        status, report = home.report("last", "--force")
        assert status == 1
        assert any("the replay was stopped after step 1" in note for note in report["notes"])


def test_a_fork_answers_what_is_volatile_before_the_cut(tmp_path: Path):
    script = tmp_path / "agent.py"
    script.write_text(
        "import os, uuid, httpx\n"
        "def ask(n):\n"
        "    body = {'n': n, 'id': str(uuid.uuid4())}\n"
        "    asked = httpx.post(os.environ['TOOLS_URL'] + '/tool', json=body, timeout=60)\n"
        "    return asked.json()['tool']\n"
        "print(ask(1), ask(2))\n",
        "utf-8",
    )
    with recorded(tmp_path, script) as home:
        done = home.playhead("fork", "last:2", "--edit", "response.tool=99", env=home.bare)
        assert done.stdout.split()[1] == "99", done.stderr
        assert home.playhead("resume", "last", env=home.bare).returncode == 2


def test_a_resume_wants_to_be_told_that_changes_may_be_made_again(tmp_path: Path):
    script = tmp_path / "agent.py"
    script.write_text(
        "import os, signal, uuid, httpx\n"
        "def ask(n):\n"
        "    body = {'n': n, 'id': str(uuid.uuid4())}\n"
        "    asked = httpx.post(os.environ['TOOLS_URL'] + '/tool', json=body, timeout=60)\n"
        "    return asked.json()['tool']\n"
        "print(ask(1))\n"
        "if not os.path.exists('go'):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "print('done')\n",
        "utf-8",
    )
    with recorded(tmp_path, script, code=-9) as home:
        (tmp_path / "go").touch()
        refused = home.playhead("resume", "last", env=home.bare)
        assert refused.returncode == 2
        assert "--repeat-effects" in refused.stderr
        done = home.playhead("resume", "last", "--repeat-effects", env=home.bare)
        assert (done.returncode, done.stdout.split()[-1]) == (0, "done"), done.stderr
