"""Commands to the agent of a live run, and its response in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from playhead_cli.control.orders import WAIT_S, Operator
from playhead_cli.control.state_lines import control_lines, edit_object, pending_document
from playhead_core.errors import UsageError
from playhead_core.rerun.edits import between

if TYPE_CHECKING:
    from playhead_cli.session.session import Session

LEASE_S = 600.0
"""The agent continues by itself after this time, unless another command comes."""


class LiveAgent:
    """The agent of a run. Its methods wait for a receiver, and raise the errors of `Operator`."""

    def __init__(self, session: Session, url: str | None, run: str) -> None:
        """``url``: of the query API; None: of the receiver on the data folder."""
        self._run = run
        self._reached: Callable[[], Operator] = lambda: Operator(session, url)

    def pause(self) -> str:
        """Pause it before its next request."""
        return self._waits(self._reached(), "pause", lease_s=LEASE_S)

    def step(self) -> str:
        """Release the oldest pending request."""
        return self._waits(self._reached(), "step", halt="", lease_s=LEASE_S)

    def go_on(self) -> str:
        """Continue it."""
        return self._said(self._reached().order(self._run, "continue", halt=""))

    def waiting(self) -> Any:
        """Return the pending request as a document. `UsageError` if there is none."""
        return pending_document(self._reached().state(self._run), "")

    def edit(self, old: Any, new: Any) -> str:
        """Edit the pending request, from ``old`` to ``new``."""
        edits = between(old, new)
        if not edits:
            raise UsageError("nothing was edited")
        said = [edit_object(edit) for edit in edits]
        return self._said(self._reached().order(self._run, "edit", halt="", edits=said, state=""))

    def _waits(self, operator: Operator, what: str, **said: Any) -> str:
        state = operator.order(self._run, what, **said)
        return self._said(operator.wait_for_pending(self._run, state, WAIT_S))

    def _said(self, state: dict[str, Any]) -> str:
        return "; ".join(" ".join(line.split()) for line in control_lines(self._run, state))
