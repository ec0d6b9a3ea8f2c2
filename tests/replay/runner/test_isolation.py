"""What the kernel keeps a replay from, whatever code tries it."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from playhead_replay.runner.isolation import enforceable, enforced, isolated

PATIENCE_MS = 60_000

TRYING = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def tried(done):
    return "done" if done >= 0 else os.strerror(ctypes.get_errno())
for path in sys.argv[1:]:
    print(tried(libc.open(path.encode(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)), path)
    print(tried(libc.rename(path.encode(), (path + ".moved").encode())))
print(os.getcwd(), sorted(os.listdir()))
"""

WAITING = """
import subprocess, sys
child = subprocess.Popen([*sys.argv[1:], sys.executable, "-c", "print(flush=True); input()"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""


def run(scratch: Path, cwd: Path, *words: str, **options: bool) -> str:
    prefix = isolated(scratch, scratch / "said", **{"network": False, "files": True, **options})
    command = [*prefix, sys.executable, *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return scratch


@pytest.mark.skipif("files" not in enforceable(), reason="user namespaces are not allowed here")
def test_code_of_c_changes_nothing_but_the_scratch_folder(scratch: Path, tmp_path: Path):
    tree = tmp_path / "a tree"
    tree.mkdir()
    (tree / "mine.txt").write_text("mine")
    outside = [Path(__file__).with_suffix(".made"), Path.home() / ".playhead-made"]
    tries = ["mine.txt", "new.txt", str(scratch / "own"), *map(str, outside)]
    said = run(scratch, tree, "-c", TRYING, *tries)
    lines = said.splitlines()
    assert lines[:4] == ["done mine.txt", "done", "done new.txt", "done"]
    assert lines[4:6] == [f"done {scratch}/own", "done"]
    assert lines[-1] == f"{tree} ['mine.txt.moved', 'new.txt.moved']"
    assert [(path.name, path.read_text()) for path in tree.iterdir()] == [("mine.txt", "mine")]
    assert (scratch / "own.moved").exists()
    assert not any(path.exists() or path.with_name(f"{path.name}.moved").exists() for path in outside)
    assert enforced(scratch / "said") == {"files", "processes"}


@pytest.mark.skipif("files" not in enforceable(), reason="user namespaces are not allowed here")
def test_what_python_makes_in_shared_memory_is_there(scratch: Path, tmp_path: Path):
    code = "import multiprocessing, tempfile; multiprocessing.Lock(); print(tempfile.mkdtemp())"
    made = run(scratch, tmp_path, "-c", code, network=True).strip()
    assert not os.path.exists(made)
    assert enforced(scratch / "said") == {"files", "network", "processes"}


def test_nothing_is_asked_of_the_kernel_that_is_not_wanted(scratch: Path, tmp_path: Path):
    run(scratch, tmp_path, "-c", "open('made', 'w')", files=False)
    assert (tmp_path / "made").exists()
    assert enforced(scratch / "said") == frozenset()


def test_a_command_that_is_not_there(scratch: Path, tmp_path: Path):
    prefix = isolated(scratch, scratch / "said", network=False, files=False)
    done = subprocess.run([*prefix, "/not/there"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (127, "/not/there: No such file or directory\n")


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is of Linux")
def test_it_dies_with_who_started_it(scratch: Path):
    words = isolated(scratch, scratch / "said", network=False, files=True)
    at = words.index("--parent") + 1
    code = f"import os, sys; sys.argv[{at + 1}] = str(os.getpid())\n{WAITING}"
    with subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        died = os.pidfd_open(child)
        parent.send_signal(signal.SIGKILL)
        ends = select.poll()
        ends.register(died, select.POLLIN)
        assert ends.poll(PATIENCE_MS)
        os.close(died)
