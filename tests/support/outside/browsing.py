"""The browser on a screen that only the test sees."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from support.starting.running import PATIENCE_S
from textual.pilot import Pilot

from playhead_cli.browse.app import Browser
from playhead_cli.browse.opened import opened
from playhead_cli.browse.panes import Details
from playhead_cli.session.session import Session
from playhead_cli.targets.run_argument import parse_target

WAITED_FOR = ("details", "find", "order")
"""Groups of workers that come to an end by themselves."""


class Screen:
    """What is on the screen, and keys that are pressed."""

    def __init__(self, browser: Browser, pilot: Pilot[Any]) -> None:
        self.browser, self.pilot = browser, pilot

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
            await self.settled()

    async def type(self, text: str) -> None:
        names = {" ": "space", "-": "minus", ":": "colon", ".": "full_stop", "%": "percent_sign"}
        await self.press(*(names.get(one, one) for one in text))

    async def settled(self) -> None:
        """Wait until what was asked for is done and shown."""
        await self.pilot.pause()
        while self._busy:
            await self.pilot.pause()
        await self.pilot.pause()

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for what others do."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await self.settled()

    @property
    def _busy(self) -> bool:
        """Whether something goes on; a form that is open waits for the test."""
        groups = (*WAITED_FOR, *["edit"] * (len(self.browser.screen_stack) == 1))
        return any(one.group in groups and not one.is_finished for one in self.browser.workers)

    @property
    def lines(self) -> list[str]:
        strips = self.browser.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]
        return [strip.text.rstrip() for strip in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def place(self) -> str:
        """``12/24``: where the cursor is."""
        return self.lines[-2].split()[-3]

    @property
    def at(self) -> int:
        """The row where the cursor is."""
        return self.browser._viewpoint.at  # pyright: ignore[reportPrivateUsage]

    @property
    def said(self) -> str:
        """The status line."""
        return self.lines[-1].strip()

    @property
    def details(self) -> str:
        """What stands right of the steps."""
        return "\n".join(line.partition("▏")[2] for line in self.lines[2:-2])

    @property
    def whole(self) -> str:
        """The details as far as they are shown, not wrapped."""
        lines = self.browser.query_one(Details)._lines  # pyright: ignore[reportPrivateUsage]
        return "\n".join(line.plain for line in lines)

    @property
    def tab(self) -> str:
        return self.browser._viewpoint.tab  # pyright: ignore[reportPrivateUsage]

    @property
    def copied(self) -> str:
        return self.browser.clipboard


def browse(
    data_dir: Path,
    target: str,
    look: Callable[[Screen], Awaitable[None]],
    *,
    size: tuple[int, int] = (100, 24),
    step: int | None = None,
    **flags: Any,
) -> str:
    """Open a run, do what ``look`` does, and return the result of the browser."""
    session = Session(no_config=True, flags={"data_dir": str(data_dir), **flags})

    async def main() -> str:
        wanted = parse_target(target)
        with opened(session, wanted) as source:
            run = source.run
            last = run.errors[0].number if run.errors else len(run.steps)
            named = run.name if source.is_stored else wanted.run
            browser = Browser(session, source, named, last if step is None else step, None)
            async with browser.run_test(size=size) as pilot:
                screen = Screen(browser, pilot)
                await screen.settled()
                await look(screen)
            return browser.return_value or ""

    return asyncio.run(main())
