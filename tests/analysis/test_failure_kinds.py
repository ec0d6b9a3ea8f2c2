"""Failed runs are grouped by cause, and like runs are found."""

from __future__ import annotations

from random import Random

from support.analysis.made_paths import path

from playhead_analysis.failure_kinds import FailedRun, cause_of, kinds_of, shape_of
from playhead_analysis.likeness import runs_like
from playhead_replay.failures.find import Failure


def failure(type_: str, code: str, place: str, name: str, evidence: str, **fields: bool) -> Failure:
    number = int(place.partition(".")[0]) if place else None
    return Failure(type_, code, number, place, name, "error", evidence, **fields)  # type: ignore[arg-type]


def test_three_planted_causes_among_three_hundred_runs_are_found():
    rng = Random(7)
    others = [path("chat search chat " * rng.randint(1, 3), f"good-{n}") for n in range(288)]
    failed: dict[str, list[FailedRun]] = {"slow": [], "refused": [], "shape": []}
    for n in range(5):
        message = f"TimeoutError: no answer of http://shop:{rng.randint(1000, 9999)}/v1 in {n + 3}.5 s"
        run = path("chat search " * n + "chat refund! chat", f"slow-{n}", status="failure")
        at = str(len(run.steps) - 1)
        failed["slow"].append(FailedRun(run, failure("tool", "timeout", at, "refund", message)))
    for n in range(4):
        run = path("chat audit chat", f"refused-{n}", status="failure")
        evidence = f"429 for organization org-{rng.getrandbits(40):x}, try again in {n + 1}s"
        failed["refused"].append(FailedRun(run, failure("model", "rate_limit", "3", "gpt-4o", evidence)))
    for n in range(3):
        run = path("chat refund! chat", f"shape-{n}", status="failure")
        evidence = f"'{rng.getrandbits(32)}' is not of type 'integer': order"
        failed["shape"].append(
            FailedRun(run, failure("tool", "invalid_response", "2", "refund", evidence))
        )
    mixed = [run for runs in failed.values() for run in runs]
    rng.shuffle(mixed)
    kinds = kinds_of(mixed, others)
    assert [(kind.code, sorted(kind.runs)) for kind in kinds] == [
        ("timeout", [f"slow-{n}" for n in range(5)]),
        ("rate_limit", [f"refused-{n}" for n in range(4)]),
        ("invalid_response", [f"shape-{n}" for n in range(3)]),
    ]
    assert kinds[0].message == "TimeoutError: no answer of … in … s"
    assert [kind.explained_by for kind in kinds] == [["refund"], ["audit"], ["refund"]]
    rng.shuffle(mixed)
    assert kinds_of(mixed, others[::-1]) == kinds


def test_the_cause_of_a_run_is_what_it_did_not_recover_from():
    retried = failure("tool", "timeout", "2", "search", "slow", recovered=True)
    broken = failure("tool", "api_error", "4", "refund", "500")
    end = failure("orchestration", "uncaught_exception", "", "RuntimeError", "refund failed")
    assert cause_of([end, retried, broken]) is broken
    assert cause_of([end, retried]) is end
    assert cause_of([retried]) is None
    unknown = kinds_of([FailedRun(path("chat", status="failure"), None)])
    assert [(kind.type, kind.code, kind.share) for kind in unknown] == [("", "", 1.0)]


def test_a_message_loses_what_differs_from_run_to_run():
    hostile = "order 81 of \x1b[31m'Ada' at 0x7f2c: 5f3c9a1e-1111-2222-3333-444455556666\n" + "x" * 9999
    assert shape_of(hostile).startswith("order … of \\u001b[…m… at …: …")
    assert len(shape_of(hostile)) < 400


def test_the_runs_most_like_another_come_first_with_reasons():
    run = path("chat search chat refund!", "a-1", status="failure")
    others = [
        path("chat search chat", "a-2"),
        path("chat search chat refund!", "a-3", status="failure"),
        path("chat mail chat mail chat", "a-4"),
        run,
    ]
    found = runs_like(run, others)
    assert [one.name for one in found] == ["a-3", "a-2", "a-4"]
    assert (found[0].likeness, found[0].failures) == (1.0, ["refund timeout"])
    assert (found[2].only_here, found[2].only_there) == (["mail"], ["refund", "search"])
    assert runs_like(run, others, limit=1) == found[:1]
