"""The task graph that a program reports: its tasks as a tree, each with its last status."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from playhead_core.reports import ProgramReport
from playhead_replay.json_objects.findings import TaskItem

ENDED: Final = frozenset(("completed", "failed", "cancelled", "skipped"))
"""Statuses of tasks that are over."""


@dataclass(slots=True)
class Task:
    """A task of the task graph."""

    id: str
    began_ns: int
    """When it was first reported."""
    name: str = ""
    status: str = ""
    """The last one that was reported."""
    parent: str = ""
    """The task that it is a part of."""
    depends_on: list[str] = field(default_factory=list[str])
    """Ids of the tasks before it."""
    ended_ns: int | None = None
    depth: int = 0
    """In the tree of parts; 0: part of no task."""

    def to_json(self) -> TaskItem:
        """Return it as an object of plain values."""
        return {
            "id": self.id,
            "name": self.name or None,
            "status": self.status or None,
            "parent": self.parent or None,
            "depends_on": self.depends_on,
            "began_ns": self.began_ns,
            "ended_ns": self.ended_ns,
            "depth": self.depth,
        }


def tasks_of(reports: Iterable[ProgramReport]) -> list[Task]:
    """Return the tasks in the order of the tree: each one followed by its parts.

    Of several reports of a task, the last value of each field counts.
    """
    tasks: dict[str, Task] = {}
    for one in reports:
        if one.kind != "task":
            continue
        task = tasks.setdefault(one.text("id"), Task(one.text("id"), one.time_ns))
        task.name = one.text("name") or task.name
        task.parent = one.text("parent") or task.parent
        task.depends_on = one.texts("depends_on") or task.depends_on
        if status := one.text("status"):
            task.status = status
            task.ended_ns = one.time_ns if status in ENDED else None
    parts: dict[str, list[Task]] = {}
    for task in tasks.values():
        parts.setdefault(task.parent if task.parent in tasks else "", []).append(task)
    found = {one.id: one for one in _below("", 0, parts)}
    for left in tasks.values():
        if left.id not in found:  # parents in a ring: it has none
            parts[left.parent].remove(left)
            found |= {one.id: one for one in (left, *_below(left.id, 1, parts))}
    return list(found.values())


def _below(id: str, depth: int, parts: dict[str, list[Task]]) -> Iterator[Task]:
    waiting = [(one, depth) for one in reversed(parts.pop(id, []))]
    while waiting:
        task, task.depth = waiting.pop()
        yield task
        waiting += [(one, task.depth + 1) for one in reversed(parts.pop(task.id, []))]
