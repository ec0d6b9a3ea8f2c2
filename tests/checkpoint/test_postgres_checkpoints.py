import subprocess
import sys
import uuid

import pytest
from support.servers.postgres import PostgresServer

from playhead_checkpoint import Lineage, PostgresCheckpoints
from playhead_checkpoint.store.conformance import CheckpointConformance, conversation
from playhead_core.errors import CorruptTape, StoreUnavailable, UsageError


class TestPostgres(CheckpointConformance):
    @pytest.fixture(autouse=True)
    def _place(self, server: PostgresServer):
        self.url = place(server)

    def open_store(self):
        return PostgresCheckpoints(self.url)


def place(server: PostgresServer) -> str:
    """A schema of its own."""
    return f"{server.url()}&schema=c{uuid.uuid4().hex}"


def test_a_url_that_cannot_be_read_is_refused():
    for url in ("mysql://h/d", "postgresql://h/d?schema=a%22b", "postgresql://h/d?schema="):
        with pytest.raises(UsageError, match="cannot be read"):
            PostgresCheckpoints(url)


def test_an_error_does_not_show_the_password():
    with pytest.raises(StoreUnavailable) as problem:
        PostgresCheckpoints("postgresql://me:sesame@/d?host=/nowhere")
    assert "sesame" not in str(problem.value)


WRITER = """
import sys
from playhead_checkpoint import Lineage, PostgresCheckpoints
from playhead_checkpoint.store.conformance import conversation
store, parent, length = PostgresCheckpoints(sys.argv[1]), b"", int(sys.argv[2])
for length in range(length, length + 40):
    parent = store.put(conversation(length), Lineage(sys.argv[3].encode() * 16, parent=parent)).id
"""


def test_processes_write_at_the_same_time(server: PostgresServer):
    url = place(server)
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, url, str(begin), run])
        for begin, run in ((10, "a"), (10, "b"), (30, "c"))
    ]
    assert [one.wait() for one in writers] == [0, 0, 0]
    with PostgresCheckpoints(url) as store:
        assert store.damages() == []
        found = store.checkpoints(limit=1_000)
        assert len(found) == 120
        for one in found:
            state = store.state(one.id)
            assert state == conversation(state["step"])


def test_a_dump_of_the_schema_brings_all_checkpoints_back(server: PostgresServer):
    url = place(server)
    schema, dump = url.rpartition("=")[2], server.folder / "checkpoints.dump"
    with PostgresCheckpoints(url) as store:
        parent, ids = b"", list[bytes]()
        for length in range(180, 200):
            parent = store.put(conversation(length), Lineage(b"r" * 16, parent=parent)).id
            ids.append(parent)
        store.note(parent, {"key": conversation(20)})
        kept = store.checkpoints()
        server.run("pg_dump", "-Fc", "-f", dump, "-n", schema, server.url())
    server.run("createdb", "-h", server.folder, "-U", "postgres", "restored")
    server.run("pg_restore", "-d", server.url("restored"), dump)
    with PostgresCheckpoints(f"{server.url('restored')}&schema={schema}") as store:
        assert store.damages() == []
        assert store.checkpoints() == kept
        assert [store.state(id) for id in ids] == [conversation(length) for length in range(180, 200)]
        assert store.notes(parent) == {"key": conversation(20)}
        store.put(conversation(200), Lineage(b"r" * 16, parent=parent))
        store.delete(ids)
        assert store.damages() == [] and store.count() == 1


def test_a_connection_that_broke_is_opened_anew(server: PostgresServer):
    with PostgresCheckpoints(place(server)) as store:
        first = store.put(conversation(50), Lineage(b"r" * 16))
        with server.connect() as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            )
        with pytest.raises(StoreUnavailable):
            store.put(conversation(51), Lineage(b"r" * 16))
        store.put(conversation(52), Lineage(b"r" * 16))
        assert store.state(first.id) == conversation(50)
        assert store.damages() == []


def test_a_closed_store_says_so(server: PostgresServer):
    store = PostgresCheckpoints(place(server))
    store.close()
    store.close()
    with pytest.raises(StoreUnavailable, match="is closed"):
        store.put(1)


def test_a_schema_whose_uses_were_counted_at_each_put_is_brought_up(server: PostgresServer):
    url = place(server)
    with PostgresCheckpoints(url) as store:
        puts = [store.put(conversation(length)).id for length in range(200, 210)]
        store.delete([puts.pop(3)])
    with server.connect() as other:
        other.execute(
            f"SET search_path TO {url.rpartition('=')[2]}; ALTER TABLE use_count RENAME TO uses; "  # pyright: ignore
            "DROP TABLE counted; UPDATE version SET version = 1"
        )
    with PostgresCheckpoints(url) as store:
        puts.append(store.put(conversation(400)).id)
        assert store.damages() == []
        assert store.delete(puts).nodes > 20
        assert store.damages() == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE node SET data = decode('00', 'hex') WHERE id = 1",
        "DELETE FROM node WHERE id = 1",
        "UPDATE checkpoint SET packed = decode('00', 'hex')",
        "UPDATE checkpoint SET labels = '7'",
    ],
)
def test_damage_is_found_when_it_is_read(server: PostgresServer, statement: str):
    url = place(server)
    with PostgresCheckpoints(url) as store:
        put = store.put(conversation(500))
    with server.connect() as other:
        other.execute(f"SET search_path TO {url.rpartition('=')[2]}; {statement}")  # pyright: ignore
    with PostgresCheckpoints(url) as store:
        with pytest.raises(CorruptTape):
            store.state(put.id)
        assert store.damages()
