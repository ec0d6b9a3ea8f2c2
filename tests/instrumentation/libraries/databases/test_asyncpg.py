"""Statements over asyncpg: recorded, and replayed where nothing may be connected to."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import io
import uuid

import asyncpg
import pytest
from support.starting.programs import Program, attributes
from support.tapes.sessions import record, replay

from playhead_core.errors import ExchangeUnmatched
from playhead_core.settings import Settings
from playhead_replay.report.compare import compare
from playhead_semconv import attributes as a
from playhead_semconv import events as e

LEVELS = ["exchanges", "causal", "strict"]
PASSWORD = "hidden-behind-the-door-99"


def same(program, level="causal"):
    """The result of ``program``, which its replay has too; and its tape."""
    result, tape = record(lambda: asyncio.run(program()), settings=Settings(quiet=True, level=level))
    again, now = replay(lambda: asyncio.run(program()), tape)
    assert repr(again) == repr(result)
    assert compare(tape, now).divergences == []
    return result, tape


async def failed(awaited):
    """What can be seen of the error of a call."""
    try:
        await awaited
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
        return type(error), str(error), getattr(error, "sqlstate", ""), getattr(error, "detail", "")
    raise AssertionError("it did not fail")


async def values(url):
    seen, told = [], []
    connection = await asyncpg.connect(url)
    connection.add_log_listener(lambda _, said: told.append((said.severity, said.message)))
    seen.append((connection.get_server_pid(), connection.get_server_version()))
    seen.append(connection.get_settings().TimeZone)
    await connection.execute("drop table if exists apgkept; drop type if exists apgmood")
    await connection.execute("create type apgmood as enum ('sad', 'glad')")
    await connection.execute(
        "create table apgkept (id int primary key, text text, doc jsonb, at timestamptz, "
        "price numeric, code uuid, list int[], span int4range, raw bytea, mood apgmood, on_day date)"
    )
    row = (
        *(1, "é", '{"x": [1, null]}', dt.datetime(2020, 1, 1, tzinfo=dt.UTC), decimal.Decimal("1.10")),
        *(uuid.UUID(int=5), [1, 2, None], asyncpg.Range(1, 5), b"\0\xff", "glad", dt.date(1999, 1, 2)),
    )
    places = ",".join(f"${number + 1}" for number in range(len(row)))
    seen.append(await connection.execute(f"insert into apgkept values ({places})", *row))
    seen.append(await connection.fetch("select * from apgkept"))
    seen.append(await connection.fetchval("select now()"))
    seen.append([await connection.fetchval("select $1::int + 1", number) for number in range(4)])
    prepared = await connection.prepare("select id, text from apgkept where id = $1")
    seen.append((prepared.get_attributes(), prepared.get_parameters(), prepared.get_statusmsg()))
    seen.append((await prepared.fetch(1), await prepared.fetchrow(2), prepared.get_statusmsg()))
    await connection.set_type_codec("jsonb", encoder=repr, decoder=eval, schema="pg_catalog")
    seen.append(await connection.fetchval("select '[1, 2]'::jsonb"))
    await connection.execute("set timezone to 'Asia/Tokyo'")
    seen.append(connection.get_settings().TimeZone)
    await connection.execute("do $$ begin raise notice 'hello'; end $$")
    await connection.close()
    return seen, told


async def transactions(url):
    seen = []
    connection = await asyncpg.connect(url)
    await connection.execute("drop table if exists apgdone; create table apgdone (id int primary key)")
    async with connection.transaction():
        await connection.execute("insert into apgdone values (1)")
        seen.append(connection.is_in_transaction())
        try:
            async with connection.transaction():
                await connection.execute("insert into apgdone values ($1)", 1)
        except asyncpg.UniqueViolationError as error:
            seen.append((str(error), error.constraint_name, error.detail))
    seen.append((await connection.fetch("select id from apgdone"), connection.is_in_transaction()))
    seen.append(await failed(connection.fetch("selec 1")))
    seen.append(await failed(connection.fetch("select $1::int", "no number")))
    seen.append(await failed(connection.execute("select pg_terminate_backend(pg_backend_pid())")))
    seen.append((connection.is_closed(), await failed(connection.fetch("select 1"))))
    seen.append(await failed(asyncpg.connect(url.replace("/postgres?", "/nowhere?"))))
    seen.append(await failed(asyncpg.connect(host="127.0.0.1", port=1, user="x", password=PASSWORD)))
    return seen


async def many(url):
    """Cursors, copies, many rows, channels."""
    seen = []
    connection = await asyncpg.connect(url)
    await connection.execute("drop table if exists apgmany")
    await connection.execute("create table apgmany (id int primary key, text text)")
    await connection.executemany("insert into apgmany values ($1, $2)", [(n, str(n)) for n in range(20)])
    long = [(n, "ü" * 3000) for n in range(20, 90)]
    await connection.executemany("insert into apgmany values ($1, $2)", long)
    seen.append(await failed(connection.executemany("insert into apgmany values ($1, '')", [(1,)])))
    async with connection.transaction():
        seen.append([row async for row in connection.cursor("select id from apgmany", prefetch=40)])
        cursor = await connection.cursor("select text from apgmany where id < $1 order by id", 9)
        seen.append((await cursor.fetch(2), await cursor.forward(3), await cursor.fetchrow()))
    source = io.BytesIO(b"100\ta\n101\tb\n")
    seen.append(await connection.copy_to_table("apgmany", source=source))
    records = [(n, None) for n in range(102, 105)]
    seen.append(await connection.copy_records_to_table("apgmany", records=records))
    seen.append(await failed(connection.copy_to_table("apgmany", source=io.BytesIO(b"bad\n"))))
    target = io.BytesIO()
    seen.append(
        await connection.copy_from_query("select * from apgmany where id > $1", 1, output=target)
    )
    seen.append(target.getvalue())
    heard = asyncio.Queue()
    await connection.add_listener("news", lambda *said: heard.put_nowait(said[1:]))
    other = await asyncpg.connect(url)
    for word in ("hi", "there"):
        await other.execute(f"notify news, '{word}'")
        seen.append(await heard.get())
    seen.append(await connection.fetchval("select 1"))
    await other.execute("notify news, 'bye'")
    seen.append(await heard.get())
    await connection.remove_listener("news", print)
    await other.close()
    await connection.close()
    return seen


async def pooled(url):
    seen = []
    async with asyncpg.create_pool(url, min_size=2, max_size=3) as pool:

        async def one(number):
            async with pool.acquire() as connection:
                waits = (6 - number) / 50
                seen.append(await connection.fetchrow("select $1::int, pg_sleep($2)", number, waits))

        await asyncio.gather(*(one(number) for number in range(6)))
        seen.append(await pool.fetchval("select 7"))
    return seen


async def cancelled(url):
    seen = []
    connection = await asyncpg.connect(url)
    prepared = await connection.prepare("select pg_sleep(60)")
    seen.append(await failed(prepared.fetch(timeout=0.1)))
    seen.append(await connection.fetchval("select 1"))
    try:
        async with asyncio.timeout(0.1):
            await connection.execute("select pg_sleep(60)")
    except TimeoutError as error:
        seen.append(repr(error))
    seen.append(await connection.fetchval("select 2"))
    await connection.close()
    return seen


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("program", [values, transactions, many, pooled, cancelled])
def test_what_a_program_gets_of_a_database_it_gets_again(postgres, level, program):
    same(lambda: program(postgres.url()), level)


def test_another_statement_is_refused_and_the_nearest_is_named(postgres):
    async def asks(name):
        connection = await asyncpg.connect(postgres.url())
        try:
            return await connection.fetchval("select $1::text", name)
        finally:
            await connection.close()

    _, tape = record(lambda: asyncio.run(asks("shoes")))
    with pytest.raises(ExchangeUnmatched, match=r"\$\.params\[0\]: tape \"shoes\", now \"boots\""):
        replay(lambda: asyncio.run(asks("boots")), tape)


def test_parameters_are_read_by_their_types(postgres):
    """Those of each kind that has a form for people, and one that has none."""
    moment = dt.datetime(2020, 1, 2, 3, 4, 5, 6)
    given = [
        *(True, -1, 2**40, 0.5, "é", uuid.UUID(int=5), b"\xff"),
        *(moment, moment.replace(tzinfo=dt.UTC), moment.date(), moment.time()),
        *([decimal.Decimal(one) for one in ("-12.50", "0", "123456789.00001")], ["a", None], []),
    ]
    types = (
        "bool int2 int8 float8 text uuid bytea timestamp timestamptz date time numeric[] text[] int4[]"
    )

    async def program():
        connection = await asyncpg.connect(postgres.url())
        casts = ",".join(f"${number + 1}::{one}" for number, one in enumerate(types.split()))
        await connection.fetchrow(f"select {casts}", *given)
        await connection.close()

    _, tape = same(program)
    [asked] = [one.body.inline for one in asks_of(tape) if b'"params":[true' in one.body.inline]
    assert asked.partition(b'"params":')[2].decode() == (
        '[true,-1,1099511627776,0.5,"é","00000000-0000-0000-0000-000000000005",'
        '{"$type":"bytes","value":"/w=="},"2020-01-02T03:04:05.000006",'
        '"2020-01-02T03:04:05.000006+00:00","2020-01-02","03:04:05.000006",'
        '["-12.50","0","123456789.00001"],["a",null],[]],"rows":1}'
    )


def test_passwords_are_on_no_tape(postgres):
    async def program():
        connection = await asyncpg.connect(postgres.url(), password=PASSWORD)
        await connection.execute("drop role if exists apguest")
        await connection.execute("create role apguest password 'and-this-one-too-12'")
        await connection.close()

    _, tape = same(program)
    kept = b"".join((fact.body.inline or b"") for fact in tape.facts() if fact.body is not None)
    kept += repr([fact.attributes for fact in tape.facts()]).encode()
    assert PASSWORD.encode() not in kept
    assert b"and-this-one-too-12" not in kept


def asks_of(tape):
    return list(tape.named(e.PLAYHEAD_EXCHANGE_REQUEST))


SPANS = """
import asyncio, asyncpg, os
async def main():
    connection = await asyncpg.connect(os.environ["HERE_URL"])
    await connection.execute("create temporary table t (id int primary key)")
    await connection.executemany("insert into t values ($1)", [(1,), (2,)])
    await connection.fetch("select * from t")
    try:
        await connection.execute("insert into t values (1)")
    except asyncpg.PostgresError:
        await connection.close()
asyncio.run(main())
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
    assert selected[a.DB_RESPONSE_RETURNED_ROWS] == 2
    assert selected[a.SERVER_PORT] == 5432
    inserted = [attributes(span) for span in spans if span.name == "INSERT postgres"]
    assert [one.get(a.DB_RESPONSE_STATUS_CODE) for one in inserted] == [None, "23505"]
    assert inserted[0][a.DB_QUERY_TEXT] == "insert into t values ($1)"
    assert inserted[0][a.DB_OPERATION_BATCH_SIZE] == 2
