"""File names, arguments and text that are not UTF-8."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.starting.home import Home
from support.starting.inner_pytest import NO_PLUGINS

ODD = r"""
import glob, os, shutil, sqlite3, subprocess, sys

print(ascii(sys.argv[1:]))
with open("a\udcff", "w") as file:
    file.write("odd")
print(ascii(open(b"a\xff").read()), os.path.getsize("a\udcff"))
os.rename("a\udcff", "b\udcfe")
os.symlink("b\udcfe", "link\udcfd")
print(ascii(os.readlink("link\udcfd")), os.readlink(b"link\xfd"))
print(ascii(os.path.realpath("link\udcfd")), ascii(glob.glob("*\udcfe")))
db = sqlite3.connect("s\udcff.db")
db.execute("create table t(x)")
db.execute("insert into t values (1)")
db.commit()
print(db.execute("select count(*) from t").fetchall())
db.close()
os.mkdir("sub\udcff")
os.chdir("sub\udcff")
print(ascii(os.getcwd()), os.getcwdb())
open("in", "w").close()
os.chdir("..")
with os.scandir() as entries:
    print(sorted(ascii(entry.name) for entry in entries))
print(sorted(map(ascii, os.listdir())), sorted(os.listdir(b".")))
print([ascii(names) for _, *names in os.walk(".")][-1])
shutil.rmtree("sub\udcff")
for missing in ("no\udcff", "no\ud800"):
    try:
        open(missing)
    except (OSError, UnicodeError) as problem:
        print(ascii(str(problem)))
os.environ["SET_HERE"] = "v\udcfe"
child = subprocess.run([sys.executable, "-c", CHILD, "c\udcff"], capture_output=True)
print(child.stdout, ascii(open("c\udcff").read()))
os.system("echo shell > d\udcff")
print(ascii(open("d\udcff").read()))
open("a\\udcff", "w").close()
print(ascii(sys.stdin.readline()))
"""

CHILD = """
import os, sys

open(sys.argv[1], "w").write("made")
print(ascii(sys.argv[1] + os.environ["SET_HERE"]))
"""


@pytest.mark.parametrize("level", ["causal", "strict"])
def test_names_that_are_not_utf8_are_replayed_and_restored(tmp_path: Path, level: str):
    home = Home(tmp_path, NO_PLUGINS)
    work = tmp_path / os.fsdecode(b"work\xff")
    work.mkdir()
    script = os.fsdecode(b"odd\xff.py")
    (work / script).write_text(ODD.replace("CHILD", repr(CHILD)))
    given = "arg" + os.fsdecode(b"\xff")
    done = home.playhead("record", "--level", level, script, given, cwd=work, input="line\n")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, r"'line\n'"), done.stderr
    for name in os.listdir(work):
        if name != script:
            os.remove(work / name)

    status, report = home.report("last", cwd=work)
    assert report["divergences"] == []
    assert (status, report["verdict"]) == (0, "identical")

    laid = tmp_path / "laid"
    done = home.playhead("workspace", "last", "--to", laid)
    assert done.returncode == 0, done.stderr
    assert (laid / os.fsdecode(b"b\xfe")).read_text() == "odd"
    assert (laid / os.fsdecode(b"c\xff")).read_text() == "made"
    assert os.readlink(laid / os.fsdecode(b"link\xfd")) == os.fsdecode(b"b\xfe")
    assert (laid / r"a\udcff").read_text() == ""
