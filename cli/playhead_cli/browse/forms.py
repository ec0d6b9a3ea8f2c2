"""The form in which a request is edited, and the list of the keys."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static, TextArea

from playhead_core.untrusted.shown_text import visible


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
        """The text, and what to do with it."""
        with Vertical(id="form"):
            yield Static(Text(visible(self._title)), id="form-title")
            yield TextArea(self._text, id="document", tab_behavior="indent")
            yield Static(Text("ctrl+s takes it, escape leaves"), id="form-said")

    def action_leave(self) -> None:
        """Nothing is edited."""
        self.dismiss(None)

    def action_take(self) -> None:
        """Give the document, if it is one."""
        try:
            document: Any = json.loads(self.query_one("#document", TextArea).text)
        except (ValueError, RecursionError) as problem:
            said = f"it is no JSON any more: {problem}"
            self.query_one("#form-said", Static).update(Text(visible(said)))
            return
        self.dismiss((document,))


class KeyList(ModalScreen[None]):
    """The keys, and what they do."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q", "dismiss", show=False),
    ]

    def __init__(self, lines: Iterable[tuple[str, str]]) -> None:
        super().__init__()
        self._keys = list(lines)

    def compose(self) -> ComposeResult:
        """A line a key."""
        width = max(len(keys) for keys, _ in self._keys)
        text = Text("\n").join(
            Text(f"{keys:<{width}}  ", "bold").append(says, "") for keys, says in self._keys
        )
        with VerticalScroll(id="keys"):
            yield Static(text)
