"""Checking a store, deleting from it for good, copying it while it is written to."""

from __future__ import annotations

import os
import random
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from support.leftovers import finds
from support.tapes.batches import START_NS, as_if_come_then, facts_of, span_of
from support.whole_store import WholeStore

from playhead_core.errors import ConfigurationError, CorruptTape, StoreError
from playhead_core.facts import Content, Fact
from playhead_receiver.storage import Batch, Query, RunSummary, StoredSpan, open_store, restore
from playhead_receiver.storage.api.retention import FLAGGED, HELD, TEST, Deleted
from playhead_receiver.storage.retention import (
    DAY_S,
    Policy,
    above_budget,
    apply,
    delete_runs,
    duration_s,
    expired,
    first_to_expire,
    outlook,
    policy_of,
    size_of,
)

SHARED = "shared " * 40 + os.urandom(400).hex()
SAID = {number: f"needle-{number}-" + os.urandom(8).hex() for number in range(1, 6)}


def trace(number: int) -> bytes:
    return bytes([number]) * 16


def texts(number: int) -> dict[str, Any]:
    """What run ``number`` says: something that all say, and two texts of its own, one of them long."""
    own = os.urandom(6000).hex()
    return {
        "gen_ai__system_instructions": SHARED,
        "gen_ai__input__messages": f'[{{"content":"{SAID[number]}{"." * 200}"}}]',
        "long": f"{SAID[number]}-long {own}",
        "short": f"{SAID[number]}-short",
    }


def commit_run(store: WholeStore, number: int) -> None:
    instance = bytes([100 + number]) * 16
    large = Content.of(os.urandom(300_000).hex().encode() + f"{SAID[number]}-large".encode())
    facts = [
        Fact(1, 1, "playhead.effect", trace(number), b"s" * 8, instance=instance, seq=0, body=large),
        Fact(
            1,
            1,
            "playhead.effect",
            trace(number),
            b"s" * 8,
            instance=instance,
            seq=1,
            body=Content.chunk(f"{SAID[number]}-fact".encode()),
        ),
    ]
    store.commit(
        Batch([span_of(trace(number), number, service=f"shop{number}", **texts(number))], facts)
    )


def findings(store: WholeStore) -> list[tuple[str, str]]:
    return [(one.what, one.problem) for one in store.verify()]


# Deleting


def test_what_was_deleted_cannot_be_read_out_of_the_files(tmp_path: Path):
    store = open_store(tmp_path)
    for number in SAID:
        commit_run(store, number)
    kinds = ("", "-long", "-short", "-fact", "-large")
    for number, said in SAID.items():
        for kind in kinds:
            assert finds(tmp_path, f"{said}{kind}".encode()), (number, kind)
    done = store.delete([trace(1), trace(3)])
    assert (done.runs, done.spans, done.facts, done.blobs, done.wiped) == (2, 2, 4, 2, True)
    for number, said in SAID.items():
        for kind in kinds:
            assert finds(tmp_path, f"{said}{kind}".encode()) == (number not in (1, 3)), (number, kind)
    assert findings(store) == []
    assert finds(tmp_path, SHARED.encode())
    (left,) = store.spans(trace(2))
    assert SHARED.encode() in left.otlp
    store.delete([trace(number) for number in SAID])
    assert not finds(tmp_path, SHARED.encode())
    assert not finds(tmp_path, b"shop")
    assert list(store.runs(Query(mode=None))) == []
    assert [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()] == []
    store.close()


def test_the_search_for_leftovers_sees_pages_that_were_freed(tmp_path: Path):
    """What the test above looks with is not blind: without overwriting it finds what was deleted."""
    store: Any = open_store(tmp_path)
    store._writer._backend.db.pragma("secure_delete", False)
    for number in SAID:
        store.commit(Batch([span_of(trace(number), number, text=SAID[number])]))
    store.delete([trace(number) for number in SAID])
    assert (tmp_path / "store.sqlite-wal").stat().st_size == 0
    assert any(finds(tmp_path, said.encode()) for said in SAID.values())
    store.close()


