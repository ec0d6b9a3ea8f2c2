"""A service that never rests: what it does for no request ages out, its requests replay all the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.starting.home import Home
from support.starting.running import until
from support.starting.services import RecordedService, home_with, identical

from playhead_cli.demo.provider import Provider
from playhead_core.tape.slices import AGED_OUT
from playhead_receiver.config.configuration import Access, Addresses, Configuration, Storage
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Query, RunSummary
from playhead_receiver.storage.api.retention import History
from playhead_receiver.storage.sql.history import measuring

ENOUGH = 5_000
"""Facts after which rows and bytes are counted, and after as many again."""

KEPT = History(3.0, 64 << 10)


class Watched:
    """What lies in the store of the one process that serves."""

    def __init__(self, receiver: Receiver) -> None:
        self.store = receiver.store
        self._reader = self.store._reader

    def run(self) -> RunSummary | None:
        """The process's own."""
        return next(iter(self.store.runs(Query(mode="service"))), None)

    @property
    def instance(self) -> bytes:
        run = until(self.run, "a request has come")
        return bytes.fromhex(run.instances[0])

    def last(self) -> int:
        return self.store.tape(self.instance).last()

    def rows_and_bytes(self) -> tuple[int, int]:
        """Rows of all tables that tell of facts, and the bytes of these."""
        rows = 0
        for table in ("fact_run", "content", "exchange", "strand", "aged"):
            found = self._reader.one(f"SELECT count(*) FROM {table}")
            rows += found[0]
        size = self._reader.one("SELECT sum(length(data)) FROM fact_run")
        return rows, size[0]


@pytest.mark.acceptance
@pytest.mark.timeout(240)
def test_a_service_that_never_rests_takes_no_more_and_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # So that bodies on which one may still go on are soon a few only.
    monkeypatch.setattr(measuring, "RECENT_BYTES", 128 << 10)
    with Provider(pace_s=0.0) as provider:
        home = home_with(tmp_path, provider, "polling_service.py")
        home.environ["PLAYHEAD_LEVEL"] = "causal"
        with Receiver(
            home.data_dir,
            Configuration(
                Addresses(http_port=0, grpc_port=None), Access(guarded=True), Storage(history=KEPT)
            ),
        ) as receiver:
            watched = Watched(receiver)
            _serve_and_watch(home, watched)
            own = watched.run()
            assert own is not None
            rested, *names = (run["name"] for run in home.runs())
            assert len(names) == 2
            assert {gap.reason for gap in home.run(own.name).gaps} == {AGED_OUT}
            assert (
                "facts that belong to no request have aged out" in home.playhead("show", own.name).stdout
            )
            assert home.playhead("verify").returncode == 0
    for name in (rested, *names):
        assert home.run(name).gaps == []
        assert identical(home, name)["asked"] == (name != rested)


def _serve_and_watch(home: Home, watched: Watched) -> None:
    with RecordedService(home, "polling_service.py") as service:

        def ask(text: str) -> None:
            assert service.client.post("/chat", json={"text": text}).status_code == 200

        def is_bounded() -> bool:
            """While more and more comes: a small part of all that has come is there.

            Without aging out there is a row for each 3 to 6 facts, and some 75 bytes for each. How much
            comes between two turns of the keeper depends on the load of the machine.
            """
            rows, size = watched.rows_and_bytes()
            return rows < watched.last() / 16 and size < 20 * watched.last()

        ask("What do I pack?")
        for least in (ENOUGH, 2 * ENOUGH):
            until(lambda facts=least: watched.last() > facts, "facts come")
            until(is_bounded, "no more rows and bytes than there were")
        ask("What do I leave at home?")
        service.client.post("/rest")
        tape = watched.store.tape(watched.instance)
        gone = sum(last - first + 1 for first, last in tape.aged())
        assert gone > ENOUGH
        assert tape.gaps() == []
