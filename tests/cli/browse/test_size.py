"""A run of ten thousand steps, and a terminal of sixty columns. What is counted is work, not time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from support.outside.browsing import Screen, browse
from support.starting.cli import refund, store_run
from support.tapes.handmade import HandMade

from playhead_cli.browse import app
from playhead_cli.browse.panes import Details, StepList

STEPS = 10_000
HEIGHT = 24


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    made = HandMade().start()
    for number in range(STEPS):
        made.tool("search", f'{{"q":"order {number}"}}')
    store_run(folder, made.exit())
    return folder


def test_ten_thousand_steps_cost_what_is_on_the_screen(large: Path, monkeypatch: pytest.MonkeyPatch):
    done: Counter[str] = Counter()
    row_line, lines_of = app.row_line, app.lines_of

    def counted_row(*given: object) -> object:
        done["rows"] += 1
        return row_line(*given)  # type: ignore[arg-type]

    def counted_details(*given: object) -> object:
        done["details"] += 1
        return lines_of(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(app, "row_line", counted_row)
    monkeypatch.setattr(app, "lines_of", counted_details)

    async def look(screen: Screen) -> None:
        assert screen.place == f"{STEPS}/{STEPS}"
        assert done["rows"] <= 3 * HEIGHT
        assert len(screen.browser.query("*")) < 30, "no widget a step"
        for key, place in (
            ("g", 1),
            ("j", 2),
            ("s", 3),
            ("space", 3 + HEIGHT - 4),
            ("G", STEPS),
            ("S", STEPS - 1),
        ):
            done.clear()
            await screen.press(key)
            assert screen.place == f"{place}/{STEPS}"
            assert done["rows"] <= 3 * HEIGHT, key
            assert done["details"] == 1, key
        done.clear()
        await screen.press(*"SSSSSSSSSS")
        assert done["rows"] <= 2 * 2 * 10, "within the screen two rows change"

    browse(large, "last", look, size=(100, HEIGHT))


def test_sixty_columns_have_one_pane(tmp_path: Path):
    store_run(tmp_path, refund())

    async def look(screen: Screen) -> None:
        steps, details = (screen.browser.query_one(kind) for kind in (StepList, Details))
        assert (steps.region.width, details.region.width) == (60, 0)
        assert all(len(line) <= 60 for line in screen.lines)
        assert screen.lines[0].endswith("RECORDED")
        await screen.press("enter")
        assert (steps.region.width, details.region.width) == (0, 60)
        assert "ValueError: no order" in screen.text
        await screen.press("S", "S")
        assert screen.place == "9/11", "steps are walked from inside, too"
        await screen.press("h")
        assert steps.region.width == 60
        await screen.pilot.resize_terminal(100, 24)
        await screen.settled()
        assert steps.region.width and details.region.width

    browse(tmp_path, "last", look, size=(60, 24))


def test_a_long_body_is_cut_and_whole_in_the_pager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made = HandMade().start()
    made.chat(request=b'"' + b"x" * 100_000 + b'"', chunks=(b"\n".join([b"line"] * 20_000),))
    store_run(tmp_path, made.exit())

    async def look(screen: Screen) -> None:
        await screen.press("2", "l", "G")
        assert "more characters: o" in screen.text
        await screen.press("3", "G")
        assert "there is more: o" in screen.text

    browse(tmp_path, "last", look)


def test_a_run_without_steps_is_shown(tmp_path: Path):
    store_run(tmp_path, HandMade().start().exit())

    async def look(screen: Screen) -> None:
        assert "there is no step" in screen.text
        for keys in "sSnNfFcCbeEjkgGm'/><idyop1456":
            await screen.press(
                *(
                    {
                        "'": "apostrophe",
                        "/": "slash",
                        ">": "greater_than_sign",
                        "<": "less_than_sign",
                    }.get(one, one)
                    for one in keys
                )
            )
            await screen.press("escape")
        assert screen.place == "0/0"

    browse(tmp_path, "last", look)


def test_a_terminal_that_has_only_ascii_gets_ascii(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store_run(tmp_path, refund())

    async def look(screen: Screen) -> None:
        await screen.press("4")
        assert screen.text.isascii(), [one for one in screen.text if not one.isascii()]

    from playhead_cli.session.session import Session

    monkeypatch.setattr(Session, "plain", True)
    browse(tmp_path, "last", look)
