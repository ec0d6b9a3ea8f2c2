"""Other programs, in processes of their own, that read the database files of a store."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

READ = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM sqlite_schema')"
HOLD = """
import sqlite3, sys
readers = [sqlite3.connect(path, isolation_level=None) for path in sys.argv[2:]]
for reader in readers:
    reader.execute(sys.argv[1])
    reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()
print("reads", flush=True)
sys.stdin.read()
"""


def read_by_another(path: Path) -> None:
    """Open, read and close a database in another process, as a backup tool does."""
    subprocess.run([sys.executable, "-c", READ + ".fetchone()", str(path)], check=True)


@contextmanager
def held_by_another(*paths: Path, begin: str = "BEGIN") -> Generator[subprocess.Popen[bytes]]:
    """Hold an older state of databases in another process, which ends with the ``with`` block.

    ``begin``: starts its transaction; ``BEGIN IMMEDIATE`` keeps others from writing.
    """
    command = [sys.executable, "-c", HOLD, begin, *map(str, paths)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdout and reader.stdin
        assert reader.stdout.readline() == b"reads\n"
        try:
            yield reader
        finally:
            reader.stdin.close()
