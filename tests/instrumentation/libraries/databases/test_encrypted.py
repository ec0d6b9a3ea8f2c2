"""Connections to PostgreSQL with a password and TLS, which a replay has not."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator

import asyncpg
import psycopg
import pytest
import trustme
from support.servers.postgres import PostgresServer
from support.tapes.sessions import record, replay

from playhead_replay.report.compare import compare

PASSWORD = "hidden-in-the-oven-55"
ASKS_TLS = bytes.fromhex("0000000804d2162f")


class TlsFront:
    """Encrypts the connections of a server that cannot. It counts those that ask for it."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self.encrypted = 0
        self._context = context
        self._behind = port
        self._loop = asyncio.new_event_loop()
        self._listens = threading.Event()
        threading.Thread(target=self._run, name="playhead-tls", daemon=True).start()
        assert self._listens.wait(60)

    def _run(self) -> None:
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._listens.set()
        self._loop.run_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.readexactly(8)
        if first == ASKS_TLS:
            writer.write(b"S")
            self.encrypted += 1
            await writer.start_tls(self._context)
            first = b""
        behind, before = await asyncio.open_connection("127.0.0.1", self._behind)
        before.write(first)
        await asyncio.gather(_copy(reader, before), _copy(behind, writer), return_exceptions=True)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TlsFront, str]]:
    authority = trustme.CA()
    path = tmp_path_factory.mktemp("authority") / "root.pem"
    authority.cert_pem.write_to_path(str(path))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    server = PostgresServer(PASSWORD)
    try:
        server.start()
        front = TlsFront(server.port, context)
        yield front, f"postgresql://postgres@localhost:{front.port}/postgres?sslrootcert={path}&sslmode="
        front.close()
    finally:
        server.remove()


async def asked(url: str, **more: object) -> object:
    try:
        connection = await asyncpg.connect(url, **more)
    except asyncpg.PostgresError as error:
        return type(error), str(error), error.sqlstate
    try:
        return await connection.fetchval("select 1")
    finally:
        await connection.close()


@pytest.mark.parametrize(("mode", "encrypted"), [("verify-full", 2), ("prefer", 2), ("disable", 0)])
def test_asyncpg_gets_its_answers_again_without_tls_and_password(front, mode: str, encrypted: int):
    front, url = front

    async def program() -> list[object]:
        return [await asked(url + mode, password=word) for word in (PASSWORD, "a-wrong-one-77")]

    front.encrypted = 0
    (done, refused), tape = record(lambda: asyncio.run(program()))
    assert front.encrypted == encrypted
    assert (done, refused[0]) == (1, asyncpg.InvalidPasswordError)
    again, now = replay(lambda: asyncio.run(program()), tape)
    assert again == [done, refused]
    assert front.encrypted == encrypted
    assert compare(tape, now).divergences == []
    kept = repr([(fact.attributes, fact.body) for fact in tape.facts()])
    assert PASSWORD not in kept
    assert "a-wrong-one-77" not in kept


def test_psycopg_gets_its_answers_again_without_tls_and_password(front):
    front, url = front

    def program() -> object:
        with psycopg.connect(url + "verify-full", password=PASSWORD) as connection:
            return connection.execute("select 1").fetchone()

    front.encrypted = 0
    done, tape = record(program)
    again, now = replay(program, tape)
    assert again == done == (1,)
    assert front.encrypted == 1
    assert compare(tape, now).divergences == []


def test_a_password_that_a_function_of_the_program_makes_is_made_again(front):
    made = []

    async def program() -> object:
        async def password() -> str:
            made.append(1)
            return PASSWORD

        return await asked(front[1] + "verify-full", password=password)

    done, tape = record(lambda: asyncio.run(program()))
    assert replay(lambda: asyncio.run(program()), tape)[0] == done == 1
    assert made == [1, 1]
