"""What a run says does nothing to the terminal, and is not taken for markup."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.outside.browsing import Screen, browse
from support.starting.cli import store_run
from support.tapes.handmade import HandMade

from playhead_cli.browse import app
from playhead_semconv import attributes as a

NASTY = (
    "\x1b]52;c;cm0=\x07\x1b[2J\x9b1mred\u202etxt\u200b\x00"
    " [bold red]not markup[/] [@click=app.quit]no[/]"
)
BARE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A run in which everything is hostile."""
    said = [{"role": "user", "parts": [{"type": "text", "content": f"{NASTY}\nforged\r\tline"}]}]
    made = HandMade().start(**{a.PLAYHEAD_RUN_AGENT: "nasty"})
    call = made.begin(
        f"chat {NASTY}\nforged",
        kind=3,
        **{a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_INPUT_MESSAGES: json.dumps(said), NASTY: NASTY},
    )
    body = json.dumps({"messages": [{"role": "user", "content": NASTY}]}, ensure_ascii=False).encode()
    made.exchange(key=f"POST http://x/{NASTY}", request=body, chunks=(NASTY.encode(),), span=call)
    made.finish(call, error=f"Broken: {NASTY}")
    made.tool(NASTY, json.dumps({"q": NASTY}), error=f"{NASTY}: no")
    made.say(f"{NASTY}\n")
    store_run(tmp_path, made.exit(1))
    return tmp_path


@pytest.mark.parametrize("width", [60, 100])
def test_every_tab_shows_it_as_text(data_dir: Path, width: int):
    async def look(screen: Screen) -> None:
        for keys in ("i", "s", "S"):
            await screen.press(keys)
            for inside in ("h", "l"):
                await screen.press(inside)
                for tab in "123456":
                    await screen.press(tab)
                    assert not BARE.search(screen.text), screen.text
                    assert len(screen.lines) == 24
        await screen.press("h", "g", "1", "l")
        assert "\\u001b]52;c;cm0=" in screen.whole
        assert "[bold red]not markup[/]" in screen.whole

    browse(data_dir, "last", look, size=(width, 24))


def test_a_prompt_a_form_and_the_status_line_show_it_as_text(data_dir: Path):
    async def look(screen: Screen) -> None:
        await screen.press("g", "a")
        assert "request of nasty-1:1" in screen.text
        assert not BARE.search(screen.text)
        assert "\\u001b]52" in screen.text
        await screen.press("ctrl+s")
        assert screen.said.startswith("nothing was edited"), "it is the same document"
        await screen.press("slash")
        await screen.type("[red]")
        await screen.press("enter")
        assert screen.said == "0 hits for [red]"

    browse(data_dir, "last", look)


def test_a_defect_is_left_to_the_command_which_makes_it_harmless(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    def broken(*_: object) -> None:
        raise ZeroDivisionError(NASTY)

    async def look(screen: Screen) -> None:
        seen.append(screen.browser)
        monkeypatch.setattr(app, "tab_line", broken)
        await screen.press("i")

    seen: list[app.Browser] = []
    with pytest.raises(ZeroDivisionError):
        browse(data_dir, "last", look)
    assert isinstance(seen[0].defect, ZeroDivisionError)
    assert capfd.readouterr() == ("", "")
