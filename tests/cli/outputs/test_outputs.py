"""What is shown of real runs, in terminals of three widths, with and without colour.

Each file of a scene is a transcript of its commands in one kind of terminal. ``pytest tests/cli/outputs
--update-outputs`` writes them anew; look at the difference then.

Times are set where they are spelt, as their width decides what fits; addresses are replaced afterwards.
"""

from __future__ import annotations

import difflib
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from support.outside.terminal import terminal
from support.starting.home import Home
from support.starting.services import RecordedService

from playhead_cli.app import run
from playhead_cli.demo.provider import Provider
from playhead_cli.demo.shell import agents_dir
from playhead_cli.output import words
from playhead_cli.session import session

HERE = Path(__file__).parent
WIDTHS = (60, 80, 160)
SET = {"age": "1m", "clock": "12:00:00", "seconds": "1.0s", "took": "100ms"}
"""Functions that spell times, and what they say here."""

_ADDRESS = re.compile(r"(127\.0\.0\.1:|127\.0\.0\.1%3A|…)\d{5}\b")
"""An address of this machine; its front may be cut off."""
_MOVES = re.compile(r"\x1b\[\?25[lh]|\x1b\[\d*[A-KJ]|\r")
"""What a line that is updated in place says to a terminal."""


def of_demo(folder: Path, provider: Provider) -> Home:
    home = Home(folder, provider.environment)
    for agent in ("research_agent.py", "weather_agent.py", "refund_agent.py"):
        program = (agents_dir() / agent).read_text("utf-8")
        # Which of several threads asks first is chance.
        (folder / agent).write_text(
            program.replace("ThreadPoolExecutor()", "ThreadPoolExecutor(1)"), "utf-8"
        )
        assert home.playhead("record", agent).returncode == 0
    return home


def of_incident(folder: Path, provider: Provider) -> Home:
    home = Home(folder, provider.environment)
    shutil.copy(agents_dir() / "search_agent.py", folder)
    assert home.playhead("record", "search_agent.py").returncode == 1
    mended = "request.messages[0].content=Where a search finds nothing, say so."
    assert home.playhead("fork", "search_agent-1:3", "--edit", mended).returncode == 0
    return home


def of_service(folder: Path, provider: Provider) -> Home:
    home = Home(folder, provider.environment)
    shutil.copy(HERE / "desk.py", folder)
    with RecordedService(home, "-m", "uvicorn", "desk:app", "--port", "0") as service:
        for path, body in (
            ("/ask", {"text": "Where is order 81?"}),
            ("/refunds", {"order": "81"}),
            ("/refunds", {"order": "82"}),
            ("/orders/83", None),
        ):
            with httpx.Client(base_url=service.url, timeout=60) as client:
                client.request("GET" if body is None else "POST", path, json=body)
    return home


SCENES: dict[str, tuple[Callable[[Path, Provider], Home], tuple[str, ...]]] = {
    "demo": (
        of_demo,
        (
            "ls",
            "ls tool:weather",
            "show weather_agent",
            "show refund_agent-1",
            "show weather_agent-1:1",
            "show weather_agent-1:2",
            "show weather_agent-1:4",
            "show refund_agent-1:1",
            "show refund_agent-1:3 --all",
            "search order",
            "search Oslo",
            "search umbrella",
            "diff weather_agent-1 refund_agent-1",
            "tail weather_agent-1",
            "tail refund_agent-1 -n 1",
        ),
    ),
    "incident": (
        of_incident,
        (
            "ls",
            "ls --status failure",
            "show search_agent-1",
            "show search_agent-1:3",
            "show search_agent-2",
            "search order",
            "search colleague",
            "diff search_agent-1 search_agent-2",
            "tail search_agent-1 -n 4",
        ),
    ),
    "service": (
        of_service,
        (
            "ls",
            "ls agent:desk tool:search",
            "show desk-1",
            "show desk-1:1",
            "show desk-2",
            "show desk-3",
            "show desk-3:1",
            "show desk",
            "search order",
            "diff desk-2 desk-3",
            "tail desk-1",
        ),
    ),
}


@pytest.fixture
def times_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spell all times alike, whoever has imported the functions that spell them."""
    from playhead_cli.commands.inspect import diff, ls, search, show, tail  # noqa: F401
    from playhead_cli.output import comparison, tree  # noqa: F401
    from playhead_cli.output.step import overview, step_lines, wire  # noqa: F401

    for name, said in SET.items():
        original = getattr(words, name)
        for module in [one for key, one in sys.modules.items() if key.startswith("playhead_cli.")]:
            if getattr(module, name, None) is original:
                monkeypatch.setattr(module, name, lambda *_, said=said: said)


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("times_are_set")
@pytest.mark.parametrize("scene", SCENES)
def test_outputs_are_as_they_were(
    scene: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
):
    record, commands = SCENES[scene]
    with Provider(pace_s=0.001) as provider:
        home = record(tmp_path, provider)
    for name, value in home.bare.items():
        if name.startswith(("PLAYHEAD_", "XDG_", "HOME")):
            monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session, "command_name", lambda: "playhead")
    differences: list[str] = []
    for columns in WIDTHS:
        for colour in (False, True):
            said = "".join(_transcript(monkeypatch, one, columns, colour) for one in commands)
            file = HERE / scene / f"{columns}{'.colour' if colour else ''}.txt"
            if pytestconfig.getoption("--update-outputs"):
                file.parent.mkdir(exist_ok=True)
                file.write_text(said, "utf-8")
            elif file.read_text("utf-8") != said:
                differences += difflib.unified_diff(
                    file.read_text("utf-8").splitlines(),
                    said.splitlines(),
                    file.name,
                    "now",
                    lineterm="",
                )
    assert not differences, "\n".join(differences[:200])


def _transcript(monkeypatch: pytest.MonkeyPatch, command: str, columns: int, colour: bool) -> str:
    with terminal(monkeypatch, columns, colour=colour) as shown:
        run([*command.split(), "--no-config"])
    text = _MOVES.sub("", _ADDRESS.sub(r"\g<1>50000", shown.text))
    text = re.sub(r"…\d{1,5}/", "…0/", text)  # an address that is cut within its port
    return f"$ playhead {command}\n{text.replace(chr(27), '␛')}\n"