def test_a_text_goes_with_the_last_run_that_says_it(tmp_path: Path):
    store = open_store(tmp_path)
    said = [{"content": os.urandom(100).hex()} for _ in range(4)]
    spans = []
    for number in range(1, 5):
        history = "[" + ",".join(f'{{"content":"{one["content"]}"}}' for one in said[:number]) + "]"
        spans.append(span_of(trace(number), number, gen_ai__input__messages=history))
        store.commit(Batch([spans[-1]]))
    for number in range(1, 4):
        store.delete([trace(number)])
        assert findings(store) == []
        assert [list(store.spans(trace(one))) for one in range(1, 5)] == [
            [spans[one - 1]] if one > number else [] for one in range(1, 5)
        ]
        assert all(finds(tmp_path, one["content"].encode()) for one in said)
    again = span_of(trace(9), 9, gen_ai__input__messages=f'[{{"content":"{said[0]["content"]}"}}]')
    store.commit(Batch([again]))
    store.delete([trace(4)])
    assert findings(store) == []
    assert list(store.spans(trace(9))) == [again]
    store.delete([trace(9)])
    assert not any(finds(tmp_path, one["content"].encode()) for one in said)
    assert findings(store) == []
    store.close()


def test_what_is_deleted_may_come_again(tmp_path: Path):
    store = open_store(tmp_path)
    span = span_of(trace(1), 1, **texts(1))
    store.commit(Batch([span]))
    store.delete([trace(1)])
    assert store.commit(Batch([span])).spans_new == 1
    assert list(store.spans(trace(1))) == [span]
    assert [run.name for run in store.runs(Query())] == ["refund-2"]
    assert findings(store) == []
    store.close()


def test_the_tape_of_a_process_that_others_share_stays(tmp_path: Path):
    store = open_store(tmp_path)
    instance = b"i" * 16
    base = Content.of(b"first " * 40)
    whole = Content.of(b"first " * 40 + b"second")
    facts = [
        Fact(1, 1, "playhead.effect", trace(1), instance=instance, seq=0, body=base),
        Fact(
            2, 1, "playhead.effect", trace(1), instance=instance, seq=1, body=Content.chunk(b"x needle")
        ),
        Fact(
            3,
            1,
            "playhead.effect",
            trace(2),
            instance=instance,
            seq=2,
            body=Content(whole.digest, whole.size, b"second", base.digest, base.size),
        ),
        Fact(4, 1, "playhead.effect", trace(1), instance=instance, seq=3, attributes={"a": "b needle"}),
    ]
    store.commit(Batch(facts=facts))
    assert store.delete([trace(1)]).runs == 1
    tape = store.tape(instance)
    found = list(tape.facts())
    assert [fact.seq for fact in found] == [0, 1, 2, 3]
    assert tape.gaps() == []
    assert found[2] == facts[2]
    assert tape.read(whole) == b"first " * 40 + b"second"
    assert not finds(tmp_path, b"needle")
    assert findings(store) == []
    store.delete([trace(2)])
    assert list(store.tape(instance).facts()) == []
    assert findings(store) == []
    store.close()


