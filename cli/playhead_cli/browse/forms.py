"""Forms of the browser: editing a request, the list of keys, and the request that a fork edits."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static, TextArea

from playhead_core.errors import TapeMissing, UsageError
from playhead_core.rerun.edits import between
from playhead_core.untrusted.shown_text import visible
from playhead_replay.forks.fork import request_of

if TYPE_CHECKING:
    from playhead_core.rerun.plans import Edit
    from playhead_replay import Run


class EditForm(ModalScreen[tuple[Any] | None]):
    """A document as JSON. Gives the edited document, as the only item; None if it was left."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False, priority=True),
        Binding("ctrl+s", "take", show=False, priority=True),
    ]

    def __init__(self, title: str, document: Any) -> None:
        super().__init__()
        self._title = title
        self._text = visible(json.dumps(document, indent=2, ensure_ascii=False))

    def compose(self) -> ComposeResult:
        """Yield the text and the help line."""
        with Vertical(id="form"):
            yield Static(Text(visible(self._title)), id="form-title")
            yield TextArea(self._text, id="document", tab_behavior="indent")
            yield Static(Text("ctrl+s saves, escape cancels"), id="form-said")

    def action_leave(self) -> None:
        """Nothing is edited."""
        self.dismiss(None)

    def action_take(self) -> None:
        """Give the document, if it is one."""
        try:
            document: Any = json.loads(self.query_one("#document", TextArea).text)
        except (ValueError, RecursionError) as problem:
            said = f"not valid JSON: {problem}"
            self.query_one("#form-said", Static).update(Text(visible(said)))
            return
        self.dismiss((document,))


class KeyList(ModalScreen[None]):
    """The list of the keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q", "dismiss", show=False),
    ]

    def __init__(self, lines: Iterable[tuple[str, str]]) -> None:
        super().__init__()
        self._keys = list(lines)

    def compose(self) -> ComposeResult:
        """Yield a line a key."""
        width = max(len(keys) for keys, _ in self._keys)
        text = Text("\n").join(
            Text(f"{keys:<{width}}  ", "bold").append(says, "") for keys, says in self._keys
        )
        with VerticalScroll(id="keys"):
            yield Static(text)


def request_at(run: Run, number: int) -> Any:
    """Return the request of a step, as a document that can be edited. `UsageError`, `TapeError`."""
    step = run.step(number)
    exchanges = [] if step is None else run.exchanges_of(step)
    if not exchanges:
        raise UsageError(f"step {number} has no request to edit")
    return request_of(exchanges[0])


def edit_words(old: Any, new: Any) -> list[str]:
    """Options of ``playhead fork`` that turn ``old`` into ``new``. `UsageError` if there are none."""
    edits = between(old, new)
    if not edits:
        raise UsageError("nothing was edited", hint="a fork without an edit: x")
    return [word for edit in edits for word in ("--edit", _in_words(edit))]


def _in_words(edit: Edit) -> str:
    """Return an edit as it is typed; hidden characters are escaped, as JSON allows it."""
    path = f"request{'' if edit.path.startswith('[') or not edit.path else '.'}{edit.path}"
    if "=" in path or visible(path) != path:
        raise UsageError(
            f"the value at {path} cannot be written as an edit",
            hint="playhead fork RUN:STEP --edit, in $EDITOR",
        )
    if edit.remove:
        return f"{path}!"
    return f"{'+' if edit.add else ''}{path}={visible(json.dumps(edit.value, ensure_ascii=False))}"


def lacking_program(run: Run) -> str:
    """Why the program of a run cannot be started here; empty if nothing is in its way."""
    try:
        command = run.command
    except TapeMissing as problem:
        return problem.what
    path = command.script_path(Path(command.cwd))
    return f"{command.script} is not in {command.cwd}" if path is not None and not path.is_file() else ""
