"""Forks whose tape ends while a connection is open: it goes on at the real server, or is refused."""

import asyncio

import psycopg
import pytest
from support.tapes.sessions import record, replay

from playhead_core.errors import WorldBlocked
from playhead_core.rerun.plans import Plan
from playhead_core.settings import Settings
from playhead_core.tape.indexed_tapes import MemoryTape


def forked(program, last, level="causal"):
    """The result of a recording, and that of a fork whose tape ends behind the first ``last`` asks."""
    settings = Settings(quiet=True, level=level)
    result, tape = record(program, settings=settings)
    behind = [one for one in tape.exchanges().values() if one.id.kind == "postgresql"][last].first_seq
    cut = MemoryTape([fact for fact in tape.facts() if fact.seq < behind], tape.instance)
    return result, replay(program, cut, plan=Plan("fork"), settings=settings)


def asked(connection, statement, *params, **options):
    return connection.execute(statement, params or None, **options).fetchone()[0]


def count_calls(url, **options):
    """The name that the session has, and how often it was counted."""
    with psycopg.connect(url, **options) as connection:
        connection.execute("create table if not exists calls (n int)")
        connection.execute("set application_name = 'shop'")
        connection.commit()
        connection.execute("insert into calls values (1)")
        connection.commit()
        return asked(connection, "show application_name"), asked(
            connection, "select count(*) from calls"
        )


@pytest.mark.parametrize("level", ["exchanges", "causal", "strict"])
def test_it_goes_on_at_the_real_server(postgres, level):
    url = postgres.url()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("drop table if exists calls")
    # Begin, create, set, commit; then the world: begin, insert, commit, show, count.
    (name, count), ((again, now), _) = forked(lambda: count_calls(url), 4, level)
    assert (name, again) == ("shop", "shop")
    assert (count, now) == (1, 2)


def test_what_was_prepared_is_prepared_again(postgres):
    def program():
        with psycopg.connect(postgres.url(), autocommit=True) as connection:
            return [asked(connection, "select 1 + %s", one, prepare=True) for one in range(3)]

    result, (again, _) = forked(program, 1)
    assert result == again == [1, 2, 3]


def in_a_pipeline(url):
    async def main():
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            found = [await (await connection.execute("select 1 + %s", (1,), prepare=True)).fetchone()]
            async with connection.pipeline(), connection.cursor() as cursor:
                await cursor.execute("select 1 + %s", (2,), prepare=True)
                await cursor.execute("select 2 + %s", (3,), prepare=True)
                return [*found, await cursor.fetchone()]

    return asyncio.run(main())


def test_a_pipeline_begins_at_the_real_server(postgres):
    result, (again, _) = forked(lambda: in_a_pipeline(postgres.url()), 1)
    assert again == result == [(2,), (5,)]


def test_a_pipeline_that_the_tape_began_does_not_go_on(postgres):
    with pytest.raises(WorldBlocked, match="a transaction or a pipeline that the tape began"):
        forked(lambda: in_a_pipeline(postgres.url()), 2)


def test_a_transaction_that_the_tape_began_does_not_go_on(postgres):
    def program():
        with psycopg.connect(postgres.url()) as connection:
            return [asked(connection, "select %s", one) for one in range(3)]

    with pytest.raises(WorldBlocked, match="fork before the connection is opened") as refused:
        forked(program, 2)
    assert "a transaction or a pipeline that the tape began is open on it" in str(refused.value)
