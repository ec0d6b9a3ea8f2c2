"""A run that goes on: it grows under the cursor, is paused, stepped and edited, and may be deleted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.observed.asking import ASKING
from support.outside.browsing import Screen, browse
from support.outside.controlling import Stage, on_stage, said_back
from support.starting.cli import refund, store_run
from support.starting.running import PATIENCE_S
from support.tapes.handmade import HandMade
from textual.widgets import TextArea

from playhead_cli.browse import live
from playhead_core.errors import StoreUnavailable
from playhead_receiver.storage import Batch, open_store
from playhead_semconv import attributes as a

AGENT = f"""
{ASKING}
for number in range(3):
    print(asked(f"question {{number}}"), flush=True)
"""


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setattr(live, "WAIT_S", PATIENCE_S)
    with on_stage(tmp_path) as stage:
        stage.provider.script([said_back], repeat=True)
        yield stage


def test_a_paused_agent_is_stepped_edited_and_let_go(stage: Stage):
    script = stage.script(AGENT)
    agent = stage.start(script, control="pause model=*", PLAYHEAD_HEARTBEAT_MS="30000")
    stage.operator.halted("agent-1")

    async def look(screen: Screen) -> None:
        assert screen.lines[0].endswith("LIVE")
        await screen.press("x")
        assert screen.said == "running: p pauses it, a edits the pending request"
        await screen.press("s")
        assert "agent-1 is paused by " in screen.said and "question 1" in screen.said
        await screen.until(lambda: "You said question 0" in screen.text)
        await screen.press("a")
        await screen.until(lambda: "what agent-1 is about to ask" in screen.text)
        document = screen.browser.screen.query_one(TextArea)
        document.text = document.text.replace("question 1", "by hand")
        await screen.press("ctrl+s")
        assert "by hand" in screen.said
        await screen.press("c")
        stage.operator.halted("agent-1")
        await screen.press("S", "S")
        assert screen.place.startswith("1/"), "capitals only look"
        await screen.press("p")
        assert "agent-1 is paused by " in screen.said and "question 2" in screen.said
        await screen.press("c")
        await screen.until(lambda: screen.lines[0].endswith("RECORDED"))
        assert screen.place == "1/3", "the cursor stays"

    browse(stage.home.data_dir, "agent-1", look, size=(160, 40))
    assert stage.ended(agent).splitlines() == [
        "You said question 0",
        "You said by hand",
        "You said question 2",
    ]


def going_on() -> HandMade:
    """A run of a process that is still heard of."""
    made = HandMade()
    made.at_ns = time.time_ns()
    return made.start(**{a.PLAYHEAD_PROCESS_HEARTBEAT_MS: 600_000})


def test_a_run_grows_and_the_cursor_stays(tmp_path: Path):
    made = going_on()
    for _ in range(40):
        made.tool("search", "{}")
    store = open_store(tmp_path)
    store.commit(Batch(made.spans, made.facts, {}))
    name = store.resolve("last").name

    async def look(screen: Screen) -> None:
        await screen.press("g", "space")
        before, at = screen.lines[1:-2], screen.at
        place = screen.place.partition("/")[0]
        made.tool("refund", "{}", error="ValueError: no")
        store.commit(Batch(made.spans, made.facts, {}))
        await screen.until(lambda: screen.place == f"{place}/41")
        assert (screen.at, screen.lines[1:-2]) == (at, before)
        await screen.press("E", "e")
        assert screen.place == "41/41"
        made.exit(1)
        store.commit(Batch(made.spans, made.facts, {}))
        await screen.until(lambda: screen.lines[0].endswith("RECORDED"))
        await screen.press("s", "S")
        assert screen.place == "40/41", "s only looks from now on"

    try:
        browse(tmp_path, name, look, step=1)
    finally:
        store.close()


def test_without_a_receiver_orders_are_refused_in_a_sentence(tmp_path: Path):
    made = going_on()
    made.tool("search", "{}")
    store_run(tmp_path, made)

    async def look(screen: Screen) -> None:
        for key in "psca":
            await screen.press(key)
            assert screen.said.startswith(f"no receiver runs on {tmp_path}"), key

    browse(tmp_path, "last", look, size=(250, 24))


def test_a_run_that_was_deleted_meanwhile_is_said_in_a_sentence(tmp_path: Path):
    name = store_run(tmp_path, refund())

    async def look(screen: Screen) -> None:
        store = open_store(tmp_path)
        store.delete([bytes.fromhex(store.resolve(name).trace_id)])  # type: ignore[attr-defined]
        store.close()
        await screen.press("S")
        assert screen.said == f"{name} was deleted meanwhile  (q leaves)"
        assert screen.place == "10/11", "what was read is still there"

    browse(tmp_path, name, look)


def test_a_store_that_is_gone_is_said_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    name = store_run(tmp_path, refund())

    async def look(screen: Screen) -> None:
        def gone(self: object, name: str) -> None:
            raise StoreUnavailable("the database does not answer")

        source = screen.browser._source  # pyright: ignore[reportPrivateUsage]
        monkeypatch.setattr(type(source._store), "resolve", gone)  # pyright: ignore[reportPrivateUsage]
        await screen.press("S")
        assert screen.said == "the database does not answer"

    browse(tmp_path, name, look)
