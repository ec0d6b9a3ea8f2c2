"""What a fork finds as its parent's threads left it."""

import subprocess
import sys
from pathlib import Path

from support.starting.forking import UNWARNED

SLOW = """
import sys, threading
sys.started.set()
if threading.current_thread() is not threading.main_thread():
    sys.may_end.wait()
value = "whole"
"""

PROGRAM = """
import os, signal, sys, threading
import playhead_instrumentation.patching.at_fork
sys.started, sys.may_end = threading.Event(), threading.Event()
importing = threading.Thread(target=lambda: __import__("slow.module"))
importing.start()
sys.started.wait()
pid = os.fork()
if not pid:
    signal.alarm(60)  # would end a child that waits for nobody
    import slow.module
    os._exit(0 if slow.module.value == "whole" else 1)
status = os.waitpid(pid, 0)[1]
sys.may_end.set()
importing.join()
import slow.module
print(status, slow.module.value)
"""


def test_a_module_that_a_thread_was_importing_can_be_imported_in_the_child(tmp_path: Path):
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "__init__.py").touch()
    (tmp_path / "slow" / "module.py").write_text(SLOW)
    done = subprocess.run(
        [sys.executable, *UNWARNED, "-c", PROGRAM],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stdout, done.stderr) == ("0 whole\n", "")
