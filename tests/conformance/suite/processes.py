"""Readers and writers in other processes, also those that are killed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conformance.engines import ENGINES
from conformance.suite.base import OnEngine, numbers
from support.tapes.batches import facts_of

from playhead_core.errors import StoreUnavailable
from playhead_core.facts import Fact
from playhead_receiver.storage import Batch, Query, Store

WRITING_PROCESS = Path(__file__).parent.parent / "writing_process.py"
DEADLINE_S = 60.0


class Processes(OnEngine):
    def test_where_nothing_was_stored_a_reader_sees_an_empty_store(
        self, place: Path, reader: Callable[[], Store]
    ):
        store = reader()
        assert list(store.runs(Query(mode=None))) == []
        assert list(store.changes(0)) == []
        assert store.position() == 0
        with pytest.raises(StoreUnavailable, match="reading only"):
            store.commit(Batch(facts=facts_of(b"i" * 16, [0])))
        writer = ENGINES[self.engine].writer(place)
        writer.commit(Batch(facts=facts_of(b"i" * 16, [0])))
        assert store.position() == 1
        writer.close()

    def test_a_reader_sees_what_another_process_commits_while_it_does(
        self, place: Path, reader: Callable[[], Store]
    ):
        with self._writing(place, first_instance=1, threads=2) as process:
            assert process.stdout is not None
            process.stdout.readline()
            store = reader()
            positions = [0]
            seen: dict[bytes, list[int]] = {}
            deadline = time.monotonic() + DEADLINE_S
            while len(positions) < 600 or len(seen) < 2:
                assert time.monotonic() < deadline
                for change in store.changes(positions[-1], 50):
                    positions.append(change.position)
                    if isinstance(change.item, Fact):
                        seen.setdefault(change.item.instance, []).append(change.item.seq)
            process.kill()
        assert positions == list(range(len(positions)))
        assert len(seen) == 2
        for found in seen.values():
            assert found == list(range(len(found)))

    def test_nothing_acknowledged_is_lost_when_the_writer_is_killed(self, place: Path):
        self._kill_the_writer(place, kills=3)

    @pytest.mark.acceptance
    def test_nothing_acknowledged_is_lost_in_twenty_kills(self, place: Path):
        self._kill_the_writer(place, kills=20)

    def _kill_the_writer(self, place: Path, kills: int) -> None:
        for round_ in range(kills):
            with self._writing(place, first_instance=1 + 4 * round_, threads=4) as process:
                assert process.stdout is not None
                lines = [process.stdout.readline() for _ in range(20 + 7 * round_)]
                process.kill()
                lines += process.stdout.readlines()
            acknowledged = [line.split() for line in lines if line.endswith("\n")]
            store = ENGINES[self.engine].writer(place)
            for thread in range(4):
                instance = bytes([1 + 4 * round_ + thread]) * 16
                mine = [words for words in acknowledged if words[0] == str(thread)]
                facts = numbers(store.tape(instance).facts())
                assert facts == list(range(len(facts)))
                assert len(facts) >= 3 * len(mine)
                spans = {span.span_id.hex() for span in store.spans(instance)}
                assert {words[3] for words in mine} <= spans
                assert len(spans) * 3 == len(facts)
            store.close()

    def _writing(self, place: Path, first_instance: int, threads: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [
                sys.executable,
                str(WRITING_PROCESS),
                self.engine,
                str(place),
                str(first_instance),
                str(threads),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
