"""Each key does what the list of keys says, on a run that was really recorded."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest
from support.outside.browsing import Screen, browse
from support.starting.home import Home
from textual.drivers.headless_driver import HeadlessDriver
from textual.widgets import TextArea

from playhead_cli.browse import outside
from playhead_cli.browse.keys import KEYS, bindings, keymap
from playhead_core.errors import ConfigurationError
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver

PLAN, ONE, TWO, THREE, FOUR, FIVE = range(6)
"""The rows: a frame around the first two steps, and the steps. The fourth failed."""


async def step(screen: Screen) -> None:
    assert (screen.at, screen.place) == (FOUR, "4/5"), "it opens at the first error"
    await screen.press("S", "S", "S")
    assert (screen.at, screen.place) == (ONE, "1/5")
    await screen.press("S")
    assert screen.at == ONE, "ends stop"
    await screen.press("s", "s", "s", "s", "s")
    assert (screen.at, screen.place) == (FIVE, "5/5")


async def over(screen: Screen) -> None:
    await screen.press("g", "n")
    assert screen.at == THREE
    await screen.press("N")
    assert screen.at == PLAN


async def finish(screen: Screen) -> None:
    await screen.press("g", "s", "f")
    assert screen.at == THREE
    await screen.press("k", "F")
    assert screen.at == PLAN
    await screen.press("F")
    assert screen.at == PLAN


async def breakpoints(screen: Screen) -> None:
    await screen.press("c")
    assert screen.said == "no breakpoint after this"
    await screen.press("g", "s", "b", "G", "b", "g", "c")
    assert screen.at == ONE
    assert [line[:2] for line in screen.lines[1:7]] == ["  ", " *", "  ", "  ", "✗ ", " *"]
    await screen.press("c")
    assert screen.at == FIVE
    await screen.press("b", "C", "c")
    assert (screen.at, screen.said) == (ONE, "no breakpoint after this")


async def error(screen: Screen) -> None:
    await screen.press("g", "e")
    assert screen.at == FOUR
    await screen.press("e")
    assert screen.said == "no step failed after this"
    await screen.press("G", "E")
    assert screen.at == FOUR


async def row(screen: Screen) -> None:
    await screen.press("g", "j", "down", "k")
    assert screen.at == ONE
    await screen.press("up", "up", "up")
    assert screen.at == PLAN


async def page(screen: Screen) -> None:
    await screen.press("g", "space")
    assert screen.at == FIVE
    await screen.press("pageup")
    assert screen.at == PLAN


async def pane(screen: Screen) -> None:
    await screen.press("4", "l")
    top = screen.details
    await screen.press("j", "j")
    assert screen.at == FOUR and screen.details.splitlines()[0] == top.splitlines()[2]
    await screen.press("g")
    assert screen.details == top
    await screen.press("G")
    assert screen.details.strip().endswith("on the tape")
    await screen.press("h", "j")
    assert screen.at == FIVE


async def first(screen: Screen) -> None:
    await screen.press("g")
    assert screen.at == PLAN
    await screen.press("G", "home")
    assert screen.at == PLAN


async def last(screen: Screen) -> None:
    await screen.press("G")
    assert screen.at == FIVE
    await screen.press("g", "end")
    assert screen.at == FIVE


async def mark(screen: Screen) -> None:
    await screen.press("apostrophe")
    assert screen.said == "no step is marked: m marks one"
    await screen.press("m", "g", "apostrophe")
    assert screen.at == FOUR
    await screen.press("apostrophe")
    assert screen.at == PLAN


async def find(screen: Screen) -> None:
    await screen.press("slash")
    await screen.type("IS LATE")
    await screen.press("enter")
    assert screen.said == "2 hits for IS LATE; > is the next"
    assert screen.at == TWO, "from the cursor on, then from the start"
    await screen.press("greater_than_sign")
    assert screen.at == THREE
    await screen.press("greater_than_sign")
    assert (screen.at, screen.said) == (THREE, "no hit after this")
    await screen.press("less_than_sign")
    assert screen.at == TWO
    await screen.press("slash", "s", "escape", "S")
    assert screen.at == ONE, "escape leaves the prompt"


async def noise(screen: Screen) -> None:
    assert "reading the list" not in screen.text
    await screen.press("i")
    assert "reading the list" in screen.text
    assert screen.place == "4/5"
    await screen.press("g", "j", "j")
    assert "reading the list" in screen.details
    await screen.press("i")
    assert "reading the list" not in screen.text
    assert screen.place == "2/5"


async def difference(screen: Screen) -> None:
    await screen.press("g", "s", "m", "G", "d")
    assert screen.details.startswith(" agent-1:1 → agent-1:5")
    assert "state budget  $.left\n - 3\n + 2" in screen.details
    await screen.press("d")
    assert screen.details.startswith(" agent-1:4 → agent-1:5")
    assert "+ to say sorry [bold]to[/bold] them" in screen.details


async def fork(screen: Screen) -> None:
    await screen.press("S", "x")
    assert screen.said == "fork agent-1:3"
    await screen.press("escape")
    assert screen.said == ""


async def edit(screen: Screen) -> None:
    await screen.press("S", "a")
    assert "request of agent-1:3" in screen.text
    document = screen.browser.screen.query_one(TextArea)
    document.text = document.text.replace("what now? order 81 is late", 'and \\"now\\"?')
    await screen.press("ctrl+s")
    edited = shlex.split(screen.browser.query_one("#prompt").value)  # type: ignore[attr-defined]
    assert edited == ["fork", "agent-1:3", "--edit", 'request.messages[0].content="and \\"now\\"?"']
    await screen.press("escape", "a", "ctrl+s")
    assert screen.said == "nothing was edited  (a fork without an edit: x)"
    await screen.press("a")
    screen.browser.screen.query_one(TextArea).text = "{"
    await screen.press("q", "s", "ctrl+s")
    assert "not valid JSON" in screen.text
    assert screen.browser.screen.query_one(TextArea).text == "qs{"
    await screen.press("escape", "g", "a")
    assert screen.at == PLAN


async def pause(screen: Screen) -> None:
    await screen.press("p")
    assert screen.said == "agent-1 has ended: x forks it"


async def copy(screen: Screen) -> None:
    await screen.press("y")
    assert screen.copied == "playhead show agent-1:4"
    assert screen.said == "copied: playhead show agent-1:4"


async def copy_link(screen: Screen) -> None:
    await screen.press("Y")
    assert screen.said == "no receiver serves pages of this store  (playhead up)"


async def pager(screen: Screen) -> None:
    shown: list[str] = []
    with pytest.MonkeyPatch.context() as patch, left_alone():
        patch.setattr(outside.click, "echo_via_pager", shown.append)
        await screen.press("o")
    assert "→ refund(order=81)\n" in shown[0]


async def command(screen: Screen) -> None:
    await screen.press("colon")
    await screen.type("shw")
    await screen.press("enter")
    assert screen.said == "unknown command shw, did you mean show?"
    with left_alone() as ran:
        await screen.press("colon")
        await screen.type("show %")
        await screen.press("enter")
    assert ran == ["show agent-1:4"]
    assert screen.said == "show ended with 0"


async def help(screen: Screen) -> None:
    await screen.pilot.resize_terminal(100, 60)
    await screen.press("question_mark")
    for key in KEYS:
        assert key.says in screen.text
    await screen.press("j", "question_mark")
    assert KEYS[0].says not in screen.text
    assert screen.at == FOUR


async def quit(screen: Screen) -> None:
    await screen.press("q")
    assert screen.browser.return_code == 0


DOES: dict[str, Callable[[Screen], Awaitable[None]]] = {
    "step": step,
    "over": over,
    "finish": finish,
    "breakpoint": breakpoints,
    "break": breakpoints,
    "error": error,
    "row": row,
    "page": page,
    "pane": pane,
    "first": first,
    "last": last,
    "mark": mark,
    "return": mark,
    "find": find,
    "hit": find,
    "noise": noise,
    "difference": difference,
    "fork": fork,
    "edit": edit,
    "pause": pause,
    "copy": copy,
    "copy-link": copy_link,
    "pager": pager,
    "command": command,
    "help": help,
    "quit": quit,
}


@contextmanager
def left_alone() -> Iterator[list[str]]:
    """The terminal can be left to a command. Gives the commands that are run there."""
    ran: list[str] = []
    run_command = outside.run_command

    def noted(session: object, words: list[str]) -> int:
        ran.append(shlex.join(words))
        return run_command(session, words)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HeadlessDriver, "can_suspend", True)
        patch.setattr(outside, "run_command", noted)
        patch.setattr("builtins.input", lambda text: "")
        yield ran


def test_every_key_is_tried():
    assert list(DOES) == [key.name for key in KEYS]


@pytest.mark.parametrize("does", dict.fromkeys(DOES.values()))
def test_a_key_does_what_its_list_says(home: Home, does: Callable[[Screen], Awaitable[None]]):
    browse(home.data_dir, "agent-1", does)


def test_the_tabs_are_messages_request_response_state_difference_and_raw(home: Home):
    async def look(screen: Screen) -> None:
        await screen.press("S")
        assert "→ user\n   what now? order 81 is late" in screen.details
        assert "← assistant\n   to what now? order 81 is late" in screen.details
        await screen.press("2")
        assert "POST http" in screen.details and '"model": "gpt-5.5"' in screen.details
        assert "Bearer k" not in screen.details
        await screen.press("3")
        assert "200  main#1" in screen.details and '"object": "chat.completion"' in screen.details
        await screen.press("4")
        assert 'budget\n   {"left": 2}' in screen.details
        await screen.press("5")
        assert screen.details.startswith(" agent-1:2 → agent-1:3")
        await screen.press("6")
        assert "200 after" in screen.details
        await screen.press("s")
        assert screen.tab == "Raw", "the tab stays, the details follow the cursor"
        assert "agent-1:4 execute_tool refund" in screen.details
        await screen.press("1")
        assert "→ refund(order=81)" in screen.details

    browse(home.data_dir, "agent-1", look, size=(120, 40))


def test_a_fork_is_compared_with_its_origin(home: Home):
    async def look(screen: Screen) -> None:
        await screen.press("g", "n", "d")
        assert screen.details.startswith(" agent-1:3 → agent-2:3")
        assert '- "what now? order 81 is late"\n + "and now?"' in screen.details

    browse(home.data_dir, "agent-2", look)


def test_a_fork_is_made_from_a_step(home: Home, capfd: pytest.CaptureFixture[str]):
    async def look(screen: Screen) -> None:
        await screen.press("S")
        with left_alone() as ran:
            await screen.press("x")
            await screen.type(" --offline")
            await screen.press("enter")
        assert ran == ["fork agent-1:3 --offline"], screen.said
        made = screen.said.removeprefix(":browse ")
        assert made.startswith("agent-") and made not in ("agent-1", "agent-2")
        await screen.press("colon")
        await screen.type(f"browse {made}")
        await screen.press("enter")

    assert browse(home.data_dir, "agent-1", look).startswith("agent-")
    assert "1–2 replayed" in capfd.readouterr().err


def test_where_the_program_is_not_the_command_is_copied(home: Home):
    async def look(screen: Screen) -> None:
        await screen.press("S", "x", "enter")
        assert screen.copied == "playhead fork agent-1:3"
        assert "agent.py is not in " in screen.said

    away = home.folder / "agent.py"
    away.rename(home.folder / "elsewhere.py")
    try:
        browse(home.data_dir, "agent-1", look)
    finally:
        (home.folder / "elsewhere.py").rename(away)


def test_a_link_leads_to_the_pages_of_the_receiver(home: Home):
    async def look(screen: Screen) -> None:
        await screen.press("Y")
        assert screen.copied.startswith(f"{receiver.query_endpoint}/?view=run&run=")
        assert screen.copied.endswith("&step=4")

    addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
    with Receiver(home.data_dir, Configuration(addresses)) as receiver:
        browse(home.data_dir, "agent-1", look)


def test_keys_can_be_remapped(home: Home):
    async def look(screen: Screen) -> None:
        await screen.press("s", "z")
        assert screen.place == "3/5", "s does nothing now, z steps back"
        await screen.press("question_mark")
        assert "ctrl+n  z" in screen.text

    browse(home.data_dir, "agent-1", look, browse_keys="step=ctrl+n step-back=z")


@pytest.mark.parametrize(("given", "near"), [("stp=z", "did you mean step?"), ("step", "")])
def test_what_is_no_key_is_refused(given: str, near: str):
    with pytest.raises(ConfigurationError) as refused:
        keymap(given)
    assert refused.value.what == f"{given} gives no key to an action of playhead browse"
    assert near in refused.value.cause


def test_no_key_has_two_meanings():
    keys = [key for binding in bindings() for key in binding.key.split(",")]
    assert len(set(keys)) == len(keys)
