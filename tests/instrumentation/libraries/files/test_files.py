"""Files: programs recorded in a process of their own, replayed in another over another tree."""

import pytest
from support.long import long
from support.observed.files import Ran

from playhead_core.facts import Fidelity
from playhead_semconv import attributes as a

PROGRAM = """
import asyncio, csv, glob, io, json, logging, os, pathlib, shutil, sys, tempfile, threading
from pathlib import Path

here = Path("ws")
print(sorted(os.listdir("ws")), here.exists(), Path("none").exists())
print(Path("ws/a.txt").read_text(), Path("ws/a.txt").stat().st_mtime_ns)
with open("ws/a.txt", "a") as f:
    print(f.tell(), f.name)
    f.write("appended\\n")
print(Path("ws/a.txt").read_text())
with open("ws/new.json", "w") as f:
    json.dump({"x": 1}, f)
print(json.load(open("ws/new.json")))
with open("ws/a.txt", "r+") as f:
    print(f.read()); f.seek(0); f.write("ONE")
print(Path("ws/a.txt").read_bytes())
try:
    open("ws/missing.txt")
except FileNotFoundError as e:
    print(e, e.filename, e.errno)
try:
    open("ws")
except IsADirectoryError as e:
    print(e)
fd = os.open("ws/lock", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
os.write(fd, b"1"); os.close(fd)
try:
    os.open("ws/lock", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
except FileExistsError as e:
    print(e)
os.unlink("ws/lock")
os.makedirs("ws/deep/er", exist_ok=True); os.makedirs("ws/deep/er", exist_ok=True)
Path("ws/deep/er/x.csv").write_text("a,b\\n1,2\\n")
print(list(csv.reader(open("ws/deep/er/x.csv", newline=""))))
shutil.copytree("ws/deep", "ws/copy"); shutil.copy2("ws/a.txt", "ws/copy/a.txt")
print(sorted(glob.glob("ws/**/*", recursive=True)), [str(p) for p in sorted(here.rglob("*.csv"))])
shutil.move("ws/copy", "ws/moved"); shutil.rmtree("ws/moved")
for root, dirs, files in os.walk("ws"):
    print(root, sorted(dirs), sorted(files))
os.rename("ws/new.json", "ws/renamed.json")
os.symlink("a.txt", "ws/ln")
print(os.readlink("ws/ln"), os.path.realpath("ws/ln") == os.path.abspath("ws/a.txt"))
print(Path("ws/ln").read_text())
entries = sorted(os.scandir("ws"), key=lambda e: e.name)
print([(e.name, e.is_dir(), e.is_file(), e.stat().st_size) for e in entries])
with tempfile.TemporaryDirectory() as d:
    print(d, os.path.isdir(d))
    p = Path(d, "t.txt"); p.write_text("tmp"); print(p.read_text(), os.listdir(d))
print(os.path.exists(d))
with tempfile.NamedTemporaryFile("w+", suffix=".x") as t:
    t.write("hello"); t.flush(); t.seek(0); print(t.read(), t.name, open(t.name).read())
with tempfile.TemporaryFile() as t:
    t.write(b"unnamed"); t.seek(0); print(t.read())
h, name = tempfile.mkstemp()
os.fdopen(h, "w").write("x")
print(open(name).read())
os.remove(name)
with tempfile.SpooledTemporaryFile(2) as t:
    t.write(b"spooled"); t.seek(0); print(t.read())
logging.basicConfig(filename="ws/log.txt", level=logging.INFO, format="%(message)s")
logging.info("logged")
print(open("ws/log.txt").read())
kept = open("ws/kept.txt", "w"); kept.write("never closed")
open("ws/dropped.txt", "w").write("dropped")
print(Path("ws/dropped.txt").read_text())
async def main():
    print(await asyncio.to_thread(Path("ws/a.txt").read_text))
    print(await asyncio.get_running_loop().run_in_executor(None, open, "ws/a.txt"))
asyncio.run(main())
t = threading.Thread(target=lambda: Path("ws/thread.txt").write_text("t")); t.start(); t.join()
print(Path("ws/thread.txt").read_text())
os.chdir("ws")
print(os.getcwd().endswith("ws"), Path("a.txt").exists(), os.path.abspath("x"))
os.chdir("..")
os.chmod("ws/a.txt", 0o600)
print(oct(os.stat("ws/a.txt").st_mode))
os.utime("ws/a.txt", (1, 2))
print(os.stat("ws/a.txt").st_mtime)
os.truncate("ws/a.txt", 2); print(open("ws/a.txt").read())
import mmap
with open("ws/b.bin", "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as m:
    print(m[:4], len(m))
buf = open("ws/raw.bin", "wb", 0)
buf.write(b"raw")
buf.close()
print(open("ws/raw.bin", "rb").read())
print(type(open("ws/a.txt")), type(open("ws/a.txt", "rb")), open is io.open)
print(type(open("ws/a.txt", "rb", 0)))
os.remove("ws/b.bin")
print(os.path.exists("ws/b.bin"), shutil.disk_usage(".").total > 0, open("/proc/self/status").readline())
open("/dev/null", "w").write("x"); print(len(open("/dev/urandom", "rb").read(3)))
"""

