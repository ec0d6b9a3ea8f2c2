"""The browser: heading, rows, details, timeline, and the actions of the keys."""

from __future__ import annotations

import asyncio
import shlex
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from rich.text import Text
from textual.app import App, ComposeResult, SuspendNotSupported
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Static
from textual.worker import WorkerFailed

from playhead_cli.browse import keys, outside
from playhead_cli.browse.bars import heading_line, place_line, row_line, tab_line, timeline
from playhead_cli.browse.details import TABS, WantedDetails, lines_of
from playhead_cli.browse.finding import pattern_of, says
from playhead_cli.browse.forms import EditForm, KeyList, edit_words, lacking_program, request_at
from playhead_cli.browse.live import LiveAgent
from playhead_cli.browse.panes import Details, Prompt, StepList
from playhead_cli.browse.rows import BrowsedRows, Way
from playhead_cli.browse.viewpoint import Viewpoint
from playhead_cli.output.words import count
from playhead_cli.session.printing import harmless
from playhead_core.errors import PlayheadError
from playhead_core.untrusted.shown_text import in_one_line
from playhead_replay.run.run import NONSENSE

if TYPE_CHECKING:
    import re

    from playhead_cli.browse.opened import OpenRun
    from playhead_cli.session.session import Session

T = TypeVar("T")

POLL_S = 0.3
PAUSES = 4
"""The pause between two readings of a live run is at least this many times the reading time."""
MOST_LINES = 5000
"""Lines of details that are shown; the pager shows all."""
LONGEST = 10_000
"""Characters of a line that are shown; the pager shows all."""
AT_ONCE = 50
"""Rows to search before other work may read the run."""
WIDTHS = [(0, "-narrow"), (80, "-wide")]
"""Columns from which on the screen has one pane, and two."""


