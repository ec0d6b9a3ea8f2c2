"""A tape that is written to a file, in a program that closes numbers which it did not open."""

import os
import subprocess
import sys

from playhead_core.facts import Fact
from playhead_core.tape.frames import Scan
from playhead_instrumentation.recorder.tape_writer import TapeWriter

PROGRAM = """
import os, sys
from pathlib import Path
from playhead_instrumentation.recorder.tape_writer import TapeWriter
from playhead_core.facts import Fact
folder = sys.argv[1]
writer = TapeWriter(Path(folder, "now.tape"))
writer.append(Fact(1, 1, "playhead.state"))
highest = max(int(name) for name in os.listdir("/proc/self/fd"))
os.closerange(3, highest + 1)
own = os.open(folder + "/own", os.O_RDWR | os.O_CREAT)
for number in range(own + 1, highest + 1):
    os.dup2(own, number)
writer.append(Fact(2, 1, "playhead.state"))
if os.fork() == 0:
    writer.append(Fact(3, 1, "playhead.state"))
    os._exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
for number in range(own, highest + 1):
    assert os.path.sameopenfile(number, own)
"""


def numbers(path):
    return [fact.seq for _, fact in Scan(path.read_bytes()) if isinstance(fact, Fact)]


def test_it_never_writes_to_a_number_that_is_the_programs_by_now(tmp_path):
    subprocess.run([sys.executable, "-c", PROGRAM, tmp_path], check=True, timeout=60)
    assert (tmp_path / "own").read_bytes() == b""
    assert numbers(tmp_path / "now.tape") == [0, 1]
    (of_child,) = tmp_path.glob("now.*.tape")
    assert numbers(of_child) == [0]


def test_its_number_is_out_of_the_way_of_files_that_the_program_opens(tmp_path):
    lowest = os.dup(0)
    os.close(lowest)
    TapeWriter(tmp_path / "now.tape")
    own = os.dup(0)
    os.close(own)
    assert own == lowest