def test_runs_come_in_while_others_are_deleted(tmp_path: Path):
    store = open_store(tmp_path)
    failures: list[BaseException] = []

    def commit(own: int) -> None:
        try:
            for number in range(12):
                id = bytes([own, number + 1]) * 8
                body = Content.of(bytes([number]) * 600_000)
                fact = Fact(1, 1, "playhead.effect", id, instance=id, seq=0, body=body)
                store.commit(Batch([span_of(id, 1, text=f"{SHARED} {number}", service="a")], [fact]))
                if number % 3 == 0:
                    store.delete([bytes([own, number]) * 8, bytes([own, number + 1]) * 8])
        except BaseException as problem:
            failures.append(problem)

    threads = [threading.Thread(target=commit, args=(own,)) for own in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert findings(store) == []
    assert len(list(store.runs(Query(limit=100)))) == 4 * (12 - 4 - 3)
    store.close()


def test_a_deletion_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = open_store(tmp_path)
    for number in SAID:
        commit_run(store, number)
    before = [list(store.spans(trace(number))) for number in SAID]
    monkeypatch.setattr(
        "playhead_receiver.storage.sql.maintenance.deletion.Deletion._delete_facts", lambda *_: 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        store.delete([trace(1)])
    assert [list(store.spans(trace(number))) for number in SAID] == before
    assert findings(store) == []
    store.close()


def test_a_sweep_takes_blobs_that_nothing_refers_to(tmp_path: Path):
    store: Any = open_store(tmp_path)
    commit_run(store, 1)
    orphan = store._blobs.put(os.urandom(1000))
    assert store.sweep().blobs == 1
    assert not store._blobs.has(orphan)
    assert findings(store) == []
    store.close()


def test_a_blob_stays_while_any_run_needs_it(tmp_path: Path):
    store: Any = open_store(tmp_path)
    same = os.urandom(600_000)
    for number in (1, 2):
        body = Content.of(same)
        fact = Fact(number, 1, "playhead.state", trace(number), body=body, instance=trace(number), seq=0)
        store.commit(Batch([span_of(trace(number), 1)], [fact]))
    (digest,) = store._blobs
    assert store.delete([trace(1)]).blobs == 0
    assert store._blobs.has(digest)
    assert findings(store) == []
    assert store.delete([trace(2)]).blobs == 1
    assert not store._blobs.has(digest)
    store.close()


# Verifying


def damaged(place: Path, sql: str, *values: Any) -> list[tuple[str, str]]:
    connection = apsw.Connection(str(place / "store.sqlite"))
    connection.execute(sql, values)
    connection.close()
    store = open_store(place, read_only=True)
    try:
        return findings(store)
    finally:
        store.close()


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    store = open_store(tmp_path)
    for number in SAID:
        commit_run(store, number)
    store.commit(Batch(facts=facts_of(b"z" * 16, range(4))))
    assert findings(store) == []
    store.close()
    return tmp_path


def test_a_missing_frame_is_found(stored: Path):
    found = damaged(stored, "DELETE FROM bundle WHERE id = 1")
    assert ("span", "frame 1 is not in the store") in found
    assert ("link", "frame 1 is missing") in found
    store = open_store(stored)
    store.delete([trace(number) for number in SAID])
    assert findings(store) == []
    store.close()


def test_a_damaged_frame_is_found(stored: Path):
    found = damaged(
        stored,
        "UPDATE bundle SET data ="
        " CAST(substr(data, 1, length(data) - 9) || x'ff' || substr(data, -8) AS BLOB) WHERE id = 2",
    )
    assert "span" in {what for what, _ in found}


def test_a_span_in_the_place_of_another_is_found(stored: Path):
    found = damaged(stored, "UPDATE span SET bundle = 2 WHERE bundle = 1")
    assert ("span", f"it is {trace(2).hex()}/{bytes([0] * 7 + [2]).hex()}") in found


def test_a_missing_link_is_found(stored: Path):
    assert {what for what, _ in damaged(stored, "DELETE FROM text_link")} == {"link"}


def test_missing_facts_are_found(stored: Path):
    found = damaged(stored, "DELETE FROM fact_run WHERE first = 0 AND last = 3")
    assert found == [("chain", "are missing"), ("facts", "0-3 were received and are missing")]


def test_a_missing_and_a_damaged_blob_are_found(stored: Path):
    first, second, *_ = sorted(path for path in (stored / "blobs").rglob("*") if path.is_file())
    first.unlink()
    second.write_bytes(b"other")
    store = open_store(stored, read_only=True)
    problems = [problem for what, problem in findings(store) if what in ("blob", "facts")]
    assert len([one for one in problems if one.startswith("missing")]) == 1
    assert len([one for one in problems if "differs from its digest" in one]) == 1
    store.close()


def test_a_need_that_is_not_noted_is_found(stored: Path):
    found = damaged(stored, "DELETE FROM blob_use")
    assert {what for what, _ in found} == {"blob"}
    assert all(problem.endswith("is not recorded") or "are recorded" in problem for _, problem in found)


# Retention


def run_of(number: int, status: Any = "success", age_d: float = 0.0, agent: str = "shop") -> RunSummary:
    ended = int(1e18 - age_d * DAY_S * 1e9)
    return RunSummary(
        name=f"{agent}-{number}",
        trace_id=(bytes([number]) * 16).hex(),
        root_span_id="",
        agent=agent,
        status=status,
        started_ns=ended - 1,
        ended_ns=None if status == "running" else ended,
        steps=0,
        errors=0,
        input_tokens=0,
        output_tokens=0,
        models=[],
        instances=[],
        missing=[],
    )


def names(runs: list[RunSummary], policy: Policy, **marks: str) -> list[str]:
    by_trace = {trace(int(key.removeprefix("run"))): {word} for key, word in marks.items()}
    return [run.name for run in expired(runs, by_trace, policy, int(1e18))]


def test_runs_are_kept_by_status_and_age():
    runs = [
        run_of(1, age_d=8),
        run_of(2, age_d=6),
        run_of(3, "failure", age_d=29),
        run_of(4, "failure", age_d=31),
        run_of(5, "interrupted", age_d=31),
        run_of(6, "running", age_d=99),
        run_of(7, age_d=7),
    ]
    assert names(runs, Policy()) == ["shop-4", "shop-5", "shop-1"]


def test_what_comes_late_is_kept_from_then_on():
    """An old run that is imported, or lay in a spool, does not go at once."""
    old = run_of(1, age_d=400)
    for days, gone in ((6, []), (8, ["shop-1"])):
        come = msgspec.structs.replace(old, arrived_ns=int(1e18 - days * DAY_S * 1e9))
        assert names([come], Policy()) == gone


def test_marks_and_agents_say_otherwise():
    runs = [run_of(1, age_d=80), run_of(2, age_d=2), run_of(3, age_d=900), run_of(4, age_d=100)]
    marks = {"run1": FLAGGED, "run2": TEST, "run3": HELD, "run4": FLAGGED}
    assert names(runs, Policy(), **marks) == ["shop-4", "shop-2"]
    policy = Policy(agents_s={"chat": DAY_S})
    assert names([run_of(5, age_d=2, agent="chat"), run_of(6, age_d=2)], policy) == ["chat-5"]


def test_a_share_of_the_successes_is_kept_for_longer():
    runs = [run_of(number, age_d=2) for number in range(1, 201)]
    gone = names(runs, Policy(success_share=0.25))
    assert gone == [f"shop-{number}" for number in range(1, 192)]
    assert names([run_of(1, "failure", age_d=2)], Policy(success_share=0.25)) == []


def test_a_share_is_told_by_what_is_random_in_an_id():
    """Ids that begin with a time, as those of AWS X-Ray do: a quarter of them is kept all the same."""
    runs = [run_of(1, age_d=2) for _ in range(400)]
    ids = [f"6740aaaa{os.urandom(12).hex()}" for _ in runs]
    runs = [msgspec.structs.replace(run, trace_id=id) for run, id in zip(runs, ids, strict=True)]
    gone = expired(runs, {}, Policy(success_share=0.25), int(1e18))
    assert 200 < len(gone) < 380


def test_the_first_to_expire_are_found_without_reading_all_runs(tmp_path: Path):
    draw, day_us, days = random.Random(7), 86_400_000_000, 60
    with closing(open_store(tmp_path)) as store:
        spans = list[StoredSpan]()
        for number in range(1, 251):
            start_us = draw.randrange(days * day_us) if number <= 125 else days * day_us + number
            end_ns = START_NS + (start_us + draw.randrange(3 * day_us)) * 1000
            spans.append(span_of(trace(number), start_us, end_ns=end_ns, error=draw.random() < 0.2))
        store.commit(Batch(spans))
        for number, word in ((3, HELD), (5, FLAGGED), (7, TEST), (8, TEST)):
            store.mark(trace(number), word)
    as_if_come_then(tmp_path)
    with closing(open_store(tmp_path)) as store:
        runs, marks = list(store.runs(Query(mode=None, limit=1000))), store.marks()
        for words in (
            "success=7d",
            "success=1d failure=1d",
            "share=0.1",
            "failure=forever",
            "agent:refund=2d",
        ):
            policy = policy_of(words)
            assert policy is not None
            for day in (0, 1, 6, 20, 58, days, 65, 200):
                now_ns = START_NS + day * day_us * 1000
                found = first_to_expire(store, marks, policy, now_ns)
                assert expired(found, marks, policy, now_ns) == expired(runs, marks, policy, now_ns)
                assert outlook(found, marks, policy, now_ns) == outlook(runs, marks, policy, now_ns)
        now_ns = START_NS + (days + 1) * day_us * 1000
        young = first_to_expire(store, {}, Policy(), now_ns)
        assert len(young) <= 126 < len(runs)


def test_a_policy_is_applied_within_a_budget(tmp_path: Path):
    store = open_store(tmp_path)
    for number in range(1, 9):
        store.commit(Batch([span_of(trace(number), number, text=os.urandom(60_000).hex())]))
    store.mark(trace(1), HELD)
    store.mark(trace(2), FLAGGED)
    assert store.marks() == {trace(1): {HELD}, trace(2): {FLAGGED}}
    policy = Policy(success_s=1e12, budget_bytes=store.size_bytes() * 3 // 4)
    done = apply(store, policy, time.time_ns())
    left = [run.name for run in store.runs(Query())]
    assert {"refund-1", "refund-2", "refund-8"} <= set(left) and "refund-3" not in left
    assert done.runs == 8 - len(left)
    assert store.size_bytes() <= policy.budget_bytes  # type: ignore[operator]
    store.mark(trace(1), HELD, on=False)
    later_ns = time.time_ns() + int(8 * DAY_S * 1e9)
    noted: list[str] = []
    assert apply(store, Policy(flagged_s=1e12), later_ns, noted.append, "ann").runs == len(left) - 1
    assert [run.name for run in store.runs(Query())] == ["refund-2"]
    told = [one for one in store.tombstones() if one.by == "ann"]
    assert sorted(id.hex() for one in told for id, _ in one.runs) == sorted(noted)
    assert len(noted) == len(left) - 1
    assert findings(store) == []
    store.close()


def test_what_goes_on_stays_however_small_the_budget_is(tmp_path: Path):
    store = open_store(tmp_path)
    store.commit(Batch([span_of(trace(1), 1, service="over")]))
    store.commit(Batch([span_of(trace(2), 2, parent=9, service="going-on")]))
    assert [(run.name, run.status) for run in store.runs(Query())] == [
        ("going-on-1", "running"),
        ("over-1", "success"),
    ]
    assert apply(store, Policy(budget_bytes=0), time.time_ns()).runs == 1
    assert [run.name for run in store.runs(Query())] == ["going-on-1"]
    store.close()


def test_a_policy_is_read_from_words():
    assert policy_of("off") is None
    assert policy_of("") == Policy()
    words = "success=1h failure=2d flagged=4w test=5s agent:refund=3s share=0.25 budget=64K"
    assert policy_of(words) == Policy(
        success_s=3600,
        failure_s=2 * DAY_S,
        flagged_s=28 * DAY_S,
        test_s=5,
        agents_s={"refund": 3},
        success_share=0.25,
        budget_bytes=65_536,
    )
    named = policy_of("'agent:order desk=1w' agent:a=b=2d success=forever")
    assert named is not None
    assert named.agents_s == {"order desk": 7 * DAY_S, "a=b": 2 * DAY_S}
    assert named.success_s > 1000 * 365 * DAY_S


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("soon", "retention soon: unknown word"),
        ("success=soon", "retention success=soon: 'soon' is not a duration"),
        ("success=7d,failure=30d", "retention success=7d,failure=30d: unknown word"),
        ("success=7d success=8d", "retention: success is given twice"),
        ("share=2", "retention share=2: '2' is not a share"),
        ("agent=1d", "retention agent=1d: unknown word"),
        ("agent:=1d", "retention agent:=1d: unknown word"),
        ("budget=much", "retention budget=much: 'much' is not a size"),
        ("'agent:a=1d", 'retention "\'agent:a=1d": No closing quotation'),
    ],
)
def test_a_policy_that_cannot_be_read_says_which_word_is_wrong(wrong: str, said: str):
    with pytest.raises(ConfigurationError) as caught:
        policy_of(wrong)
    assert caught.value.what.startswith(said)
    assert caught.value.hint or "twice" in said


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("success=much", "90d, 12h, 30m, 10s or forever"),
        ("budget=much", "10G, 500M or 64K"),
        ("share=much", "a number from 0 to 1: 0.1"),
    ],
)
def test_a_value_that_cannot_be_read_comes_with_one_that_can(wrong: str, hint: str):
    with pytest.raises(ConfigurationError) as refused:
        policy_of(wrong)
    assert refused.value.hint == hint


