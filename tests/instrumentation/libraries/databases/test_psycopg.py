"""Statements over psycopg: recorded, and replayed where nothing may be connected to."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import threading
import uuid

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from psycopg.types.range import Range
from support.starting.programs import Program, attributes
from support.tapes.sessions import record, replay

from playhead_core.errors import ExchangeUnmatched
from playhead_core.settings import Settings
from playhead_instrumentation.libraries.postgresql.statement import Query
from playhead_instrumentation.redaction import Redactor
from playhead_replay.report.compare import compare
from playhead_semconv import attributes as a
from playhead_semconv import events as e

LEVELS = ["exchanges", "causal", "strict"]
PASSWORD = "hidden-behind-the-door-99"


def same(program, level="causal"):
    """The result of ``program``, which its replay has too; and its tape."""
    result, tape = record(program, settings=Settings(quiet=True, level=level))
    again, now = replay(program, tape)
    assert repr(again) == repr(result)
    report = compare(tape, now)
    assert report.divergences == []
    return result, tape


def answered(connection, statement, *params):
    return connection.execute(statement, params or None).fetchall()


def failed(ask, *arguments):
    """What can be seen of the error of a call."""
    try:
        ask(*arguments)
    except psycopg.Error as error:
        diag = error.diag
        return (
            type(error),
            str(error),
            error.sqlstate,
            diag.constraint_name,
            diag.message_detail,
            diag.statement_position,
        )
    raise AssertionError("it did not fail")


def values(url):
    seen = []
    told = []
    with psycopg.connect(url) as connection:
        info = connection.info
        seen.append(
            (info.server_version, info.backend_pid, info.parameter_status("TimeZone"), info.user)
        )
        connection.add_notice_handler(lambda said: told.append((said.severity, said.message_primary)))
        connection.execute("drop table if exists kept")
        connection.execute(
            "create table kept (id int primary key, text text, doc jsonb, at timestamptz, "
            "price numeric, code uuid, list int[], span int4range, raw bytea)"
        )
        row = (
            *(1, "é", Jsonb({"x": [1, None]}), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
            *(decimal.Decimal("1.10"), uuid.UUID(int=5), [1, 2, None], Range(1, 5), b"\0\xff"),
        )
        cursor = connection.execute(f"insert into kept values ({','.join(['%s'] * 9)})", row)
        seen.append((cursor.statusmessage, cursor.rowcount, cursor.description))
        for binary in (False, True):
            cursor = connection.execute("select * from kept", binary=binary)
            seen.append((cursor.description, cursor.fetchall(), cursor.statusmessage, cursor.rowcount))
        seen.append(connection.cursor(row_factory=dict_row).execute("select now() as now").fetchone())
        seen.append([answered(connection, "select %s::int + 1", number) for number in range(8)])
        seen.append(psycopg.ClientCursor(connection).execute("select %s, %s", ("a'b\\", 3)).fetchall())
        name = sql.SQL("select {}, id from {}").format(sql.Literal("l'"), sql.Identifier("kept"))
        seen.append(connection.execute(name).fetchall())
        two = connection.execute("select 1; select 2")
        seen.append((two.fetchall(), two.nextset(), two.fetchall(), two.nextset()))
        connection.execute("set timezone to 'Asia/Tokyo'")
        seen.append(info.parameter_status("TimeZone"))
        connection.execute("do $$ begin raise notice 'hello'; end $$")
    return seen, told


def transactions(url):
    seen = []
    with psycopg.connect(url) as connection:
        connection.execute("drop table if exists done")
        connection.execute("create table done (id int primary key)")
        connection.commit()
        connection.execute("insert into done values (1)")
        seen.append(failed(connection.execute, "insert into done values (1)"))
        seen.append(connection.info.transaction_status)
        seen.append(failed(connection.execute, "select 1"))
        connection.rollback()
        with connection.transaction():
            connection.execute("insert into done values (2)")
            with connection.transaction(force_rollback=True):
                connection.execute("delete from done")
        seen.append(answered(connection, "select id from done"))
        seen.append(failed(connection.execute, "selec 1"))
        connection.rollback()
        seen.append(failed(connection.execute, "select pg_terminate_backend(pg_backend_pid())"))
        seen.append((connection.closed, connection.broken))
    seen.append(failed(psycopg.connect, f"host=127.0.0.1 port=1 dbname=x password={PASSWORD}"))
    return seen


def many(url):
    """Cursors of the server, copies, pipelines, rows one by one."""
    seen = []
    with psycopg.connect(url) as connection:
        connection.execute("drop table if exists many")
        connection.execute("create table many (id int primary key, text text)")
        with connection.cursor() as cursor:
            cursor.executemany("insert into many values (%s, %s)", [(n, str(n)) for n in range(20)])
            seen.append(cursor.rowcount)
            more = [(n, None) for n in range(20, 23)]
            cursor.executemany("insert into many values (%s, %s) returning id", more, returning=True)
            seen.append([cursor.fetchall()] + [cursor.fetchall() for _ in iter(cursor.nextset, None)])
            with cursor.copy("copy many from stdin") as copy:
                for number in range(100, 103):
                    copy.write_row((number, "ü" * number))
            seen.append(cursor.rowcount)
            with cursor.copy("copy (select * from many order by id limit 5) to stdout") as copy:
                seen.append([bytes(piece) for piece in copy])
        with connection.cursor("named") as cursor:
            cursor.execute("select id from many order by id")
            seen.append(
                (cursor.fetchmany(3), cursor.fetchone(), len(cursor.fetchall()), cursor.description)
            )
        connection.commit()

        def copy_badly():
            with connection.cursor().copy("copy many from stdin") as copy:
                copy.write("bad\n")

        seen.append(failed(copy_badly))
        connection.rollback()
        with connection.pipeline() as pipeline:
            first, second = connection.execute("select 1"), connection.execute("select %s", (2,))
            pipeline.sync()
            seen.append((first.fetchone(), second.fetchone()))
        seen.append(list(connection.cursor().stream("select generate_series(1, 4)")))
        connection.rollback()
        connection.execute("listen news")
        connection.commit()
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("notify news, 'hi'")
        seen.append(list(connection.notifies(timeout=5, stop_after=1)))
        seen.append(list(connection.notifies(timeout=0.01)))
    return seen


async def at_once(url):
    seen = []

    async def one(number):
        async with await psycopg.AsyncConnection.connect(url) as connection:
            cursor = await connection.execute(
                "select %s::int, pg_sleep(%s)", (number, (4 - number) / 50)
            )
            seen.append(await cursor.fetchone())

    await asyncio.gather(*(one(number) for number in range(4)))
    async with await psycopg.AsyncConnection.connect(url) as connection:
        async with connection.cursor() as cursor:
            await cursor.execute("create temporary table here (id int)")
            await cursor.executemany("insert into here values (%s)", [(n,) for n in range(5)])
            async with cursor.copy("copy here to stdout") as copy:
                seen.append([bytes(piece) async for piece in copy])
            async with cursor.copy("copy here from stdin") as copy:
                await copy.write_row((7,))
        async with connection.cursor("named") as cursor:
            await cursor.execute("select id from here order by id")
            seen.append((await cursor.fetchmany(2), await cursor.fetchall()))
        seen.append([row async for row in connection.cursor().stream("select generate_series(1, 3)")])
    return seen


async def cancelled(url):
    seen = []
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await connection.execute("select 0")  # the transaction has begun: nothing else is waited for
        try:
            await asyncio.wait_for(connection.execute("select pg_sleep(60)"), 0.1)
        except TimeoutError as error:
            seen.append(repr(error))
        await connection.rollback()
        seen.append(await (await connection.execute("select 1")).fetchall())
    return seen


def in_threads(url):
    """What each thread has seen; at *causal* they may note it in another order than it came."""
    seen = [[] for _ in range(4)]

    def one(number):
        with psycopg.connect(url) as connection:
            for round in range(3):
                seen[number].append(
                    answered(connection, "select %s::int, %s::int, now()", number, round)
                )

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen


@pytest.mark.parametrize("level", LEVELS)
def test_what_a_program_gets_of_a_database_it_gets_again(postgres, level):
    for program in (values, transactions, many):
        same(lambda program=program: program(postgres.url()), level)


@pytest.mark.parametrize("level", LEVELS)
def test_tasks_and_threads_get_their_answers_in_the_recorded_order(postgres, level):
    same(lambda: asyncio.run(at_once(postgres.url())), level)
    same(lambda: in_threads(postgres.url()), level)


@pytest.mark.parametrize("level", ["causal", "strict"])
def test_a_statement_that_was_cancelled_is_cancelled_again(postgres, level):
    same(lambda: asyncio.run(cancelled(postgres.url())), level)


def test_another_statement_is_refused_and_the_nearest_is_named(postgres):
    def asks(name):
        with psycopg.connect(postgres.url()) as connection:
            return answered(connection, "select %s::text", name)

    _, tape = record(lambda: asks("shoes"))
    with pytest.raises(ExchangeUnmatched, match=r"\$\.params\[0\]: tape \"shoes\", now \"boots\""):
        replay(lambda: asks("boots"), tape)


def test_passwords_are_on_no_tape(postgres):
    def program():
        url = postgres.url().replace("postgres@", f"postgres:{PASSWORD}@")
        with psycopg.connect(url) as connection:
            connection.execute("drop role if exists guest")
            connection.execute("create role guest password 'and-this-one-too-12'")
            return answered(connection, "select 1")

    _, tape = same(program)
    kept = b"".join((fact.body.inline or b"") for fact in tape.facts() if fact.body is not None)
    kept += repr([fact.attributes for fact in tape.facts()]).encode()
    assert PASSWORD.encode() not in kept
    assert b"and-this-one-too-12" not in kept


def test_cursors_that_django_names_after_a_thread_are_the_same_in_another_process():
    asked = [Query(b'FETCH 2 FROM "_django_curs_%d_sync_1"' % thread) for thread in (140198, 7)]
    first, second = (query.plain(Redactor()) for query in asked)
    assert first == second == {"query": 'FETCH 2 FROM "_django_curs_0_sync_1"'}


def test_a_request_says_how_the_connections_that_it_uses_were_opened(postgres):
    def program():
        with psycopg.connect(postgres.url()) as connection:
            return answered(connection, "select 1")

    _, tape = record(program)
    [opened] = [one for one in asks_of(tape) if one.attributes[a.PLAYHEAD_ASK_KEY].startswith("CONNECT")]
    assert opened.attributes[a.PLAYHEAD_ASK_STANDING] == "program"


def asks_of(tape):
    return list(tape.named(e.PLAYHEAD_EXCHANGE_REQUEST))


SPANS = """
import os, psycopg
with psycopg.connect(os.environ["HERE_URL"]) as connection:
    connection.execute("create temporary table t (id int primary key)")
    connection.execute("insert into t values (%s)", (1,))
    connection.execute("select * from t").fetchall()
    try:
        connection.execute("insert into t values (1)")
    except psycopg.Error:
        connection.rollback()
"""


def test_spans_have_the_attributes_of_the_conventions(postgres, tmp_path):
    program = Program.of(tmp_path, SPANS, HERE_URL=postgres.url())
    try:
        done = program.recorded()
        assert done.returncode == 0, done.stderr
        spans = program.spans()
    finally:
        program.close()
    [selected] = [attributes(span) for span in spans if span.name == "SELECT postgres"]
    assert selected[a.DB_SYSTEM_NAME] == "postgresql"
    assert selected[a.DB_NAMESPACE] == "postgres"
    assert selected[a.DB_OPERATION_NAME] == "SELECT"
    assert selected[a.DB_QUERY_TEXT] == "select * from t"
    assert selected[a.DB_RESPONSE_RETURNED_ROWS] == 1
    assert selected[a.SERVER_PORT] == 5432
    inserted = [attributes(span) for span in spans if span.name == "INSERT postgres"]
    assert [one.get(a.DB_RESPONSE_STATUS_CODE) for one in inserted] == [None, "23505"]
    assert inserted[0][a.DB_QUERY_TEXT] == "insert into t values ($1)"
