"""Libraries whose connections no boundary records, and what to do about them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

ADVICE: Final = "mark the functions that use it with @playhead.tool"

IN_C: Final = "it connects in C, where no replay can refuse it: " + ADVICE

UNSEEN: Final[dict[str, str]] = {
    "aiokafka": ADVICE,
    "aiomysql": ADVICE,
    "aiopg": IN_C,
    "aiosmtplib": ADVICE,
    "aio_pika": ADVICE,
    "amqp": ADVICE,
    "asyncpg": ADVICE,
    "asyncssh": ADVICE,
    "cassandra": ADVICE,
    "clickhouse_driver": ADVICE,
    "confluent_kafka": IN_C,
    "cx_Oracle": IN_C,
    "duckdb": IN_C,
    "ftplib": ADVICE,
    "imaplib": ADVICE,
    "kafka": ADVICE,
    "lancedb": IN_C,
    "ldap": IN_C,
    "ldap3": ADVICE,
    "mariadb": IN_C,
    "motor": ADVICE,
    "mysql": ADVICE,
    "MySQLdb": IN_C,
    "nats": ADVICE,
    "neo4j": ADVICE,
    "oracledb": ADVICE,
    "paramiko": ADVICE,
    "pika": ADVICE,
    "poplib": ADVICE,
    "psycopg": IN_C,
    "psycopg2": IN_C,
    "pycurl": IN_C,
    "pymemcache": ADVICE,
    "pymongo": ADVICE,
    "pymssql": IN_C,
    "pymysql": ADVICE,
    "pyodbc": IN_C,
    "redis": ADVICE,
    "rsocket": ADVICE,
    "smtplib": ADVICE,
    "snowflake.connector": ADVICE,
    "telnetlib": ADVICE,
    "valkey": ADVICE,
    "zmq": IN_C,
}
"""Module → what to do about it."""


def unseen_among(modules: Iterable[str]) -> dict[str, str]:
    """Those of ``modules`` (names as imported) that are known to connect unseen, with the advice.

    >>> list(unseen_among(["json", "psycopg.rows", "redis"]))
    ['psycopg', 'redis']
    """
    found: dict[str, str] = {}
    for module in modules:
        parts = module.split(".")
        for length in range(1, len(parts) + 1):
            name = ".".join(parts[:length])
            if name in UNSEEN:
                found[name] = UNSEEN[name]
    return found