DIVERGING = """
import os, sys
from pathlib import Path
text = "other" if os.path.isdir("/nowhere") or "--other" in sys.argv else "same"
Path("ws/out.txt").write_text(text)
print(Path("ws/out.txt").read_text(), sorted(os.listdir("ws")))
"""

APPENDING = """
for number in range(200):
    with open("ws/log.jsonl", "a") as file:
        file.write("x" * 99 + "\\n")
print(len(open("ws/log.jsonl").read()))
"""

SECRETIVE = """
from pathlib import Path
print(len(Path("prod.env").read_text()) > 0)
Path("ws/copy.env").write_text(Path("ws/secrets.json").read_text())
print(Path("ws/copy.env").read_text() == Path("ws/secrets.json").read_text())
"""


@pytest.mark.parametrize("level", [long("causal"), "strict"])
def test_every_way_to_work_on_files(level, tmp_path):
    ran = Ran(tmp_path, PROGRAM, PLAYHEAD_LEVEL=level)
    assert not ran.done.stderr
    (ran.ws / "a.txt").write_text("CHANGED")
    (ran.ws / "kept.txt").unlink()
    done, report = ran.again()
    assert done.stdout == ran.done.stdout, done.stderr
    assert report.verdict == "identical", "\n".join(report.lines())
    assert report.reads["file"][Fidelity.EXACT] > 100


