"""The caller's path: what is appended is on the tape, numbered, whatever happens meanwhile."""

import gc
import os
import stat
import threading
from contextlib import suppress

import pytest
from support.tapes.spools import chunk, eventually, forget, read_all, state, tape_exporter_for, tape_of

from playhead_core.facts import Content, Fact, digest_of
from playhead_core.tape.frames import SpanRecord
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_exporter.spool import LiveSegments, Spool, SpoolFolders
from playhead_exporter.spool.folders import remove_file, remove_folder
from playhead_semconv import attributes as a
from playhead_semconv import events as e


def test_facts_are_numbered_and_come_back_equal(tape_exporter, settings):
    facts = [chunk(bytes([n])) for n in range(100)]
    assert [tape_exporter.sink.append(fact) for fact in facts] == list(range(100))
    tape = tape_of(tape_exporter)
    assert tape == facts
    assert {fact.instance for fact in tape} == {tape_exporter.sink.instance}
    assert len(tape_exporter.sink.instance) == 16


def test_spans_stand_where_they_finished(tape_exporter, settings):
    tape_exporter.sink.append(chunk())
    tape_exporter.sink.append_span(SpanRecord(b"otlp"))
    tape_exporter.sink.append(chunk())
    assert [type(record) for record in tape_of(tape_exporter)] == [Fact, SpanRecord, Fact]


def test_nothing_is_made_before_the_first_fact(tape_exporter, tmp_path):
    assert list(tmp_path.iterdir()) == []
    assert tape_exporter.sink.current is None


def test_heads_follow_one_another_and_nothing_is_lost_between(tape_exporter, settings):
    facts = [chunk(bytes(50_000)) for _ in range(100)]
    for fact in facts:
        tape_exporter.sink.append(fact)
    assert tape_exporter.sink.current.number > 3
    assert tape_of(tape_exporter) == facts
    eventually(lambda: len(tape_exporter.sink.active_segments) == 1)
    assert tape_of(tape_exporter) == facts


def test_a_frame_that_is_larger_than_a_head_gets_a_larger_one(tape_exporter, settings):
    tape_exporter.sink.append(state(small=1))
    tape_exporter.sink.append(state(text="x" * 3_000_000))
    tape_exporter.sink.append(state(small=2))
    assert [len(str(fact.attributes)) for fact in tape_of(tape_exporter)] == [12, 3_000_012, 12]


def test_a_long_body_is_split_into_blobs_that_precede_it(tape_exporter, settings):
    data = os.urandom(2_500_000)
    seq = tape_exporter.sink.append(
        Fact(5, 7, e.PLAYHEAD_EXCHANGE_REQUEST, bytes(16), bytes(8), body=Content.of(data))
    )
    tape = MemoryTape(tape_of(tape_exporter))
    facts = list(tape.facts())
    assert seq == 3
    assert [fact.name for fact in facts] == [e.PLAYHEAD_BLOB] * 3 + [e.PLAYHEAD_EXCHANGE_REQUEST]
    assert [fact.attributes[a.PLAYHEAD_BLOB_OFFSET] for fact in facts[:3]] == [0, 1 << 20, 2 << 20]
    assert {fact.attributes[a.PLAYHEAD_BLOB_SIZE] for fact in facts[:3]} == {2_500_000}
    assert facts[3].body == Content(digest_of(data), 2_500_000)
    assert tape.read(facts[3].body) == data


def test_the_long_tail_of_an_extension_is_split_too(tape_exporter, settings):
    head, tail = b"h" * 100, os.urandom(1_500_000)
    whole = head[:90] + tail
    tape_exporter.sink.append(Fact(5, 7, e.PLAYHEAD_EXCHANGE_REQUEST, body=Content.of(head)))
    extension = Content(digest_of(whole), len(whole), tail, digest_of(head), 90)
    tape_exporter.sink.append(Fact(6, 7, e.PLAYHEAD_EXCHANGE_REQUEST, body=extension))
    tape = MemoryTape(tape_of(tape_exporter))
    *_, last = tape.facts()
    assert last.body == Content(digest_of(whole), len(whole), None, digest_of(head), 90)
    assert tape.read(last.body) == whole