def test_durations_and_sizes_are_read():
    assert (duration_s("90d"), duration_s("1.5h"), duration_s("10s")) == (90 * DAY_S, 5400.0, 10.0)
    assert (size_of("10G"), size_of("64KiB"), size_of("12")) == (10 << 30, 64 << 10, 12)
    for read, text in ((duration_s, "90"), (duration_s, "d"), (size_of, "much"), (size_of, "-1G")):
        with pytest.raises(ConfigurationError):
            read(text)


# Copying


def test_a_backup_is_one_state_and_comes_back(tmp_path: Path):
    store = open_store(tmp_path / "data")
    for number in (1, 2):
        commit_run(store, number)
    stop = threading.Event()

    def go_on() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            store.commit(
                Batch([span_of(b"w" * 16, number, text=SHARED)], facts_of(b"w" * 16, [number - 1]))
            )

    writer = threading.Thread(target=go_on)
    writer.start()
    reading = open_store(tmp_path / "data", read_only=True)
    try:
        reading.backup(tmp_path / "copy")
    finally:
        stop.set()
        writer.join()
        reading.close()
    restore(tmp_path / "copy", tmp_path / "other")
    again = open_store(tmp_path / "other")
    for number in (1, 2):
        assert list(again.spans(trace(number))) == list(store.spans(trace(number)))
        instance = bytes([100 + number]) * 16
        assert list(again.tape(instance).facts()) == list(store.tape(instance).facts())
    assert len(list(again.spans(b"w" * 16))) == len(list(again.tape(b"w" * 16).facts()))
    assert findings(again) == []
    assert again.commit(Batch([span_of(b"n" * 16, 1)])).spans_new == 1
    again.close()
    store.close()
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "copy").rglob("*") if path.is_file()}
    assert modes == {0o600}