def test_the_files_need_not_be_there(tmp_path):
    ran = Ran(tmp_path, PROGRAM)
    for path in sorted(ran.ws.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    ran.ws.rmdir()
    done, report = ran.again()
    assert done.stdout == ran.done.stdout, done.stderr
    assert report.verdict == "identical", "\n".join(report.lines())


def test_a_run_that_writes_otherwise_reads_what_it_wrote(tmp_path):
    ran = Ran(tmp_path, DIVERGING)
    assert ran.done.stdout.startswith("same ")
    done, report = ran.again("--other")
    assert done.stdout == ran.done.stdout.replace("same", "other"), done.stderr
    assert report.verdict == "diverged"
    assert {one.kind for one in report.divergences} >= {"effect", "stdout"}


def test_what_the_tape_does_not_know_is_refused_and_reported(tmp_path):
    ran = Ran(tmp_path, "import sys; sys.argv[1:] and open('ws/a.txt').read()")
    done, report = ran.again("more")
    assert "the replay does not let the program open" in done.stderr
    assert report.verdict == "blocked"
    assert "blocked file.open ./ws/a.txt" in "\n".join(report.lines())


def test_appends_are_recorded_alone(tmp_path):
    ran = Ran(tmp_path, APPENDING)
    size = sum(len(f.body.inline or b"") for f in ran.tape.facts() if f.body is not None)
    assert len(ran.effects("file.append")) == 199
    assert size < 3 * 200 * 100
    _, report = ran.again()
    assert report.verdict == "identical", "\n".join(report.lines())


def test_a_file_over_the_limit_must_be_there_as_it_was(tmp_path):
    ran = Ran(tmp_path, "print(open('ws/a.txt').read())", PLAYHEAD_FILE_LIMIT_BYTES="3")
    done, report = ran.again()
    assert (done.stdout, report.verdict) == (ran.done.stdout, "identical")
    (ran.ws / "a.txt").write_text("CHANGED")
    done, report = ran.again()
    assert "it was too large to be kept, and is not there as it was" in done.stderr
    assert report.verdict == "blocked"


def test_credentials_in_files_are_not_recorded(tmp_path):
    ran = Ran(tmp_path, SECRETIVE)
    held = b"".join(f.body.inline or b"" for f in ran.tape.facts() if f.body is not None)
    assert b"abcdefgh12345678" not in held
    _, report = ran.again()
    assert report.verdict == "identical", "\n".join(report.lines())
    assert report.redacted


def test_what_machinery_and_packages_read_is_not_recorded(tmp_path):
    ran = Ran(
        tmp_path, "import json, certifi, httpx, pathlib; httpx.Client(); open(json.__file__).read()"
    )
    kinds = [fact.attributes.get(a.PLAYHEAD_READ_KIND, "") for fact in ran.tape.facts()]
    assert [one for one in kinds if one.startswith("file/")] == []


ROBUST = """
import os, tempfile
from pathlib import Path
from playhead_instrumentation.libraries.files import contents, facts, workspace
from playhead_instrumentation.libraries.files import covered as files_covered, listing as files_listing
from playhead_instrumentation.libraries.files import opening as files_opening, recorded as files

def work():
    said = [sorted(os.listdir("ws"))[:2], sorted(entry.name for entry in os.scandir("ws"))[:2]]
    said += [os.stat("ws/a.txt").st_size, os.path.exists("none"), Path("ws/a.txt").read_text()]
    Path("ws/made.txt").write_text("made")
    with open("ws/made.txt", "a") as file:
        file.write(" and more")
    said += [Path("ws/made.txt").read_text(), len(open("ws/big.txt").read())]
    os.rename("ws/made.txt", "ws/other.txt")
    os.mkdir("ws/deep")
    os.rmdir("ws/deep")
    fd = os.open("ws/other.txt", os.O_RDWR)
    os.write(fd, b"MADE")
    os.close(fd)
    said += [Path("ws/other.txt").read_text(), os.path.basename(os.getcwd())]
    os.chdir("ws")
    os.chdir("..")
    os.unlink("ws/other.txt")
    with tempfile.TemporaryFile() as file:
        file.write(b"x")
    try:
        open("ws/none.txt")
    except FileNotFoundError as problem:
        said.append(str(problem))
    return said

Path("ws/big.txt").write_text("x" * 100_000)
expected = work()

def broken(*args, **kwargs):
    raise RuntimeError("broken")

places = []
for owner in (
    files.Files, facts.FileFacts, contents.Contents, workspace.Workspace, workspace.Names, facts.Bodies
):
    places += [(owner, name) for name, it in vars(owner).items() if callable(it) and name[:2] != "__"]
places += [(files_opening, name) for name in ("absolute", "covered", "_settle_when_closed")]
places += [(files_covered, "absolute"), (files_covered, "covered"), (files_listing, "_kind_of")]
places += [(files, name) for name in ("how_of", "opening", "bytes_of", "encode_value")]
places += [(facts, "Fact")]
places += [(contents, name) for name in ("again", "signature_of", "Job")]
for owner, name in places:
    real = vars(owner)[name]
    setattr(owner, name, broken)
    try:
        found = work()
    except BaseException as problem:
        found = repr(problem)
    setattr(owner, name, real)
    if found != expected:
        print(owner.__name__, name, found)
        for left in ("ws/made.txt", "ws/other.txt"):
            Path(left).unlink(missing_ok=True)
print(len(places) > 40)

import gc
gc.disable()
class Marked:
    def __del__(self):
        print("gone at once")
def failing():
    mark = Marked()
    open("ws/none.txt")
try:
    failing()
except FileNotFoundError:
    pass
print("after")
"""


@pytest.mark.parametrize("level", ["causal", "strict"])
def test_a_failure_of_ours_is_not_the_programs(level, tmp_path):
    """Everything that the patches rely on is broken in turn, and the program runs on."""
    ran = Ran(tmp_path)
    ran.record(ROBUST, PLAYHEAD_LEVEL=level)
    assert (ran.done.stdout, ran.done.stderr) == ("True\ngone at once\nafter\n", "")