def test_a_long_chunk_without_a_digest_gets_one(tape_exporter, settings):
    data = os.urandom(1_100_000)
    tape_exporter.sink.append(chunk(data))
    tape = MemoryTape(tape_of(tape_exporter))
    *_, last = tape.facts()
    assert last.body == Content(digest_of(data), len(data))
    assert tape.read(last.body) == data


def test_what_no_tape_can_hold_becomes_plain(tape_exporter, settings):
    class Odd:
        def __repr__(self):
            return "<odd>"

    class Broken:
        def __repr__(self):
            raise ValueError("no")

    odd = {"odd": Odd(), "broken": Broken(), "nan": "\ud800", "deep": {"set": [Odd()], 3: 2**70}}
    tape_exporter.sink.append(Fact(1, 7, e.PLAYHEAD_STATE, attributes=odd))
    (fact,) = tape_of(tape_exporter)
    assert fact.attributes == {
        "odd": "<odd>",
        "broken": f"<{Broken.__qualname__}: repr raised ValueError>",
        "nan": "\\ud800",
        "deep": {"set": ["<odd>"], "3": "0x400000000000000000"},
    }


def test_an_append_from_a_finalizer_inside_an_append_is_kept_and_does_not_deadlock(
    tape_exporter, settings
):
    class Nested:
        """Its repr is asked for in the middle of an append, and appends itself."""

        def __repr__(self):
            numbers.append(tape_exporter.sink.append(chunk(b"inner")))
            tape_exporter.sink.append_span(SpanRecord(b"inner"))
            return "<nested>"

    numbers = []
    done = threading.Thread(target=lambda: numbers.append(tape_exporter.sink.append(state(x=Nested()))))
    done.start()
    done.join(60)
    assert not done.is_alive()
    assert numbers == [1, 0]
    tape = tape_of(tape_exporter)
    assert [getattr(record, "seq", "span") for record in tape] == [0, 1, "span"]
    assert tape_exporter.sink.append(chunk()) == 2


def test_finalizers_that_the_collector_runs_inside_appends(tape_exporter, settings):
    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            tape_exporter.sink.append(chunk(b"finalizer"))

    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(300):
            Cycle()
            tape_exporter.sink.append(state(list=[{} for _ in range(5)]))
    finally:
        gc.set_threshold(*threshold)

    def all_ran() -> bool:
        gc.collect()  # returns at once where another thread collects, whose finalizers run meanwhile
        return tape_exporter.sink.count == 600

    eventually(all_ran, "each finalizer")
    assert sorted(fact.seq for fact in tape_of(tape_exporter)) == list(range(600))


def test_an_interrupt_in_the_middle_of_an_append_loses_nothing(tape_exporter, settings):
    class Interrupted:
        times = 0

        def __repr__(self):
            self.times += 1
            if self.times == 1:
                raise KeyboardInterrupt
            return "<interrupted>"

    with pytest.raises(KeyboardInterrupt):
        tape_exporter.sink.append(state(x=Interrupted()))
    assert tape_exporter.sink.append(chunk()) == 1
    first, second = tape_of(tape_exporter)
    assert (first.seq, first.attributes) == (0, {"x": "<interrupted>"})
    assert second.seq == 1


def test_many_threads_share_one_tape(tape_exporter, settings):
    def work(name):
        for n in range(2000):
            tape_exporter.sink.append(chunk(b"%d %d" % (name, n)))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tape = tape_of(tape_exporter)
    assert [fact.seq for fact in tape] == list(range(16_000))
    for name in range(8):
        own = [fact.body.inline for fact in tape if fact.body.inline.startswith(b"%d " % name)]
        assert own == [b"%d %d" % (name, n) for n in range(2000)]


