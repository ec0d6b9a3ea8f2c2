"""The keys of the browser, for the bindings and for the help of ``?``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from textual.binding import Binding

from playhead_core.errors import ConfigurationError, nearest


@dataclass(frozen=True, slots=True)
class BrowserKey:
    """Keys that do one thing; with ``back``, and the other way round."""

    name: str
    """By which it is remapped; backwards it is ``NAME-back``."""
    on: str
    """Names of keys as textual has them, ``,`` between them."""
    back: str
    """Keys of the same action backwards; empty if it has no direction."""
    says: str
    """The action, for the help."""

    def bindings(self) -> Iterator[Binding]:
        """Yield the bindings of the keys."""
        action = self.name.replace("-", "_")
        if not self.back:
            yield _binding(self.on, action, self.name)
            return
        yield _binding(self.on, f"{action}(1)", self.name)
        yield _binding(self.back, f"{action}(-1)", f"{self.name}-back")


KEYS = (
    BrowserKey("step", "s", "S", "next step; of a live run: let the agent do one"),
    BrowserKey("over", "n", "N", "next row that is not inside this one"),
    BrowserKey("finish", "f", "F", "out of what encloses it; back: to that itself"),
    BrowserKey("breakpoint", "c", "C", "next breakpoint; of a live run: let the agent go on"),
    BrowserKey("break", "b", "", "set or remove a breakpoint"),
    BrowserKey("error", "e", "E", "next step that failed"),
    BrowserKey("row", "j,down", "k,up", "next row, or line of the details"),
    BrowserKey("page", "pagedown,space", "pageup", "a page on"),
    BrowserKey("pane", "l,right,enter", "h,left", "into the details; back: to the steps"),
    BrowserKey("first", "g,home", "", "first row"),
    BrowserKey("last", "G,end", "", "last row"),
    BrowserKey("mark", "m", "", "mark the row"),
    BrowserKey("return", "apostrophe", "", "return to the mark, and mark where it was"),
    BrowserKey("find", "slash", "", "find a text in the run"),
    BrowserKey("hit", "greater_than_sign", "less_than_sign", "next hit"),
    BrowserKey("noise", "i", "", "show all spans, and fold nothing; again: steps alone"),
    BrowserKey("difference", "d", "", "difference to the mark, the origin, the step before, by turns"),
    BrowserKey("fork", "x", "", "fork from this step: the command, to be changed and run"),
    BrowserKey("edit", "a", "", "edit the request and fork; of a live run: edit what waits"),
    BrowserKey("pause", "p", "", "pause the agent of a live run"),
    BrowserKey("copy", "y", "", "copy the command that shows the step"),
    BrowserKey("copy-link", "Y", "", "copy the link to the step on the receiver's pages"),
    BrowserKey("pager", "o", "", "open the details in the pager, whole"),
    BrowserKey("command", "colon", "", "any command of playhead; % is this step"),
    BrowserKey("help", "question_mark", "", "show or hide the keys"),
    BrowserKey("quit", "q", "", "leave"),
)
TAB_KEYS = "123456"

_SHOWN = {
    "apostrophe": "'",
    "slash": "/",
    "greater_than_sign": ">",
    "less_than_sign": "<",
    "colon": ":",
    "question_mark": "?",
}


def bindings() -> list[Binding]:
    """Return all bindings: those of `KEYS`, and one for each tab."""
    tabs = [_binding(one, f"tab({at})", f"tab-{one}") for at, one in enumerate(TAB_KEYS)]
    return [*(binding for key in KEYS for binding in key.bindings()), *tabs]


def _binding(keys: str, action: str, name: str) -> Binding:
    """Return a binding with priority over the focused widget, so keys act in the order of typing."""
    return Binding(keys, action, show=False, priority=True, id=name)


def keymap(text: str) -> dict[str, str]:
    """Return the keys that a setting gives to actions, ``step=z quit=ctrl+x``. `ConfigurationError`."""
    names = [binding.id or "" for binding in bindings()]
    found: dict[str, str] = {}
    for word in text.split():
        name, _, keys = word.partition("=")
        if name not in names or not keys:
            near = nearest(name, names)
            raise ConfigurationError(
                f"{word} gives no key to an action of playhead browse",
                cause=f"did you mean {near}?" if near else "",
                hint=f"NAME=KEY, NAME one of {', '.join(names)}",
            )
        found[name] = keys
    return found


def help_lines(keymap: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the keys and their actions."""
    for key in KEYS:
        on = _shown(keymap.get(key.name, key.on))
        back = _shown(keymap.get(f"{key.name}-back", key.back)) if key.back else ""
        yield f"{on}  {back}".strip(), key.says
    yield "1–6", "the tabs"


def _shown(keys: str) -> str:
    return " ".join(_SHOWN.get(one, one) for one in keys.split(","))
