"""Where code opens files: none of it may open a database file that SQLite has open in this process.

POSIX locks belong to the process: to close any descriptor of a file drops all of its locks on the file,
those of SQLite too. Another program that closes the database then takes itself for the last one, and
deletes the log with what was acknowledged. The same holds for two SQLite libraries in one process, which
do not know each other's descriptors. So every place is listed here, with the reason why it is safe.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[4]
SCANNED = ("receiver/playhead_receiver", "checkpoint/playhead_checkpoint")
FORKED = "replay/playhead_replay/forks/workspace.py"
OPENING = {
    *("open", "os.open", "io.open", "os.fdopen", "os.truncate", "os.sendfile", "os.copy_file_range"),
    *("shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copyfileobj", "shutil.copytree"),
    *("shutil.move", "mmap.mmap", "shutil.make_archive", "os.posix_spawn"),
}
"""Functions that open a file, or copy it."""
METHODS = {"open", "read_bytes", "read_text", "write_bytes", "write_text", "hardlink_to"}
"""Methods of paths that do."""
LIBRARIES = {"apsw", "sqlite3"}
REVIEWED = {
    "files of their own: settings, cursors, jobs, blobs, locks, keys; never a database": """
receiver/playhead_receiver/integrity/signing.py _read open
receiver/playhead_receiver/forward/delivery_state.py CursorFile.load .read_bytes
receiver/playhead_receiver/forward/delivery_state.py Outbox.oldest .read_bytes
receiver/playhead_receiver/system/durable_files.py keep open
receiver/playhead_receiver/system/durable_files.py keep os.open
receiver/playhead_receiver/system/listening.py Tls.for_grpc .read_bytes
receiver/playhead_receiver/system/price_file.py use_prices .open
receiver/playhead_receiver/system/writer_lock.py WriterLock.take os.open
receiver/playhead_receiver/system/writer_lock.py running os.open
receiver/playhead_receiver/maintenance/jobs.py submit .read_bytes
receiver/playhead_receiver/maintenance/jobs.py execute_pending .read_bytes
receiver/playhead_receiver/api/routes/analysis.py list_workflows .read_text
receiver/playhead_receiver/api/routes/analysis.py check_conformance .read_bytes
receiver/playhead_receiver/api/routes/reruns.py order_fork .write_text
receiver/playhead_receiver/storage/content/blobs.py LocationFile._read .read_bytes
receiver/playhead_receiver/archive/late_values.py redaction_key .read_bytes
receiver/playhead_receiver/web/serving.py Pages.__init__ .read_bytes
checkpoint/playhead_checkpoint/blobs.py BlobFolder.put os.open
checkpoint/playhead_checkpoint/blobs.py BlobFolder.put open
checkpoint/playhead_checkpoint/blobs.py BlobFolder.get .read_bytes
checkpoint/playhead_checkpoint/claims/holders.py Holders.lives os.open
checkpoint/playhead_checkpoint/workspace/ignoring.py rules_in os.open
replay/playhead_replay/forks/workspace.py under_way open
replay/playhead_replay/forks/workspace.py sweep open""",
    "folders, /proc": """
receiver/playhead_receiver/system/durable_files.py sync_folder os.open
receiver/playhead_receiver/system/local_processes.py lives open
receiver/playhead_receiver/system/local_processes.py _here open
checkpoint/playhead_checkpoint/blobs.py _sync_folder os.open
checkpoint/playhead_checkpoint/workspace/reading.py _locked_by_us open""",
    "methods and variables of this name that open no file": """
receiver/playhead_receiver/alerts/delivery.py AlertSender._send .open
receiver/playhead_receiver/forward/forwarder.py Forwarder.__init__ .open
receiver/playhead_receiver/forward/forwarder.py Forwarder._forward .open
receiver/playhead_receiver/forward/forwarder.py Forwarder._forward open
receiver/playhead_receiver/forward/sampling.py Sampler.__init__ open
receiver/playhead_receiver/storage/sql/checkpoint_location.py CheckpointLocation.existing .open
receiver/playhead_receiver/storage/sql/checkpoint_location.py CheckpointLocation.claims .open
receiver/playhead_receiver/storage/sql/engine.py SqlStore.checkpoints .open""",
    "made with O_EXCL: no connection can have it open before": """
receiver/playhead_receiver/system/durable_files.py create_database os.open
receiver/playhead_receiver/storage/sqlite/backup.py copy_store os.open
checkpoint/playhead_checkpoint/sqlite_file.py SqliteFile.connect os.open
checkpoint/playhead_checkpoint/store/sqlite.py SqliteCheckpoints.copy_to os.open
checkpoint/playhead_checkpoint/workspace/tree.py _write os.open
checkpoint/playhead_checkpoint/workspace/tree.py _write open""",
    "a copy, after its only connection was closed": """
