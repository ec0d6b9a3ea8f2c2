"""One line per step of live runs: updated in place on a terminal, else printed when final."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from rich.console import Group
from rich.live import Live
from rich.text import Text

from playhead_cli.output.styles import ERROR, FAINT, NUMBER
from playhead_cli.output.words import clock, took
from playhead_cli.session.printing import printable

if TYPE_CHECKING:
    from playhead_cli.session.session import Session
    from playhead_cli.targets.live_fold import Moment

FINAL = ("ended", "failed")
REFRESHES_PER_S = 4
MOST = 20
"""Most steps that a terminal shows as going on."""


class StepLines:
    """Prints the steps of runs. Use as a context manager. ``named``: with the names of their runs."""

    def __init__(self, session: Session, *, named: bool = False) -> None:
        self._session = session
        self._named = named
        self._going_on: dict[tuple[str, int], Moment] = {}
        self._width = 1
        self._closing = ExitStack()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._session.width is not None:
            self._live = Live(
                console=self._session.out,
                get_renderable=lambda: Group(*self._lines()),
                refresh_per_second=REFRESHES_PER_S,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._closing.enter_context(self._live)
        return self

    def __exit__(self, *problem: Any) -> None:
        self._closing.close()
        if problem[0] is None:
            for (run, _), moment in sorted(self._going_on.items()):
                self._print(run, moment)

    def past(self, moments: Iterable[tuple[str, Moment]], most: int) -> None:
        """Print the last earlier steps, at most ``most``; running steps are not final."""
        last: dict[tuple[str, int], Moment] = {}
        for run, moment in moments:
            key = run, moment.number
            if key not in last or last[key].what not in FINAL:
                last[key] = moment
        wanted = sorted(last.items(), key=lambda one: (one[1].began_ns, one[0]))
        for (run, _), moment in wanted[len(wanted) - most if most < len(wanted) else 0 :]:
            self.take(run, moment)

    def take(self, run: str, moment: Moment) -> None:
        """Update the line of a step."""
        if moment.what in FINAL:
            self._going_on.pop((run, moment.number), None)
            self._print(run, moment)
        else:
            self._going_on[run, moment.number] = moment
        if self._live is not None:
            self._live.refresh()

    def _lines(self) -> list[Text]:
        some = sorted(list(self._going_on.items()))[-MOST:]
        return [self._line(run, moment) for (run, _), moment in some]

    def _print(self, run: str, moment: Moment) -> None:
        line = self._line(run, moment)
        if self._live is not None:
            self._session.out.print(line, no_wrap=True, overflow="ellipsis", crop=True)
        else:
            self._session.out.print(line, soft_wrap=True)

    def _line(self, run: str, moment: Moment) -> Text:
        self._width = max(self._width, len(str(moment.number)))
        line = Text(f"{clock(moment.began_ns)} ", style=FAINT)
        if self._named:
            line.append(f"{run} ", style="bold")
        line.append(f"{moment.number:>{self._width}} ", style=NUMBER)
        line.append(moment.name)
        if moment.what in FINAL:
            if moment.said:
                line.append(f"  {moment.said}", style=ERROR if moment.what == "failed" else "")
            line.append(f"  {took(max(moment.time_ns - moment.began_ns, 0))}", style=FAINT)
        else:
            state = "streaming" if moment.what == "streaming" else "pending"
            line.append(f"  {state} {took(max(time.time_ns() - moment.began_ns, 0))}", style=FAINT)
        return printable(self._session, line)
