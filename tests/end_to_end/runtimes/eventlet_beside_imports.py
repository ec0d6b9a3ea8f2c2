"""A thread that is about to import what eventlet imports while it holds the lock of all imports."""

# ruff: noqa: E402

import _imp
import faulthandler
import sys
import threading
import time

from opentelemetry.instrumentation.auto_instrumentation import initialize

LONGEST_S = 3.0
faulthandler.dump_traceback_later(90, exit=True)  # where it stands, should it hang
main = threading.get_ident()
meeting = threading.Event()


def injects() -> bool:
    """Whether eventlet imports a module anew, in the main thread."""
    frame = sys._current_frames().get(main)
    while frame is not None and frame.f_code.co_name != "inject":
        frame = frame.f_back
    return frame is not None and _imp.lock_held()


def meet(event: str, about: tuple[object, ...]) -> None:
    """Another thread goes on with its import when the lock is held; or when it was not to be."""
    if event == "import" and about[0] == "stringprep" and threading.get_ident() != main:
        meeting.set()
        until = time.monotonic() + LONGEST_S
        while time.monotonic() < until and not injects():
            pass


sys.addaudithook(meet)
initialize()
assert meeting.wait(60)

import eventlet

eventlet.monkey_patch()
print("patched")
sys.exit(3)
