"""Reconstructs the working folder of a run at any time, for example between two steps.

The result is a snapshot plus the later changes on the tape. If the tape has no changes of files (level
*exchanges*), it is the nearest snapshot, with a note.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from playhead_checkpoint.workspace.tree import Tree as Tree
from playhead_checkpoint.workspace.tree import TreeChange as TreeChange
from playhead_checkpoint.workspace.tree import TreeItem as TreeItem
from playhead_checkpoint.workspace.tree import lay as lay
from playhead_checkpoint.workspace.tree import tree_difference as tree_difference
from playhead_core.boundaries import had
from playhead_core.errors import UsageError
from playhead_core.facts import Fidelity
from playhead_replay.run.run import Run
from playhead_replay.workspace.file_changes import HERE, FileChange, file_changes
from playhead_replay.workspace.folding import Folding, names_changed
from playhead_replay.workspace.resumable_fold import ResumableFold
from playhead_replay.workspace.snapshots import TakenSnapshot, snapshots_of
from playhead_semconv import attributes as a

LATER = "it was changed later, before the snapshot reached it"


@dataclass(frozen=True, slots=True)
class WorkspaceState:
    """The files of a run at one time."""

    tree: Tree
    time_ns: int
    snapshot: TakenSnapshot | None
    """The snapshot that it is based on; None: only the tape."""
    notes: tuple[str, ...]
    """What is missing, and why; empty if it is complete."""

    @property
    def inexact(self) -> list[tuple[str, str]]:
        """The inexact or unknown files, each with the reason."""
        return [(path, item.why) for path, item in self.tree.items() if item.why]

    @property
    def is_exact(self) -> bool:
        """Whether every file is known byte for byte."""
        return not self.notes and not self.inexact


class WorkspaceHistory:
    """The working folder of a run over time. `TapeMissing` if it has no tape."""

    def __init__(self, run: Run) -> None:
        self._run = run
        start = next(run.tape.facts()).attributes
        self.snapshots: list[TakenSnapshot] = snapshots_of(run.tape)
        """Snapshots of the first process of the run, in order."""
        self._has_files = "files" in had(start)
        self._level = str(start.get(a.PLAYHEAD_RUN_LEVEL, ""))
        self._changes = changes_of(run) if self._has_files else []
        self._folds: dict[int, ResumableFold[FileChange, Folding]] = {}
        """By the time from which on changes are applied."""
        self._times = [one.time_ns for one in self._changes]
        self._live_ns = _played_until(run)
        self._tools = sorted(
            one.exchange.time_ns for one in run.exchanges if one.exchange.id.kind == "tool"
        )

    def after(self, number: int) -> WorkspaceState:
        """Return the folder between step ``number`` and the next one; 0: before the first step.

        After the last step: at the end of the run, or so far if it is still running.
        """
        following = self._run.step(number + 1)
        return self.at(self._ended_ns if following is None else following.span.started_ns - 1)

    def at(self, time_ns: int) -> WorkspaceState:
        """Return the folder at a time, in nanoseconds since 1970, UTC.

        `UsageError` if there is neither a snapshot nor a record of file changes.
        """
        if time_ns < self._live_ns:
            raise UsageError(
                f"{self._run.name} replayed its beginning from another run, which has the files",
                hint="look at that run: playhead ls shows which it is",
            )
        if not self.snapshots and not self._has_files:
            raise UsageError(
                f"{self._run.name} was recorded without file changes and without snapshots",
                cause=f"level {self._level}",
                hint="record it again: PLAYHEAD_WORKSPACE=steps playhead record SCRIPT",
            )
        base = self._base(time_ns)
        if base is None:
            return self._of_tape(time_ns)
        if not self._has_files or (base.begun_ns > time_ns and self._is_quiet(time_ns, base.ended_ns)):
            return self._as_taken(base, time_ns)
        folding = self._folded(base.tree, base.begun_ns, time_ns)
        tree = self._mark_later_changes(folding.tree(), base, time_ns)
        return WorkspaceState(tree, time_ns, base, self._notes(base, time_ns))

    def _as_taken(self, snapshot: TakenSnapshot, time_ns: int) -> WorkspaceState:
        return WorkspaceState(snapshot.tree, time_ns, snapshot, self._notes(snapshot, time_ns))

    def _base(self, time_ns: int) -> TakenSnapshot | None:
        """Return the snapshot to begin with.

        That is the next one if nothing changed before its end, else the last one before, else the first.
        Without file changes on the tape: the one that was taken while the program waited for its next
        response, else the nearest.
        """
        behind = next((one for one in self.snapshots if one.begun_ns >= time_ns), None)
        if not self._has_files:
            if behind is not None and behind.ended_ns <= self._waits_until(time_ns):
                return behind
            return min(self.snapshots, key=lambda one: abs(one.begun_ns - time_ns), default=None)
        if behind is not None and self._is_quiet(time_ns, behind.ended_ns):
            return behind
        before = [one for one in self.snapshots if one.ended_ns <= time_ns]
        return before[-1] if before else next(iter(self.snapshots), None)

    def _waits_until(self, time_ns: int) -> int:
        """Return the end of the first step that began after a time."""
        following = next((one for one in self._run.steps if one.span.started_ns > time_ns), None)
        return time_ns if following is None else following.span.ended_ns or self._ended_ns

    def _is_quiet(self, after_ns: int, until_ns: int) -> bool:
        """Whether no recorded change happened between two times."""
        changes = self._between(after_ns, until_ns)
        tools = bisect_right(self._tools, until_ns) - bisect_right(self._tools, after_ns)
        return not tools and all(one.what == "seen" for one in changes)

    def _between(self, after_ns: int, until_ns: int) -> Sequence[FileChange]:
        """Return the changes after one time, up to another."""
        return self._changes[bisect_right(self._times, after_ns) : bisect_right(self._times, until_ns)]

    def _folded(self, tree: Tree, begun_ns: int, time_ns: int) -> Folding:
        """Return the tree with the changes after ``begun_ns``, which also identifies the tree."""
        first = bisect_right(self._times, begun_ns)
        if begun_ns not in self._folds:
            self._folds[begun_ns] = ResumableFold(
                self._changes[first:],
                lambda: Folding(tree),
                Folding.apply,
                Folding.copy,
                len,
            )
        return self._folds[begun_ns].at(bisect_right(self._times, time_ns) - first)

    def _of_tape(self, time_ns: int) -> WorkspaceState:
        folding = self._folded({}, -1, time_ns)
        note = "no file snapshots for this run: only files that it read or wrote are known"
        return WorkspaceState(folding.tree(), time_ns, None, (note, *self._of_tools(0, time_ns)))

    def _mark_later_changes(self, tree: Tree, base: TakenSnapshot, time_ns: int) -> Tree:
        """Mark files that the snapshot saw in a later state, and that were not written before."""
        if base.ended_ns <= time_ns:
            return tree
        since = self._between(base.begun_ns, time_ns)
        known = names_changed(one for one in since if one.what in ("written", "removed"))
        later = names_changed(self._between(time_ns, base.ended_ns))
        found = dict(tree)
        for name in later:
            path = name.removeprefix(HERE)
            item = found.get(path)
            if item is not None and name not in known and item.entry.mtime_ns > time_ns:
                found[path] = TreeItem(item.entry, None, LATER)
        return found

    def _notes(self, base: TakenSnapshot, time_ns: int) -> tuple[str, ...]:
        notes = list(base.left_out)
        if not self._has_files and base.begun_ns != time_ns:
            apart_ms = abs(base.begun_ns - time_ns) // 1_000_000
            where = "before" if base.begun_ns < time_ns else "after"
            notes.append(
                f"level {self._level} records no file changes: this is the snapshot {base.label!r},"
                f" {apart_ms} ms {where}"
            )
        elif base.begun_ns < time_ns:
            notes += self._of_tools(base.begun_ns, time_ns)
        return tuple(notes)

    def _of_tools(self, after_ns: int, until_ns: int) -> list[str]:
        count = bisect_right(self._tools, until_ns) - bisect_right(self._tools, after_ns)
        if not count:
            return []
        return [f"files written by {count} calls of marked tools since then are not on the tape"]

    @cached_property
    def _ended_ns(self) -> int:
        last = (fact.time_ns for tape in self._run.tapes for fact in tape.facts())
        return max(self._run.ended_ns or 0, *last)


def _played_until(run: Run) -> int:
    """Return the time of the last response that a fork or resume got from its origin; else 0."""
    if run.mode not in ("fork", "resume"):
        return 0
    played = (
        one.exchange.time_ns
        for one in run.exchanges
        if one.exchange.ask.details.get(a.PLAYHEAD_FIDELITY) not in (None, Fidelity.LIVE)
    )
    return max(played, default=0)


def changes_of(run: Run) -> list[FileChange]:
    """Return the changes of all processes, by time, with paths relative to the first process."""
    found: list[FileChange] = []
    first = next(run.tape.facts()).attributes.get(a.PLAYHEAD_RUN_CWD)
    for tape in run.tapes:
        start = next(tape.facts(), None)
        cwd = None if start is None else start.attributes.get(a.PLAYHEAD_RUN_CWD)
        for change in file_changes(tape):
            found.append(change if cwd == first else _relative_to(change, str(cwd), str(first)))
    return sorted(found, key=lambda one: one.time_ns)


def _relative_to(change: FileChange, cwd: str, first: str) -> FileChange:
    def spelt(name: str) -> str:
        if not name.startswith(HERE):
            return name
        path = f"{cwd}/{name[len(HERE) :]}"
        return HERE + path[len(first) + 1 :] if path.startswith(f"{first}/") else path

    to = spelt(change.to) if change.what in ("renamed", "copied") else change.to
    return replace(change, name=spelt(change.name), to=to)