receiver/playhead_receiver/storage/sqlite/backup.py copy_store open
checkpoint/playhead_checkpoint/store/sqlite.py SqliteCheckpoints.copy_to open""",
    "a backup and a draft, before the store of that folder is opened": """
receiver/playhead_receiver/storage/sqlite/backup.py _copy os.open
receiver/playhead_receiver/storage/sqlite/backup.py _copy open
receiver/playhead_receiver/storage/sqlite/backup.py _copy shutil.copyfileobj""",
    "keeps open what is a database, or what this process has locked": """
checkpoint/playhead_checkpoint/workspace/reading.py FileReader.read os.open""",
    "the folder of a run without the data folder, whose databases are open here; then its copy": """
replay/playhead_replay/forks/workspace.py copied shutil.copytree
replay/playhead_replay/forks/workspace.py _copy shutil.copy2
replay/playhead_replay/forks/workspace.py _lay .write_bytes
replay/playhead_replay/forks/workspace.py _lay os.truncate""",
    "files under a folder that the user named, never one with the name of a database": """
receiver/playhead_receiver/storage/content/references.py References._read .read_bytes""",
}
"""Places by reason: module, function, what it uses."""
USED_IN = {
    "apsw": (  # store.sqlite, search.sqlite, access.sqlite, and their copies
        "receiver/playhead_receiver/auth/database.py",
        "receiver/playhead_receiver/storage/sqlite/backup.py",
        "receiver/playhead_receiver/storage/sqlite/database.py",
        "receiver/playhead_receiver/storage/sqlite/engine.py",
        "receiver/playhead_receiver/storage/sqlite/logs.py",
        "receiver/playhead_receiver/storage/sqlite/schema.py",
        "receiver/playhead_receiver/storage/sqlite/search.py",
    ),
    "sqlite3": (
        # Checkpoints and claims, which apsw never opens.
        "checkpoint/playhead_checkpoint/claims/sqlite.py",
        "checkpoint/playhead_checkpoint/sqlite_file.py",
        "checkpoint/playhead_checkpoint/store/sqlite.py",
        # Databases of the program, in its own process.
        "replay/playhead_replay/databases/tables.py",
        # store.sqlite, in the process of a shell's completion, which opens nothing else.
        "cli/playhead_cli/completion/stored_words.py",
        # Tables that `playhead sql` makes, in memory or in a new file.
        "cli/playhead_cli/commands/analyze/sql.py",
        "receiver/playhead_receiver/storage/postgres/run_tables.py",
    ),
}
"""Modules by the SQLite library that they use."""


def places(path: Path) -> Iterator[str]:
    """``FUNCTION USED`` for each of `OPENING` and `METHODS` in a module, with or without a call."""

    def walk(node: ast.AST, where: tuple[str, ...]) -> Iterator[str]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            where = (*where, node.name)
        if isinstance(node, ast.Name | ast.Attribute):
            said = ast.unparse(node)
            is_method = isinstance(node, ast.Attribute) and node.attr in METHODS
            if said in OPENING and not isinstance(node.ctx, ast.Store):
                yield f"{'.'.join(where)} {said}"
            elif is_method:
                yield f"{'.'.join(where)} .{node.attr}"
        for child in ast.iter_child_nodes(node):
            yield from walk(child, where)

    yield from walk(ast.parse(path.read_text("utf-8")), ())


def modules() -> Iterator[tuple[str, Path]]:
    for folder in SCANNED:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path
    yield FORKED, ROOT / FORKED


def imported(path: Path) -> set[str]:
    """The top modules that a module imports, at any place in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def test_no_place_opens_a_database_file_that_is_open():
    found = {f"{name} {place}" for name, path in modules() for place in places(path)}
    reviewed = {place for some in REVIEWED.values() for place in some.strip().split("\n")}
    assert found - reviewed == set(), "does it open a database file? Say why not, in REVIEWED"
    assert reviewed - found == set(), "these are no more"


def test_the_scan_sees_calls_references_and_methods(tmp_path: Path):
    module = tmp_path / "module.py"
    module.write_text(
        "def f():\n    open(1)\nclass C:\n    def g(self):\n        h(by=shutil.copy2)\n"
        "        a.b.open()\n        return Path('x').read_bytes"
    )
    assert {*places(module)} == {"f open", "C.g shutil.copy2", "C.g .open", "C.g .read_bytes"}


def test_one_library_opens_each_database():
    found: dict[str, set[str]] = {name: set() for name in LIBRARIES}
    for room in ("semconv", "exporter", "checkpoint", "replay", "receiver", "cli"):
        for path in (ROOT / room / f"playhead_{room}").rglob("*.py"):
            for library in imported(path) & LIBRARIES:
                found[library].add(path.relative_to(ROOT).as_posix())
    assert found == {library: set(files) for library, files in USED_IN.items()}