def test_everything_is_readable_by_the_user_alone(tape_exporter, settings, tmp_path):
    for _ in range(60):
        tape_exporter.sink.append(chunk(bytes(50_000)))
    places = SpoolFolders.of(settings)
    home, active_segments = (
        places.home(tape_exporter.sink.instance),
        places.active_home(tape_exporter.sink.instance),
    )
    eventually((home / f"{tape_exporter.sink.current.number:08d}.tape").exists)
    for folder in (
        home,
        active_segments,
        home.parent,
        active_segments.parent,
        active_segments.parent.parent,
    ):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = []
    for path in (*home.iterdir(), *active_segments.iterdir()):
        with suppress(FileNotFoundError):  # a head that was copied just now
            modes.append(stat.S_IMODE(path.stat().st_mode))
    assert len(modes) > 3
    assert set(modes) == {0o600}


def test_without_shared_memory_heads_lie_in_the_spool(settings):
    places = SpoolFolders.of(settings, shared_memory=None)
    with tape_exporter_for(settings, folders=places) as tape_exporter:
        tape_exporter.sink.append(chunk())
        assert (
            tape_exporter.sink.current.path == places.home(tape_exporter.sink.instance) / "00000001.head"
        )


def test_shared_memory_that_belongs_to_somebody_else_is_not_used(settings, tmp_path):
    folder = tmp_path / "shm"
    (folder / f"playhead-{os.getuid()}").mkdir(parents=True, mode=0o777)
    (folder / f"playhead-{os.getuid()}").chmod(0o777)
    assert SpoolFolders.of(settings, shared_memory=folder).shared is None


@pytest.fixture
def small(settings):
    """A spool of 64 KiB of memory that nobody copies, and what is on its tape."""
    places = SpoolFolders.of(settings)
    spool = Spool(places, {}, memory_bytes=1 << 16)
    yield spool, lambda: read_all(LiveSegments(spool))
    spool.clear()
    forget(settings)


def lost_one(spool):
    """A fact of which a spool that was asked for nothing before holds no more than the number."""
    assert spool.why_lost == ""
    spool.append(state(small=1))
    spool.append(state(text="x" * 100_000))
    assert (spool.lost_facts, spool.settled()) == (1, False)
    assert spool.why_lost == "more facts than memory takes"


def told(fact):
    return fact.name, fact.attributes.get(a.PLAYHEAD_GAP_FIRST), fact.attributes.get(a.PLAYHEAD_GAP_LAST)


def test_what_memory_had_no_room_for_is_declared_though_nothing_follows(small):
    spool, tape = small
    lost_one(spool)
    spool.settle_if_free()
    assert spool.settled()
    assert [told(fact) for fact in tape()] == [(e.PLAYHEAD_STATE, None, None), (e.PLAYHEAD_GAP, 1, 1)]


@pytest.mark.parametrize("left", [0, 1, 40, 200, 1023])
def test_a_gap_that_does_not_fit_before_a_fact_goes_with_it_into_another_head(small, left):
    spool, tape = small
    lost_one(spool)
    (head,) = spool.active_segments.values()
    text = "y" * (head.size - head.written - left - 150)
    spool.append(state(text=text))
    assert [told(fact)[1:] for fact in tape()] == [(None, None), (1, 1), (None, None)]
    assert tape()[2].attributes == {"text": text}
    assert spool.lost_facts == 1


def test_the_copier_is_known_for_a_thread_of_playheads(tape_exporter):
    tape_exporter.sink.append(chunk())
    assert tape_exporter._copier.thread.name == "playhead-copier"


def test_what_is_deleted_already_is_no_harm(tmp_path):
    remove_file(tmp_path / "00000001.tape")
    remove_folder(tmp_path / "instance")
    assert list(tmp_path.iterdir()) == []
