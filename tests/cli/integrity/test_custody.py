"""What a file shows of custody: chains go out with a run and come in with it; each change is named."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from conformance.suite.history import SERVICE, Service, trace_of
from support.starting.cli import CommandLine, refund, store_run
from support.tapes import tampering
from support.tapes.batches import facts_of, span_of
from support.tapes.handmade import INSTANCE, TRACE

from playhead_core.errors import CorruptTape
from playhead_core.facts import Fact
from playhead_core.integrity import Link
from playhead_core.tape.frames import (
    CHAINED,
    WHOLE,
    Footer,
    Header,
    Record,
    SpanRecord,
    encode,
    read_whole,
)
from playhead_receiver.archive.run_files import Material
from playhead_receiver.integrity import FileChains
from playhead_receiver.storage import Batch, open_store
from playhead_replay.tape_files.integrity import inspect
from playhead_replay.tape_files.tape_file import read_tape_file

STREAM = b"s" * 16


def elsewhere(playhead: CommandLine, tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path / "elsewhere", playhead._capture)


def service_facts() -> list[Fact]:
    service = Service()
    for number in range(8):
        service.request(number)
        service.idle(0.1)
    return service.facts


def in_windows(data_dir: Path, facts: list[Fact], size: int = 7) -> None:
    with closing(open_store(data_dir)) as store:
        for at in range(0, len(facts), size):
            store.commit(Batch(facts=facts[at : at + size]))


def chain(data_dir: Path, instance: bytes) -> list[Link]:
    with closing(open_store(data_dir, read_only=True)) as store:
        return store.chain(instance)


@pytest.fixture
def exported(playhead: CommandLine, tmp_path: Path) -> Path:
    """A run whose facts came in several commits, not in their order, with its spans."""
    made = refund()
    with closing(open_store(playhead.data_dir)) as store:
        windows = [made.facts[at : at + 5] for at in range(0, len(made.facts), 5)]
        for window in [windows[0], *reversed(windows[1:])]:
            store.commit(Batch(facts=window))
        store.commit(Batch(made.spans))
    path = tmp_path / "refund.tape"
    assert playhead("export", "refund-1", "-o", str(path)).status == 0
    return path


@pytest.fixture
def request_of_a_service(playhead: CommandLine, tmp_path: Path) -> Path:
    in_windows(playhead.data_dir, service_facts())
    path = tmp_path / "request.tape"
    assert playhead("export", trace_of(3).hex(), "-o", str(path)).status == 0
    return path


def rewritten(path: Path, records: list[Record]) -> None:
    """A file as whoever knows the format writes it."""
    facts = sum(isinstance(one, Fact) for one in records)
    spans = sum(isinstance(one, SpanRecord) for one in records)
    plain = sum(isinstance(one, Header) for one in records) + facts + spans
    footer = Footer(facts, spans, len(records) - plain)
    path.write_bytes(CHAINED + b"".join(map(encode, [*records, footer])))


def tampered(path: Path, to: Path, chance: random.Random) -> tuple[bytes, tampering.Tampered]:
    """A file of which one fact was changed, and the process that it is of."""
    records = [one for one in read_whole(path.read_bytes()) if not isinstance(one, Footer)]
    instances = sorted({one.instance for one in records if isinstance(one, Fact)})
    instance = chance.choice(instances)
    places = [
        place for place, one in enumerate(records) if isinstance(one, Fact) and one.instance == instance
    ]
    facts = [one for one in records if isinstance(one, Fact) and one.instance == instance]
    begin = chance.randrange(len(facts))
    end = min(len(facts), begin + chance.randrange(1, 30))
    done = chance.choice(tampering.WAYS)(facts[begin:end], chance)
    changed: list[Record] = [*facts[:begin], *done.facts, *facts[end:]]
    rewritten(to, [*records[: places[0]], *changed, *records[places[-1] + 1 :]])
    return instance, done


def named(path: Path, instance: bytes) -> Iterator[int]:
    for one in inspect(read_tape_file(path)):
        for found in one.differences:
            if one.instance == instance and found.first >= 0:
                yield from range(found.first, found.last + 1)


def trials(path: Path, count: int, seed: int, tmp_path: Path) -> None:
    chance, copy, refused = random.Random(seed), tmp_path / "copy.tape", 0
    assert not any(one.differences for one in inspect(read_tape_file(path)))
    for number in range(count):
        instance, done = tampered(path, copy, chance)
        try:
            found = set(named(copy, instance))
        except CorruptTape as problem:  # no playhead writes such a fact: it is not even read
            assert f"{copy.name} is damaged at byte" in problem.what
            refused += 1
            continue
        assert done.numbers <= found, (number, done.how, done.numbers, found)
    print(f"{count - refused} of {count} named, {refused} not even read")


def test_a_file_has_the_chain_of_its_process(playhead: CommandLine, exported: Path):
    assert exported.read_bytes().startswith(CHAINED)
    (process,) = inspect(read_tape_file(exported))
    links = chain(playhead.data_dir, INSTANCE)
    assert process.head == links[-1].link
    assert (process.links, process.differences) == (len(links), [])
    there = playhead("verify", str(exported))
    assert (there.status, there.out) == (0, "")
    assert f"{exported} matches its hash chain" in there.err
    said = json.loads(playhead("verify", str(exported), "--json").out)
    assert said["findings"] == [] and said["trace_id"] == TRACE.hex()
    assert [one["state"] for one in said["processes"]] == ["whole"]


def test_a_fact_of_a_file_that_was_changed_is_named(playhead: CommandLine, exported: Path):
    records = [one for one in read_whole(exported.read_bytes()) if not isinstance(one, Footer)]
    place = next(at for at, one in enumerate(records) if isinstance(one, Fact) and one.seq == 9)
    fact = records[place]
    assert isinstance(fact, Fact)
    records[place] = msgspec.structs.replace(fact, time_ns=fact.time_ns + 1)
    rewritten(exported, records)
    found = playhead("verify", str(exported))
    assert (found.status, found.lines) == (1, [f"chain {INSTANCE.hex()} 9: was replaced"])
    assert "does not match its hash chain" in found.err
    (one,) = json.loads(playhead("verify", str(exported), "--json").out)["findings"]
    assert (one["instance"], one["first"], one["last"]) == (INSTANCE.hex(), 9, 9)


def test_each_of_forty_changes_of_a_file_is_named(exported: Path, tmp_path: Path):
    trials(exported, 40, 3, tmp_path)


def test_each_of_forty_changes_of_a_part_is_named(request_of_a_service: Path, tmp_path: Path):
    trials(request_of_a_service, 40, 4, tmp_path)


@pytest.mark.acceptance
@pytest.mark.timeout(1800)
def test_each_of_a_thousand_changes_of_a_file_is_named(exported: Path, tmp_path: Path):
    trials(exported, 1000, 5, tmp_path)


@pytest.mark.acceptance
@pytest.mark.timeout(1800)
def test_each_of_a_thousand_changes_of_a_part_is_named(request_of_a_service: Path, tmp_path: Path):
    trials(request_of_a_service, 1000, 6, tmp_path)


def test_another_store_keeps_the_chain(playhead: CommandLine, exported: Path, tmp_path: Path):
    there = elsewhere(playhead, tmp_path)
    for _ in range(2):
        assert there("import", str(exported)).status == 0
        assert chain(there.data_dir, INSTANCE) == chain(playhead.data_dir, INSTANCE)
        assert there("verify").status == 0
    again = tmp_path / "again.tape"
    assert there("export", "refund-1", "-o", str(again)).status == 0
    (before,), (after,) = inspect(read_tape_file(exported)), inspect(read_tape_file(again))
    assert after == before


def test_a_copy_of_a_file_keeps_the_chain(playhead: CommandLine, exported: Path, tmp_path: Path):
    again = tmp_path / "again.tape.gz"
    assert playhead("export", str(exported), "-o", str(again)).status == 0
    assert inspect(read_tape_file(again)) == inspect(read_tape_file(exported))


def test_what_comes_later_is_linked_behind_what_was_brought(playhead: CommandLine, tmp_path: Path):
    facts = facts_of(STREAM, range(60))
    with closing(open_store(playhead.data_dir)) as store:
        store.commit(Batch([span_of(STREAM, 1)], facts[:20]))
        store.commit(Batch(facts=facts[20:30]))
    path = tmp_path / "half.tape"
    assert playhead("export", STREAM.hex(), "-o", str(path)).status == 0
    there = elsewhere(playhead, tmp_path)
    assert there("import", str(path)).status == 0
    for store_of in (playhead, there):
        in_windows(store_of.data_dir, facts)
        assert store_of("verify").status == 0
    ours, theirs = chain(playhead.data_dir, STREAM), chain(there.data_dir, STREAM)
    assert theirs[:2] == ours[:2] and len(theirs) == len(ours)


def test_facts_that_are_not_those_of_the_brought_chain_are_named(
    playhead: CommandLine, exported: Path, tmp_path: Path
):
    copy = tmp_path / "copy.tape"
    instance, done = tampered(exported, copy, random.Random(8))
    there = elsewhere(playhead, tmp_path)
    assert there("import", str(copy)).status == 0
    found = there("verify")
    assert found.status == 1
    assert any(line.startswith(f"chain {instance.hex()} ") for line in found.lines), done.how


def test_a_chain_for_a_process_that_is_here_is_not_taken(playhead: CommandLine, tmp_path: Path):
    facts = facts_of(STREAM, range(30))
    in_windows(playhead.data_dir, facts)
    there = elsewhere(playhead, tmp_path)
    in_windows(there.data_dir, facts, size=30)
    before = chain(there.data_dir, STREAM)
    with closing(open_store(there.data_dir)) as store:
        store.commit(Batch(links=chain(playhead.data_dir, STREAM)))
        assert store.chain(STREAM) == before
        assert list(store.verify()) == []


def test_a_chain_without_its_facts_misses_them(playhead: CommandLine, tmp_path: Path):
    in_windows(playhead.data_dir, facts_of(STREAM, range(30)))
    there = elsewhere(playhead, tmp_path)
    with closing(open_store(there.data_dir)) as store:
        store.commit(Batch(links=chain(playhead.data_dir, STREAM)))
        assert [(one.where, one.problem) for one in store.verify()] == [
            (f"{STREAM.hex()} 0-29", "are missing")
        ]
        store.commit(Batch(facts=facts_of(STREAM, range(30))))
        assert list(store.verify()) == []


def test_a_part_of_a_process_has_the_digests_of_what_it_leaves_out(
    playhead: CommandLine, request_of_a_service: Path
):
    found = read_tape_file(request_of_a_service)
    (process,) = inspect(found)
    assert process.part and process.origin == SERVICE
    assert process.head == chain(playhead.data_dir, SERVICE)[-1].link
    assert (process.differences, process.is_chained) == ([], True)
    links = found.chains[SERVICE]
    assert any(one.digests for one in links) and not all(one.digests for one in links)
    assert playhead("verify", str(request_of_a_service)).status == 0


def test_a_tampered_store_is_not_laundered_by_an_export(playhead: CommandLine, tmp_path: Path):
    from conformance.suite.custody import tamper

    in_windows(playhead.data_dir, service_facts())
    with closing(open_store(playhead.data_dir)) as store:
        tamper(store, random.Random(2))
    path = tmp_path / "run.tape"
    names = [trace_of(number).hex() for number in range(8)]
    states: set[int] = set()
    for name in names:
        assert playhead("export", name, "-o", str(path)).status == 0
        states.add(playhead("verify", str(path)).status)
    assert 1 in states


def test_a_file_without_a_chain_is_said_to_have_none(playhead: CommandLine, tmp_path: Path):
    store_run(playhead.data_dir, refund())
    path = tmp_path / "plain.tape"
    with closing(open_store(playhead.data_dir, read_only=True)) as store:
        material = Material.of_store(store, "refund-1")
        material.chains = FileChains({})
        material.write_tape(path)
    assert path.read_bytes().startswith(WHOLE)
    found = playhead("verify", str(path))
    assert found.status == 0
    assert "not chained, so changes cannot be detected" in found.err
    assert "parts without a hash chain may have been changed" in found.err
    said = json.loads(playhead("verify", str(path), "--json").out)
    assert [one["state"] for one in said["processes"]] == ["not chained"]
