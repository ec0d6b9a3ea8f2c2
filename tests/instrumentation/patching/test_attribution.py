"""Whose code a frame is: one answer for all who ask."""

import os
import sys
import sysconfig
import uuid
from pathlib import Path

import pytest

import playhead_core
import playhead_instrumentation
from playhead_instrumentation.libraries.files import readers as users_of_files
from playhead_instrumentation.patching.attribution import readers
from playhead_instrumentation.patching.attribution.owners import (
    Owner,
    caller,
    installed,
    is_ours,
    owner_of,
)

STANDARD = sysconfig.get_path("stdlib")
PACKAGES = sysconfig.get_path("purelib")
OURS = str(Path(playhead_instrumentation.__file__).parent)
SEMCONV = str(Path(playhead_core.__file__).parent)

PROGRAM, LIBRARY, STD, OWN, MADE = Owner.PROGRAM, Owner.LIBRARY, Owner.STANDARD, Owner.OURS, Owner.MADE

CODE = {
    # (file, module): owner, reads a clock for the program, uses files for the program
    ("/home/me/agent.py", "__main__"): (PROGRAM, True, True),
    ("agent.py", "agent"): (PROGRAM, True, True),
    ("/srv/my-site-packages/agent.py", "agent"): (PROGRAM, True, True),
    ("", "agent"): (PROGRAM, True, True),
    ("<string>", "__main__"): (MADE, True, True),
    ("<stdin>", "__main__"): (MADE, True, True),
    ("<ipython-input-1-0a1b2c>", "__main__"): (MADE, True, True),
    ("<attrs generated init agent.Step>", "agent"): (MADE, True, True),
    ("<attrs generated init httpx.Odd>", "httpx._odd"): (MADE, False, False),
    ("<string>", "collections"): (MADE, True, True),
    ("<string>", "threading"): (MADE, False, True),
    (f"{PACKAGES}/somebody/tools.py", "somebody.tools"): (LIBRARY, True, True),
    (f"{PACKAGES}/httpx/_client.py", "httpx._client"): (LIBRARY, False, False),
    (f"{PACKAGES}/httpx/_multipart.py", "httpx._multipart"): (LIBRARY, True, False),
    (f"{PACKAGES}/openai/_base_client.py", "openai._base_client"): (LIBRARY, False, True),
    (f"{PACKAGES}/google/auth/x.py", "google.auth.x"): (LIBRARY, False, False),
    (f"{PACKAGES}/google/cloud/x.py", "google.cloud.x"): (LIBRARY, True, True),
    ("/usr/lib/python3/dist-packages/somebody.py", "somebody"): (LIBRARY, True, True),
    (f"{STANDARD}/site-packages/somebody.py", "somebody"): (LIBRARY, True, True),
    (f"{STANDARD}/threading.py", "threading"): (STD, False, True),
    (f"{STANDARD}/uuid.py", "uuid"): (STD, True, True),
    (f"{STANDARD}/linecache.py", "linecache"): (STD, False, False),
    (f"{STANDARD}/platform.py", "platform"): (STD, True, True),
    ("<frozen importlib._bootstrap>", "importlib._bootstrap"): (STD, True, False),
    ("<frozen importlib._bootstrap_external>", ""): (STD, True, False),
    ("<frozen runpy>", "runpy"): (STD, False, False),
    ("<frozen os>", "os"): (STD, False, True),
    (f"{OURS}/spans/worker.py", "playhead_instrumentation.tracing.worker"): (OWN, False, False),
    (f"{SEMCONV}/facts.py", "playhead_core.facts"): (OWN, False, False),
    (f"{PACKAGES}/playhead_exporter/x.py", "playhead_exporter.x"): (LIBRARY, False, False),
}


@pytest.fixture(autouse=True)
def _made_up():
    """What is learned here of files that do not exist is forgotten."""
    tables = readers.PLACES, users_of_files.PLACES
    before = [dict(table) for table in tables]
    yield
    for table, known in zip(tables, before, strict=True):
        table.clear()
        table.update(known)


def called_by(file, module, function):
    """The result of ``function``, called by code of ``file`` that a line of a program has called."""
    above = {"__name__": module, "function": function}
    exec(compile("def call(): return function()", file, "exec"), above)
    program = {"__name__": "__main__", "call": above["call"]}
    exec(compile("def main():\n    return call()", "/home/me/program.py", "exec"), program)
    return program["main"]()


@pytest.mark.parametrize(("file", "module"), CODE, ids=map(" of ".join, CODE))
def test_code_of_every_kind(file, module):
    owner, reads_clocks, uses_files = CODE[file, module]
    assert owner_of(file) is owner
    assert installed(file) == (owner in (LIBRARY, STD, OWN))
    assert called_by(file, module, lambda: readers.by_agent(sys._getframe(1))) is reads_clocks
    assert called_by(file, module, lambda: users_of_files.by_agent(sys._getframe(1))) is uses_files
    ours = owner is OWN or module.startswith("playhead_exporter")
    assert called_by(file, module, lambda: is_ours(sys._getframe(1))) is ours
    found = called_by(file, module, lambda: caller(2))
    assert found.library == (module.partition(".")[0] if owner is LIBRARY else "")
    assert found.place == (f"{os.path.basename(file)}:1" if owner is PROGRAM else "program.py:2")


def test_real_code():
    assert owner_of(__file__) is PROGRAM
    assert owner_of(os.__file__) is owner_of(uuid.__file__) is STD
    assert owner_of(pytest.__file__) is LIBRARY
    assert owner_of(readers.__file__) is owner_of(playhead_core.__file__) is OWN
    assert owner_of(compile("1", "<string>", "eval").co_filename) is MADE


def test_a_link_to_the_standard_library_is_the_standard_library(tmp_path):
    link = tmp_path / "lib"
    link.symlink_to(STANDARD)
    assert owner_of(str(link / "threading.py")) is STD


def test_nobody_else_decides_by_the_name_of_a_file():
    """Who needs to know whose code it is asks `owner_of`."""
    asking = ("site-packages", "dist-packages", '"stdlib"', "-packages")
    deciding = {
        str(path.relative_to(OURS))
        for path in Path(OURS).rglob("*.py")
        if any(word in path.read_text("utf-8") for word in asking)
    }
    assert deciding == {
        "patching/attribution/owners.py",
        "libraries/files/readers.py",  # which files are the interpreter's, not whose code
        "libraries/system/guards.py",  # where modules of `multiprocessing` and `ctypes` are
        "session/environment.py",  # names the folders of the interpreter
    }