def test_a_backup_does_not_overwrite_and_a_restore_neither(tmp_path: Path):
    store = open_store(tmp_path / "data")
    commit_run(store, 1)
    store.backup(tmp_path / "copy")
    with pytest.raises(StoreError, match="not empty"):
        store.backup(tmp_path / "copy")
    store.close()
    with pytest.raises(StoreError, match="already"):
        restore(tmp_path / "copy", tmp_path / "data")
    with pytest.raises(StoreError, match="no backup"):
        restore(tmp_path, tmp_path / "new")


def test_a_flag_shortens_no_time():
    run = run_of(1, "failure", age_d=100)
    policy = Policy(failure_s=200 * DAY_S, flagged_s=90 * DAY_S)
    assert policy.kept_s(run, set()) == policy.kept_s(run, {FLAGGED}) == 200 * DAY_S
    assert policy.kept_s(run_of(2, age_d=1), {FLAGGED}) == 90 * DAY_S
    assert names([run], policy, run1=FLAGGED) == []


@pytest.mark.parametrize(
    ("size", "used", "above"),
    [(99, 99, 0), (100, 100, 0), (101, 99, 0), (101, 100, 0), (101, 101, 1), (200, 150, 50)],
)
def test_above_the_budget_is_what_is_used_of_a_file_that_is_too_large(size: int, used: int, above: int):
    """What is freed in the file is used again before the file grows."""

    class Filled:
        def size_bytes(self) -> int:
            return size

        def used_bytes(self) -> int:
            return used

        def checkpoint_bytes(self) -> int:
            return 10

    assert above_budget(Filled(), Policy(budget_bytes=110)) == above  # type: ignore[arg-type]
    assert above_budget(Filled(), Policy()) == 0  # type: ignore[arg-type]


def test_many_runs_are_deleted_some_at_a_time_and_one_that_cannot_be_stops_none():
    asked: list[int] = []

    class Damaged:
        def delete(self, ids: list[bytes], *_: str) -> Deleted:
            asked.append(len(ids))
            if trace(130) in ids:
                raise CorruptTape("a fact of it is damaged")
            return Deleted(len(ids), 2 * len(ids), 3 * len(ids), 4 * len(ids))

    noted: list[str] = []
    runs = [run_of(number, age_d=1) for number in range(1, 151)]
    done = delete_runs(Damaged(), runs, noted.append)  # type: ignore[arg-type]
    assert asked == [64, 64, 22, *[1] * 22]
    assert (done.runs, done.spans, done.facts, done.blobs) == (149, 298, 447, 596)
    assert noted == [run.trace_id for run in runs]