class Browser(App[str]):
    """A run in the terminal. Its result is the next run to open; empty: none."""

    CSS_PATH = "browser.tcss"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = WIDTHS
    BINDINGS: ClassVar[list[BindingType]] = [*keys.bindings()]

    def __init__(
        self, session: Session, source: OpenRun, named: str, step: int, url: str | None
    ) -> None:
        """``named``: the run in commands; ``step``: where to begin, 0 if there is none; ``url``: of the
        query API. `ConfigurationError` if the setting of keys is wrong.
        """
        super().__init__()
        self.theme = "ansi-dark"
        self._session, self._source, self._named = session, source, named
        self._ascii_only = session.plain
        self._keymap_given = keys.keymap(session.settings.browse_keys)
        self._agent = LiveAgent(session, url, source.run.name)
        self._viewpoint = Viewpoint(source, step)
        self._reading = threading.Lock()
        """One thread at a time reads the run."""
        self._wanted: WantedDetails | None = None
        """The details that were requested last."""
        self._pattern: re.Pattern[str] | None = None
        """The search text."""
        self._asks = ""
        """The purpose of the prompt: ``/`` (search) or ``:`` (command)."""

    # Drawing.

    def compose(self) -> ComposeResult:
        """Yield the widgets."""
        yield Static(id="heading")
        with Horizontal(id="panes"):
            yield StepList(self._line_of)
            with Vertical(id="right"):
                yield Static(id="tabs")
                yield Details()
        yield Static(id="timeline")
        yield Static(id="said")
        yield Prompt(id="prompt", compact=True, select_on_focus=False)

    def on_mount(self) -> None:
        """Show the run, and follow it while it is running."""
        self.set_keymap(self._keymap_given)
        self.screen.set_class(self._ascii_only, "-ascii")
        self.query_one(StepList).focus()
        self._show()
        if self._source.goes_on:
            self.run_worker(self._follow, group="follow")

    def on_resize(self) -> None:
        """Rebuild lines that depend on the width of the screen."""
        self.call_after_refresh(self._show_bars)

    def say(self, text: str) -> None:
        """One sentence on the status line."""
        self.query_one("#said", Static).update(self._harmless(Text(in_one_line(text))))

    def _harmless(self, line: Text) -> Text:
        return harmless(line, ascii_only=self._ascii_only)

    def _line_of(self, at: int) -> Text:
        look, digits = self._viewpoint, len(str(len(self._source.run.steps)))
        return self._harmless(row_line(look.rows[at], digits, look.flag(at)))

    def _show(self, *, from_top: bool = True) -> None:
        self.query_one(StepList).show(len(self._viewpoint.rows), self._viewpoint.at)
        self._show_bars()
        self._wanted = self._viewpoint.wanted
        self._work("details", self._read, self._wanted, from_top)

    def _show_bars(self) -> None:
        run, look, width = self._source.run, self._viewpoint, self.size.width
        live = self._source.goes_on
        head = self.query_one("#heading", Static)
        head.set_class(live, "live")
        head.update(self._harmless(heading_line(look.rows.heading, width, live=live)))
        self.query_one("#tabs", Static).update(self._harmless(tab_line(look.tab)))
        place = place_line(run, look.number, look.row)
        line = timeline(width - len(place), look.at, len(look.rows), look.rows.errors).append(place)
        self.query_one("#timeline", Static).update(self._harmless(line))

    async def _read(self, wanted: WantedDetails, from_top: bool) -> None:
        lines = await self._told(lambda: self._lines(wanted))
        if lines is not None and wanted is self._wanted:
            self.query_one(Details).show(lines, from_top=from_top)

    def _lines(self, wanted: WantedDetails) -> list[Text] | None:
        """Return the lines of the details; None if others are wanted by now."""
        with self._reading:
            if wanted is not self._wanted:
                return None
            self._source.require_kept()
            found = list(islice(lines_of(self._source, wanted), MOST_LINES + 1))
        if len(found) > MOST_LINES:
            found[MOST_LINES:] = [Text("⋮ there is more: o", "dim")]
        return [self._with_hits(self._harmless(_cut(line))) for line in found]

    def _with_hits(self, line: Text) -> Text:
        for hit in () if self._pattern is None else self._pattern.finditer(line.plain):
            line.stylize("bold reverse", *hit.span())
        return line

    def _work(self, group: str, work: Callable[..., Awaitable[None]], *given: Any) -> None:
        """Do work in the background, and cancel earlier work of the same group."""
        self.run_worker(partial(work, *given), group=group, exclusive=True)

    async def _told(self, work: Callable[[], T]) -> T | None:
        """Return the result of work in another thread; if it fails, show why and return None."""
        return self._tried(await asyncio.to_thread(_outcome, work))

    def _try(self, work: Callable[[], T]) -> T | None:
        """Return the result of work; if it fails, None and a sentence on the status line."""
        return self._tried(_outcome(work))

    def _tried(self, outcome: tuple[T | None, str]) -> T | None:
        result, why = outcome
        if why:
            self.say(why)
        return result

    # Moving.

    def _go(self, at: int) -> None:
        if at != self._viewpoint.at:
            self.say("")
            self._viewpoint.at = at
            self._show()

    def on_step_list_chosen(self, message: StepList.Chosen) -> None:
        """A click on a row."""
        self._go(message.at)

    def action_row(self, way: Way) -> None:
        """A row, or a line of the details, on or back."""
        if self._inside:
            self.query_one(Details).scroll_relative(y=way, animate=False)
        else:
            self._go(self._viewpoint.rows.row(self._viewpoint.at, way))

    def action_page(self, way: Way) -> None:
        """A screen of rows or details, on or back."""
        pane = self.query_one(Details if self._inside else StepList)
        lines = way * max(pane.size.height - 1, 1)
        if self._inside:
            pane.scroll_relative(y=lines, animate=False)
        else:
            self._go(self._viewpoint.rows.row(self._viewpoint.at, lines))

    def action_first(self) -> None:
        """The first row, or the top of the details."""
        if self._inside:
            self.query_one(Details).scroll_home(animate=False)
        else:
            self._go(0)

    def action_last(self) -> None:
        """The last row, or the end of the details."""
        if self._inside:
            self.query_one(Details).scroll_end(animate=False)
        else:
            self._go(max(len(self._viewpoint.rows) - 1, 0))

    def action_step(self, way: Way) -> None:
        """Move a step forward or back; of a live run: release one step."""
        if way > 0 and self._source.goes_on:
            self._order(self._agent.step)
        else:
            self._go(self._viewpoint.rows.step(self._viewpoint.at, way))

    def action_over(self, way: Way) -> None:
        """To the next row that is not inside this one."""
        self._go(self._viewpoint.rows.over(self._viewpoint.at, way))

    def action_finish(self, way: Way) -> None:
        """Move to the parent of the row."""
        self._go(self._viewpoint.rows.finish(self._viewpoint.at, way))

    def action_error(self, way: Way) -> None:
        """To the next step that failed."""
        self._go_on_to(self._viewpoint.rows.error(self._viewpoint.at, way), "no step failed", way)

    def action_breakpoint(self, way: Way) -> None:
        """Move to the next breakpoint; continue a live run."""
        if way > 0 and self._source.goes_on:
            self._order(self._agent.go_on)
        else:
            at = self._viewpoint.rows.among(self._viewpoint.breaks, self._viewpoint.at, way)
            self._go_on_to(at, "no breakpoint", way)

    def action_hit(self, way: Way) -> None:
        """To the next hit."""
        self._go_on_to(
            self._viewpoint.rows.among(self._viewpoint.hits, self._viewpoint.at, way), "no hit", way
        )

    def _go_on_to(self, at: int, none: str, way: Way) -> None:
        if at == self._viewpoint.at:
            self.say(f"{none} {'after' if way > 0 else 'before'} this")
        self._go(at)

    def action_break(self) -> None:
        """Set or remove a breakpoint."""
        self._viewpoint.toggle_break()
        self._show(from_top=False)

    def action_mark(self) -> None:
        """Mark the row."""
        self._viewpoint.mark()
        self.say(f"step {self._viewpoint.number} is marked: ' returns, d compares with it")
        self._show(from_top=False)

    def action_return(self) -> None:
        """Return to the mark, and mark where the cursor was."""
        at = self._viewpoint.swapped()
        if at is None:
            self.say("no step is marked: m marks one")
        else:
            self._go(at)

    # The details of a row.

    @property
    def _inside(self) -> bool:
        return self.focused is self.query_one(Details)

    def action_pane(self, way: Way) -> None:
        """Into the details, or back to the rows."""
        self.screen.set_class(way > 0, "-inside")
        self.query_one(Details if way > 0 else StepList).focus()

    def action_tab(self, number: int) -> None:
        """Show a tab."""
        self._viewpoint.tab = TABS[number]
        self._show()

    def action_noise(self) -> None:
        """Show all spans and fold nothing, or no longer."""
        self._viewpoint.toggle_everything()
        self._show()

    def action_difference(self) -> None:
        """Compare with the mark, the origin, the step before, by turns."""
        self._viewpoint.turn_difference()
        self._show()

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(KeyList(keys.help_lines(self._keymap_given)))

    # The prompt.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the browser's keys while a prompt or a form has the focus."""
        typed = isinstance(self.focused, Prompt) or len(self.screen_stack) > 1
        return action == "leave_prompt" or not typed

    def action_find(self) -> None:
        """Ask for a text to find."""
        self._ask("/", "")

    def action_command(self) -> None:
        """Ask for a command."""
        self._ask(":", "")

    def _ask(self, what: str, text: str) -> None:
        self._asks = what
        placeholder = "find" if what == "/" else "command of playhead; % is this step"
        self.query_one("#said").display = False
        self.query_one(Prompt).ask(placeholder, text)

    def action_leave_prompt(self) -> None:
        """Leave the prompt, and do nothing."""
        self.query_one(Prompt).display = False
        self.query_one("#said").display = True
        inside = self.screen.has_class("-inside")
        self.screen.set_focus(self.query_one(Details if inside else StepList))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Search for the text, or run the command, of the prompt."""
        text = event.value.strip()
        self.action_leave_prompt()
        if text and self._asks == "/":
            self._work("find", self._find, text)
        elif text:
            self._run(text)

    async def _find(self, text: str) -> None:
        """Search all rows, from the cursor on; go to the first hit as soon as it is found."""
        look, pattern = self._viewpoint, pattern_of(text)
        self._pattern, look.hits, rows = pattern, set(), look.rows
        order = [*range(look.at, len(rows)), *range(look.at)]
        for first in range(0, len(order), AT_ONCE):
            some = order[first : first + AT_ONCE]
            found = await self._told(lambda some=some: self._hits(rows, some, pattern))
            if found is None:
                return
            if found and not look.hits:
                self._go(found[0])
            look.hits.update(rows[at].span.span_id for at in found)
            self.say(f"{count(len(look.hits), 'hit')} for {text} so far")
        self.say(f"{count(len(look.hits), 'hit')} for {text}{'; > is the next' * bool(look.hits)}")
        self._show(from_top=False)

    def _hits(self, rows: BrowsedRows, places: Sequence[int], pattern: re.Pattern[str]) -> list[int]:
        with self._reading:
            return [at for at in places if says(self._source.run, rows[at], pattern)]

    # Out of the browser.

    @property
    def _here(self) -> str:
        return f"{self._named}:{self._viewpoint.number}" if self._viewpoint.number else self._named

    def action_copy(self) -> None:
        """Copy the command that shows the step."""
        self._copy(shlex.join(["playhead", "show", self._here]))

    def action_copy_link(self) -> None:
        """Copy the link to the step on the receiver's pages."""
        found = self._try(
            lambda: outside.link_to(self._session, self._source.run, self._viewpoint.number)
        )
        if found is not None:
            self._copy(found)

    def _copy(self, text: str, why: str = "") -> None:
        self.copy_to_clipboard(text)
        self.say(f"{why}copied: {text}")

    def action_pager(self) -> None:
        """Show the details in the pager, whole."""
        wanted = replace(self._viewpoint.wanted, everything=True)

        def whole() -> list[str]:
            with self._reading:
                return [self._harmless(line).plain for line in lines_of(self._source, wanted)]

        lines = self._try(whole)
        if lines is not None:
            self._leaving(lambda: outside.show_in_pager(lines))

    def action_fork(self) -> None:
        """Ask for the command that forks from this step."""
        if self._source.goes_on:
            self.say("running: p pauses it, a edits the pending request")
        else:
            self._ask(":", shlex.join(["fork", self._here]))

    def action_edit(self) -> None:
        """Edit the request in a form, then fork; of a live run: edit the pending request."""
        self._work("edit", self._edit_waiting if self._source.goes_on else self._edit_request)

    async def _edit_request(self) -> None:
        here, number = self._here, self._viewpoint.number
        changed = await self._edited(f"request of {here}", lambda: request_at(self._source.run, number))
        words = None if changed is None else self._try(lambda: edit_words(*changed))
        if words is not None:
            self._ask(":", shlex.join(["fork", here, *words]))

    async def _edit_waiting(self) -> None:
        title = f"what {self._source.run.name} is about to ask"
        changed = await self._edited(title, self._agent.waiting)
        if changed is not None:
            await self._give(lambda: self._agent.edit(*changed))

    async def _edited(self, title: str, read: Callable[[], Any]) -> tuple[Any, Any] | None:
        """Return a document before and after editing; None if the user cancelled."""
        found = await self._told(lambda: (read(),))
        if found is None:
            return None
        new = await self.push_screen_wait(EditForm(title, *found))
        return None if new is None else (*found, *new)

    def action_pause(self) -> None:
        """Pause the agent."""
        if self._source.goes_on:
            self._order(self._agent.pause)
        else:
            self.say(f"{self._source.run.name} has ended: x forks it")

    def _order(self, order: Callable[[], str]) -> None:
        self.say("…")
        self._work("order", self._give, order)

    async def _give(self, order: Callable[[], str]) -> None:
        said = await self._told(order)
        if said is not None:
            self.say(said)

    def _run(self, text: str) -> None:
        """Run a command; ``browse`` opens another run here."""
        words = self._try(lambda: outside.words_of(text, self._here))
        if words is None:
            return
        if words[0] == "browse":
            self.exit(words[1] if len(words) > 1 else "last")
            return
        lacks = lacking_program(self._source.run) if words[:2] == ["fork", self._here] else ""
        if lacks:
            self._copy(shlex.join(["playhead", *words]), f"{lacks}; ")
            return
        self._leaving(lambda: self._run_outside(words))

    def _run_outside(self, words: Sequence[str]) -> None:
        before = self._source.newest_branch()
        status = outside.run_command(self._session, words)
        made = self._source.newest_branch()
        self.say(f"{words[0]} ended with {status}" if made == before else f":browse {made}")

    def _leaving(self, work: Callable[[], None]) -> None:
        """Leave the terminal to others while they work."""
        try:
            with self.suspend():
                work()
        except SuspendNotSupported:
            self.say("this terminal cannot be left to another program")

    # Live runs.

    async def _follow(self) -> None:
        """Read new data until the run has ended. The cursor does not move."""
        pause_s = POLL_S
        while self._source.goes_on:
            await asyncio.sleep(pause_s)
            began_s = time.monotonic()
            grown = await self._told(self._grown)
            pause_s = max(POLL_S, (time.monotonic() - began_s) * PAUSES)
            if grown:
                self._viewpoint.renew()
                self._show(from_top=False)

    def _grown(self) -> bool:
        with self._reading:
            return self._source.grown()

    # The end.

    async def action_quit(self) -> None:
        """Leave."""
        self.exit("")

    @property
    def defect(self) -> Exception | None:
        """The exception that ended the browser; None if the user left it."""
        found = self._exception
        return found.error if isinstance(found, WorkerFailed) else found  # pyright: ignore[reportReturnType]

    def _print_error_renderables(self) -> None:
        """Print nothing. A traceback of textual would print recorded text with its control sequences."""


def _outcome(work: Callable[[], T]) -> tuple[T | None, str]:
    """Return the result of work, or why there is none, in a sentence."""
    try:
        return work(), ""
    except PlayheadError as problem:
        return None, f"{problem.what}{f'  ({problem.hint})' if problem.hint else ''}"
    except NONSENSE as problem:
        return None, f"it cannot be shown: {type(problem).__name__}: {problem}"


def _cut(line: Text) -> Text:
    if len(line) <= LONGEST:
        return line
    return line[:LONGEST].append(f"… {len(line) - LONGEST} more characters: o", "dim")
