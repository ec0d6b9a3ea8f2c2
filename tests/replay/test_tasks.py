"""Task graphs as trees."""

from __future__ import annotations

from typing import Any

from playhead_core.reports import ProgramReport
from playhead_replay.tasks import tasks_of


def task(at: int, id: str, **fields: Any) -> ProgramReport:
    return ProgramReport("task", {"id": id, **fields}, at)


def test_each_task_is_followed_by_its_parts_and_has_its_last_status():
    found = tasks_of(
        [
            task(1, "site", name="build the site", status="running"),
            task(2, "test", parent="site", depends_on=["write"], status="pending"),
            task(3, "write", parent="site", status="running"),
            task(4, "css", parent="write"),
            ProgramReport("goal", {"text": "a site"}, 5),
            task(6, "write", status="completed"),
            task(7, "lone", parent="elsewhere", status="failed"),
        ]
    )
    assert [(one.id, one.depth, one.status, one.ended_ns) for one in found] == [
        ("site", 0, "running", None),
        ("test", 1, "pending", None),
        ("write", 1, "completed", 6),
        ("css", 2, "", None),
        ("lone", 0, "failed", 7),
    ]
    assert (found[0].name, found[1].depends_on, found[2].began_ns) == ("build the site", ["write"], 3)


def test_tasks_that_are_parts_of_each_other_are_listed_once():
    ring = [task(1, "a", parent="c"), task(2, "b", parent="a"), task(3, "c", parent="b")]
    assert [(one.id, one.depth) for one in tasks_of(ring)] == [("a", 0), ("b", 1), ("c", 2)]
    assert [(one.id, one.depth) for one in tasks_of([task(1, "a", parent="a")])] == [("a", 0)]
    many = [task(at, str(at), parent=str(at - 1)) for at in range(5000)]
    assert tasks_of(many)[-1].depth == 4999
