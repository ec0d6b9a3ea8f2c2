"""Which modules bring in data that a tape holds, and which bring in data that it does not hold.

This is the single table for what ``playhead doctor`` says before a run and for the errors of a replay.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

SEEN: Final[dict[str, str]] = {
    "openai": "bytes and spans",
    "anthropic": "bytes and spans",
    **dict.fromkeys(("botocore", "boto3"), "bytes, and spans of models on Bedrock"),
    **dict.fromkeys(
        "httpx httpx2 requests urllib3 aiohttp urllib.request http.client httplib2".split(), "bytes"
    ),
    "grpc": "bytes",
    "mcp": "messages and spans",
    "asyncpg": "statements, rows and spans",
    "psycopg": "statements, rows and spans",
    "redis": "commands and spans",
    "websockets": "messages",
    "subprocess": "streams and exit",
    "pty": "streams and exit",
    "multiprocessing": "messages",
    "concurrent.futures": "messages",
}
"""Modules whose traffic is recorded, and how."""

WRAP: Final = (
    'put it into a function with @playhead.tool(effect="read"), or "write" if it changes something'
)
READ: Final = 'put it into a function with @playhead.tool(effect="read")'

UNHELD: Final = "unheld"
"""Kind of an effect that a replay reports: something at hand was not isolated from the world."""

REPEATED: Final = "repeated"
"""Kind of an effect that a replay had on files, with its user's consent."""

IN_C: Final = "it connects in C, where no replay can refuse it: "


@dataclass(frozen=True, slots=True)
class Unseen:
    """What no tape holds of a module."""

    missing: str
    """``its queries``, ``its messages``, …"""
    in_c: bool = False
    """Whether it connects in C, where no boundary sees it."""

    @property
    def advice(self) -> str:
        """What to do about it."""
        return IN_C + WRAP if self.in_c else WRAP


def _named(missing: str, names: str, *, in_c: bool = False) -> dict[str, Unseen]:
    return dict.fromkeys(names.split(), Unseen(missing, in_c))


UNSEEN: Final[dict[str, Unseen]] = {
    **_named(
        "its queries",
        "aiomysql clickhouse_driver mysql oracledb pymysql snowflake.connector",
    ),
    **_named(
        "its queries",
        "aiopg cx_Oracle duckdb lancedb mariadb MySQLdb psycopg2 pymssql pyodbc",
        in_c=True,
    ),
    **_named("its commands", "cassandra motor neo4j pymemcache pymongo valkey"),
    **_named(
        "its connections",
        "aiosmtplib asyncssh ftplib imaplib ldap3 paramiko poplib rsocket smtplib telnetlib",
    ),
    **_named("its answers", "niquests tornado.httpclient"),
    **_named("its answers", "curl_cffi primp pycurl rnet tls_client", in_c=True),
    **_named("its connections", "ldap zmq", in_c=True),
    **_named("its messages", "aio_pika aiokafka amqp kafka nats paho pika pulsar websocket"),
    **_named("its messages", "confluent_kafka", in_c=True),
    **_named("what it stores", "apsw lmdb plyvel pysqlite3 rocksdict sqlcipher3", in_c=True),
    **_named("what it leaves in shared memory and queues", "posix_ipc sysv_ipc", in_c=True),
    "multiprocessing.shared_memory": Unseen("what another process writes there"),
}
"""Modules that bring in data from outside which the tape does not hold."""


def seen(module: str) -> str:
    """Return how the traffic of ``module`` is recorded; empty if it is not, or is not known.

    >>> seen("openai.types"), seen("json")
    ('bytes and spans', '')
    """
    return next((SEEN[name] for name in _above(module) if name in SEEN and not unseen(module)), "")


def unseen(module: str) -> Unseen | None:
    """Return what no tape holds of ``module``; None if nothing is known to be missing."""
    return next((UNSEEN[name] for name in _above(module) if name in UNSEEN), None)


def unseen_among(modules: Iterable[str]) -> dict[str, Unseen]:
    """Return those of ``modules`` (names as imported) of which no tape holds everything.

    >>> list(unseen_among(["json", "psycopg2.extras", "pymongo"]))
    ['psycopg2', 'pymongo']
    """
    found: dict[str, Unseen] = {}
    for module in modules:
        for name in _above(module):
            if name in UNSEEN:
                found[name] = UNSEEN[name]
    return found


def _above(module: str) -> list[str]:
    """Return a module and the packages that contain it, innermost first."""
    parts = module.split(".")
    return [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
